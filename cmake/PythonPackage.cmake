# The Python package: the folder python/riffle, and the extension riffle._riffle from python/bindings around the rooms. It is
# whole in BUILD/python, from where tests import it; an installed one (component `python`) is what a wheel holds.
#
# The extension uses the libraries of the torch that Python has imported,
# so that must be the torch that riffle is built with. Otherwise, or without Python's headers, the package is left out.
if(NOT RIFFLE_WITH_PYTHON OR RIFFLE_SANITIZE) # a plain Python cannot load sanitized libraries
  return()
endif()
get_filename_component(torch_prefix "${TORCH_INSTALL_PREFIX}" REALPATH)
set(missing "")
if(NOT RIFFLE_PYTHON_TORCH STREQUAL torch_prefix)
  set(missing "its torch is ${RIFFLE_PYTHON_TORCH}, riffle is built with ${torch_prefix}")
elseif(NOT EXISTS ${RIFFLE_PYTHON_INCLUDE}/Python.h)
  set(missing "there is no ${RIFFLE_PYTHON_INCLUDE}/Python.h: install python3-dev")
endif()
if(missing)
  if(SKBUILD)
    message(FATAL_ERROR "${RIFFLE_PYTHON}: ${missing}")
  endif()
  message(STATUS "No Python package for ${RIFFLE_PYTHON}: ${missing}")
  return()
endif()

file(GLOB bindings CONFIGURE_DEPENDS python/bindings/*.cc)
if(NOT RIFFLE_CUDA)
  list(FILTER bindings EXCLUDE REGEX "_gpu\\.cc$")
endif()
add_library(riffle_python MODULE ${bindings})
find_library(RIFFLE_TORCH_PYTHON torch_python PATHS ${TORCH_INSTALL_PREFIX}/lib NO_DEFAULT_PATH REQUIRED)
target_include_directories(riffle_python SYSTEM PRIVATE ${RIFFLE_PYTHON_INCLUDE})
target_link_libraries(riffle_python PRIVATE riffle_run riffle_warnings riffle_torch ${RIFFLE_TORCH_PYTHON})
target_compile_definitions(riffle_python PRIVATE TORCH_EXTENSION_NAME=_riffle)
riffle_batch(riffle_python)
# Nothing but the module's entry is visible, so that no other extension meets riffle's symbols; and no search path is needed
# for libraries that `import torch` has loaded.
# Libraries that the package does not use (MPI) need not be there.
target_link_options(riffle_python PRIVATE -Wl,--exclude-libs,ALL -Wl,--as-needed)
set(package ${CMAKE_BINARY_DIR}/python/riffle)
set_target_properties(riffle_python PROPERTIES PREFIX "" OUTPUT_NAME _riffle SUFFIX ${RIFFLE_PYTHON_SUFFIX}
  CXX_VISIBILITY_PRESET hidden SKIP_BUILD_RPATH ON LIBRARY_OUTPUT_DIRECTORY ${package})

file(GLOB sources CONFIGURE_DEPENDS python/riffle/*.py python/riffle/*.pyi python/riffle/py.typed)
foreach(source ${sources})
  get_filename_component(name ${source} NAME)
  file(MAKE_DIRECTORY ${package})
  file(CREATE_LINK ${source} ${package}/${name} SYMBOLIC)
endforeach()
set(python_bool_ON True)
set(python_bool_OFF False)
file(WRITE ${package}/_build.py "# Written by CMake: what the extension was built for.\n"
  "VERSION = \"${PROJECT_VERSION}\"\nTORCH = \"${Torch_VERSION}\"\nCUDA = ${python_bool_${RIFFLE_CUDA}}\n")

install(FILES ${sources} ${package}/_build.py DESTINATION riffle COMPONENT python EXCLUDE_FROM_ALL)
install(TARGETS riffle_python LIBRARY DESTINATION riffle COMPONENT python EXCLUDE_FROM_ALL)

if(RIFFLE_TESTS)
  function(riffle_python_test NAME FILE)
    add_test(NAME ${NAME} COMMAND ${RIFFLE_PYTHON} ${CMAKE_SOURCE_DIR}/python/tests/run.py ${FILE} ${ARGN})
    set_tests_properties(${NAME} PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT
      "PYTHONPATH=${CMAKE_BINARY_DIR}/python;RIFFLE_BUILD=${CMAKE_BINARY_DIR}")
  endfunction()
  file(GLOB tests CONFIGURE_DEPENDS python/tests/*_test.py)
  foreach(test ${tests})
    get_filename_component(name ${test} NAME_WE)
    string(REGEX REPLACE "_test$" "" name ${name})
    riffle_python_test(python.${name} ${test})
  endforeach()
  # pip compiles the package for a new environment; for `make test-long`.
  riffle_python_test(long.pip_install ${CMAKE_SOURCE_DIR}/python/tests/long/install_test.py CONFIGURATIONS long)
  set_tests_properties(long.pip_install PROPERTIES TIMEOUT 7200)
endif()
