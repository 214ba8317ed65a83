# Runs after a test program was built: writes to FILE a ctest entry for each suite of the program PROGRAM, named PREFIX.Suite.
# A suite is one process, since each process that loads LibTorch takes a third of a second before its first test.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE failed TIMEOUT 60)
if(failed)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: ${failed}\n${listed}")
endif()
# A suite is reported as skipped if all its tests were.
string(CONCAT skipped "\\[  PASSED  \\] 0 tests\\.\n\\[  SKIPPED \\] [0-9]+ tests?, listed below:\n"
  "(\\[  SKIPPED \\] [^ \n]+\n?)+$")
string(REGEX MATCHALL "(^|\n)[^ \n]+\\." suites "${listed}")
set(entries "")
foreach(suite ${suites})
  string(REGEX REPLACE "^\n|\\.$" "" suite ${suite})
  set(name "[==[${PREFIX}.${suite}]==]")
  string(APPEND entries "add_test(${name} [==[${PROGRAM}]==] [==[--gtest_filter=${suite}.*]==])\n"
    "set_tests_properties(${name} PROPERTIES TIMEOUT 900 SKIP_REGULAR_EXPRESSION [==[${skipped}]==])\n")
endforeach()
file(WRITE ${FILE} "${entries}")
