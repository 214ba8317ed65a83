# Warnings, optimisation, sanitizers and ccache for riffle's own targets.
add_library(riffle_options INTERFACE)
target_include_directories(riffle_options INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
target_compile_features(riffle_options INTERFACE cxx_std_20)

add_library(riffle_warnings INTERFACE)
target_compile_options(riffle_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local> -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${RIFFLE_WERROR}>:-Werror>>)
# Files are compiled in batches (see Rooms.cmake). GCC takes a class in a batched file for one in a header.
target_compile_options(riffle_warnings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
# GCC 13 warns of an overrun where autograd::Function::apply reserves a std::vector<bool>; there is none.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_compile_options(riffle_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds
    -Wno-stringop-overflow>)
endif()

# One code model for libraries and programs, so that they can share a precompiled header.
add_compile_options(-fPIC)

if(RIFFLE_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

if(RIFFLE_SANITIZE_THREADS)
  # GCC cannot see what std::atomic_thread_fence orders and warns of it; LibTorch's headers have some.
  add_compile_options(-fsanitize=thread -Wno-tsan -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
endif()

if(RIFFLE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "Fuzzing needs clang with libFuzzer: install it with scripts/setup --fuzz, and configure with "
      "cmake --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

find_program(RIFFLE_CCACHE ccache)
if(RIFFLE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A precompiled header is only cached when ccache may overlook time stamps inside it.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${RIFFLE_CCACHE})
endif()
