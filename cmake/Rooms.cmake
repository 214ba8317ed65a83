# riffle_room(NAME [TORCH] [USES room...] [LINK target...] [DEFINE name...] [WITHOUT file...])
#   A room is the folder riffle/NAME with the folders in it: its *.cc (and *.cu where CUDA is there) become the library
#   riffle_NAME, its *_test.cc the program NAME_test, each of whose tests ctest runs on its own. Files named gpu_*.cc or
#   *_gpu.cc are for CUDA alone. WITHOUT names files to leave out:
#   "video" stands for video*.cc, tests included.
# riffle_program(NAME FOLDER USES room...)
#   A program from the *.cc of a folder, left at the top of the build folder.

# <torch/torch.h> costs 20 s a file; every target that includes it shares one precompiled header.
file(WRITE ${CMAKE_BINARY_DIR}/torch_pch.cc "")
add_library(riffle_torch_pch OBJECT ${CMAKE_BINARY_DIR}/torch_pch.cc)
target_link_libraries(riffle_torch_pch PRIVATE riffle_options riffle_warnings riffle_torch)
target_precompile_headers(riffle_torch_pch PRIVATE
  "$<$<COMPILE_LANGUAGE:CXX>:torch/torch.h>")

function(riffle_uses_torch TARGET VISIBILITY)
  target_link_libraries(${TARGET} ${VISIBILITY} riffle_torch)
  target_precompile_headers(${TARGET} REUSE_FROM riffle_torch_pch)
endfunction()

function(riffle_discover TARGET PREFIX)
  gtest_discover_tests(${TARGET} TEST_PREFIX ${PREFIX}. NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 600 SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
endfunction()

function(riffle_room NAME)
  cmake_parse_arguments(ROOM "TORCH" "" "USES;LINK;DEFINE;WITHOUT" ${ARGN})
  set(folder ${CMAKE_SOURCE_DIR}/riffle/${NAME})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc ${folder}/*/*.cc)
  foreach(name ${ROOM_WITHOUT})
    list(FILTER sources EXCLUDE REGEX "/${name}[^/]*$")
  endforeach()
  if(NOT RIFFLE_CUDA)
    list(FILTER sources EXCLUDE REGEX "/gpu_[^/]*$|_gpu(_test)?\\.cc$")
  endif()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
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
    riffle_discover(${NAME}_test ${NAME})
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
    target_compile_definitions(${NAME}_program_test PRIVATE RIFFLE_PROGRAM="$<TARGET_FILE:${NAME}>")
    add_dependencies(${NAME}_program_test ${NAME})
    riffle_discover(${NAME}_program_test program)
  endif()
endfunction()
