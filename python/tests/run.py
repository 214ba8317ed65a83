"""Runs tests with pytest, for ctest: run.py FILE... Exits with 77, "skipped", where there is no pytest."""

import sys

sys.dont_write_bytecode = True
try:
    import pytest
except ImportError:
    print("skipped: this Python has no pytest; scripts/setup --peers installs it")
    sys.exit(77)
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
