# What Python and its torch are: RIFFLE_PYTHON, the interpreter (default: pip's, or a python3 that has torch),
# RIFFLE_PYTHON_INCLUDE, RIFFLE_PYTHON_SUFFIX of extensions, and RIFFLE_PYTHON_TORCH, the folder of its torch, empty if it
# has none. riffle is built with that torch unless another one is named.
find_program(RIFFLE_PYTHON3 python3)
set(candidate ${RIFFLE_PYTHON})
if(SKBUILD)
  set(candidate ${Python_EXECUTABLE})
elseif(NOT RIFFLE_PYTHON)
  set(candidate ${RIFFLE_PYTHON3})
endif()
# PYTHONPATH is how pip hides what is installed from a package that it builds.
execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=PYTHONPATH ${candidate} -c
  "import importlib.util, os, sysconfig
torch = importlib.util.find_spec('torch')
folder = os.path.realpath(os.path.dirname(torch.origin)) if torch else ''
print(sysconfig.get_path('include'), sysconfig.get_config_var('EXT_SUFFIX'), folder, sep=';')"
  OUTPUT_VARIABLE python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
list(APPEND python "" "" "")
list(GET python 0 RIFFLE_PYTHON_INCLUDE)
list(GET python 1 RIFFLE_PYTHON_SUFFIX)
list(GET python 2 RIFFLE_PYTHON_TORCH)
if(RIFFLE_PYTHON_TORCH)
  set(RIFFLE_PYTHON ${candidate})
  if(SKBUILD OR NOT (Torch_DIR OR Torch_ROOT OR CMAKE_PREFIX_PATH))
    set(Torch_DIR ${RIFFLE_PYTHON_TORCH}/share/cmake/Torch)
  endif()
elseif(SKBUILD)
  message(FATAL_ERROR "${candidate} has no torch: pip install torch first")
endif()
