# riffle_room(NAME [TORCH] [USES room...] [LINK target...] [DEFINE name...] [WITHOUT path...])
#   Adds the room in the folder riffle/NAME and the folders in it: the library riffle_NAME from its *.cc (and *.cu in builds
#   with CUDA), and the program NAME_test from its *_test.cc and testing/*.cc; ctest runs each suite on its own. Files named
#   *_gpu.cc and *_gpu_test.cc are left out of builds without CUDA. WITHOUT: folders and files to leave out, relative to the
#   room.
# riffle_program(NAME FOLDER USES room...)
#   Adds a program from the *.cc of a folder. It is built at the top of the build folder.

# LibTorch's headers cost up to 12 s a file. Every target that uses them shares one precompiled header of those that are
# needed; <torch/torch.h> holds three times as much and is included nowhere.
file(WRITE ${CMAKE_BINARY_DIR}/torch_pch.cc "")
add_library(riffle_torch_pch OBJECT ${CMAKE_BINARY_DIR}/torch_pch.cc)
target_link_libraries(riffle_torch_pch PRIVATE riffle_options riffle_warnings riffle_torch)
foreach(header torch/types.h torch/utils.h torch/autograd.h torch/nn/module.h)
  target_precompile_headers(riffle_torch_pch PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${header}>")
endforeach()

function(riffle_uses_torch TARGET VISIBILITY)
  target_link_libraries(${TARGET} ${VISIBILITY} riffle_torch)
  target_precompile_headers(${TARGET} REUSE_FROM riffle_torch_pch)
endfunction()

# Compiles the files of a target in batches of about a dozen, so that what they include is read once a batch. Names in
# unnamed namespaces must therefore differ within a room. Code for CUDA is not batched: who changes another file of the room
# often cannot build it, and would not notice a clash.
function(riffle_batch TARGET)
  get_target_property(sources ${TARGET} SOURCES)
  set(cuda ${sources})
  list(FILTER cuda INCLUDE REGEX "_gpu(_test)?\\.cc$|\\.cu$")
  set_source_files_properties(${cuda} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  list(LENGTH sources files)
  math(EXPR batches "(${files} + 11) / 12")
  math(EXPR size "(${files} + ${batches} - 1) / ${batches}")
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# Makes a ctest entry of each suite of a test program. Suites named Ranks... run alone and as 2, 3 and 4 ranks.
function(riffle_tests TARGET PREFIX)
  riffle_batch(${TARGET})
  set(suites ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}_suites.cmake)
  set(script ${CMAKE_SOURCE_DIR}/cmake/DiscoverSuites.cmake)
  add_custom_command(TARGET ${TARGET} POST_BUILD BYPRODUCTS ${suites}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${TARGET}> -DPREFIX=${PREFIX} -DFILE=${suites}
      "-DMPIRUN=${MPIEXEC_EXECUTABLE}" -P ${script})
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}_include.cmake
    "if(EXISTS \"${suites}\")\n  include(\"${suites}\")\nelse()\n  add_test(${TARGET}_NOT_BUILT ${TARGET}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}_include.cmake)
endfunction()

function(riffle_room NAME)
  cmake_parse_arguments(ROOM "TORCH" "" "USES;LINK;DEFINE;WITHOUT" ${ARGN})
  set(folder ${CMAKE_SOURCE_DIR}/riffle/${NAME})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc ${folder}/*/*.cc)
  foreach(name ${ROOM_WITHOUT})
    list(FILTER sources EXCLUDE REGEX "/${NAME}/${name}(/|$)")
  endforeach()
  if(NOT RIFFLE_CUDA)
    list(FILTER sources EXCLUDE REGEX "_gpu(_test)?\\.cc$")
  endif()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$|/testing/[^/]*$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/testing/[^/]*$")
  if(RIFFLE_CUDA)
    file(GLOB kernels CONFIGURE_DEPENDS ${folder}/*.cu)
    list(APPEND sources ${kernels})
  endif()
  list(TRANSFORM ROOM_USES PREPEND riffle_)

  add_library(riffle_${NAME} STATIC ${sources})
  set_target_properties(riffle_${NAME} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${NAME})
  target_link_libraries(riffle_${NAME} PUBLIC riffle_options ${ROOM_USES} PRIVATE
    $<BUILD_INTERFACE:riffle_warnings> ${ROOM_LINK})
  target_compile_definitions(riffle_${NAME} PRIVATE ${ROOM_DEFINE})
  riffle_batch(riffle_${NAME})
  if(ROOM_TORCH)
    riffle_uses_torch(riffle_${NAME} PUBLIC)
  endif()

  if(RIFFLE_TESTS AND tests)
    add_executable(${NAME}_test ${tests})
    target_link_libraries(${NAME}_test PRIVATE riffle_${NAME} riffle_warnings ${ROOM_LINK}
      GTest::gmock GTest::gtest_main)
    target_compile_definitions(${NAME}_test PRIVATE
      RIFFLE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" RIFFLE_PYTHON="${RIFFLE_PYTHON}"
      ${ROOM_DEFINE})
    if(ROOM_TORCH)
      riffle_uses_torch(${NAME}_test PRIVATE)
    endif()
    riffle_tests(${NAME}_test ${NAME})
  endif()
endfunction()

function(riffle_program NAME FOLDER)
  cmake_parse_arguments(PROGRAM "" "" "USES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${FOLDER}/*.cc)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${FOLDER}/*_test.cc)
  list(REMOVE_ITEM sources ${tests})
  list(TRANSFORM PROGRAM_USES PREPEND riffle_)
  add_executable(${NAME} ${sources})
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  riffle_batch(${NAME})
  target_compile_definitions(${NAME} PRIVATE RIFFLE_VERSION="${PROJECT_VERSION}"
    RIFFLE_YAML_CPP_VERSION="${yaml-cpp_VERSION}"
    RIFFLE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" RIFFLE_PYTHON="${RIFFLE_PYTHON}")
  target_link_libraries(${NAME} PRIVATE ${PROGRAM_USES} riffle_warnings CLI11::CLI11
    nlohmann_json::nlohmann_json)
  riffle_uses_torch(${NAME} PRIVATE)

  if(RIFFLE_TESTS AND tests)
    # Runs the finished program as a user does.
    add_executable(${NAME}_program_test ${tests})
    target_link_libraries(${NAME}_program_test PRIVATE riffle_options riffle_warnings
      nlohmann_json::nlohmann_json GTest::gmock GTest::gtest_main)
    target_compile_definitions(${NAME}_program_test PRIVATE RIFFLE_PROGRAM="$<TARGET_FILE:${NAME}>"
      $<$<BOOL:${MPI_CXX_FOUND}>:RIFFLE_MPIRUN="${MPIEXEC_EXECUTABLE}">)
    add_dependencies(${NAME}_program_test ${NAME})
    riffle_tests(${NAME}_program_test program)
  endif()
endfunction()
