# Runs after a test program was built: writes to FILE a ctest entry for each suite of the program PROGRAM, named PREFIX.Suite.
# Suites named Ranks... also run as several ranks (PREFIX.Suite.2), if MPIRUN names an mpirun.
# A suite is one process, since each process that loads LibTorch takes a third of a second before its first test.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE failed TIMEOUT 60)
if(failed)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: ${failed}\n${listed}")
endif()
# A suite is reported as skipped if all its tests were.
string(CONCAT skipped "\\[  PASSED  \\] 0 tests\\.\n\\[  SKIPPED \\] [0-9]+ tests?, listed below:\n"
  "(\\[  SKIPPED \\] [^ \n]+\n?)+$")
string(REGEX MATCHALL "(^|\n)[^ \n]+\\." suites "${listed}")
# More ranks than cores, as whoever runs the tests.
string(CONCAT environment "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMP_NUM_THREADS=1;"
  "OMPI_MCA_mpi_yield_when_idle=1;OMPI_MCA_btl_vader_single_copy_mechanism=none;OMPI_MCA_orte_base_help_aggregate=0")
set(entries "")
foreach(suite ${suites})
  string(REGEX REPLACE "^\n|\\.$" "" suite ${suite})
  set(name "[==[${PREFIX}.${suite}]==]")
  string(APPEND entries "add_test(${name} [==[${PROGRAM}]==] [==[--gtest_filter=${suite}.*]==])\n"
    "set_tests_properties(${name} PROPERTIES TIMEOUT 900 SKIP_REGULAR_EXPRESSION [==[${skipped}]==])\n")
  if(NOT suite MATCHES "^Ranks" OR NOT MPIRUN)
    continue()
  endif()
  foreach(ranks 2 3 4)
    set(name "[==[${PREFIX}.${suite}.${ranks}]==]")
    string(APPEND entries "add_test(${name} [==[${MPIRUN}]==] -n ${ranks} --oversubscribe --bind-to none "
      "[==[${PROGRAM}]==] [==[--gtest_filter=${suite}.*]==])\n"
      "set_tests_properties(${name} PROPERTIES TIMEOUT 300 PROCESSORS 2 ENVIRONMENT [==[${environment}]==])\n")
  endforeach()
endforeach()
file(WRITE ${FILE} "${entries}")
