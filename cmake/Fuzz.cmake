# The targets of fuzz/: fuzz_test replays their corpus with any compiler; riffle_fuzz, in builds with RIFFLE_FUZZ (clang),
# looks for more with libFuzzer.
if(NOT (LibArchive_FOUND AND CURL_FOUND AND FFMPEG_FOUND AND HTTPLIB_FOUND))
  message(STATUS "fuzz/ is left out: it needs libarchive, libcurl, FFmpeg's libraries and cpp-httplib (scripts/setup)")
  return()
endif()
set(fuzz_sources fuzz/targets.cc fuzz/pictures.cc fuzz/streams.cc fuzz/run_files.cc
  fuzz/source_positions.cc fuzz/network.cc fuzz/curate_files.cc
  riffle/image/testing/generated_files.cc)

if(RIFFLE_FUZZ)
  add_executable(riffle_fuzz ${fuzz_sources} fuzz/libfuzzer.cc)
  target_link_options(riffle_fuzz PRIVATE -fsanitize=fuzzer)
  target_compile_definitions(riffle_fuzz PRIVATE RIFFLE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(riffle_fuzz PRIVATE riffle_study riffle_curate riffle_watch riffle_warnings JPEG::JPEG PNG::PNG)
  riffle_uses_torch(riffle_fuzz PRIVATE)
  set_target_properties(riffle_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endif()

if(RIFFLE_TESTS)
  add_executable(fuzz_test ${fuzz_sources} fuzz/replay_test.cc)
  target_compile_definitions(fuzz_test PRIVATE RIFFLE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(fuzz_test PRIVATE riffle_study riffle_curate riffle_watch riffle_warnings
    JPEG::JPEG PNG::PNG GTest::gmock GTest::gtest_main)
  riffle_uses_torch(fuzz_test PRIVATE)
  riffle_tests(fuzz_test fuzz)
endif()
