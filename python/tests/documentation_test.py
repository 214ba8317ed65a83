"""Examples in docstrings run, everything public has one, and the stubs name what there is."""

import ast
import doctest
import importlib
import inspect
import pathlib
import pkgutil
import re
import subprocess
import sys

import pytest
import torch

import riffle
from riffle import _riffle

PACKAGE = pathlib.Path(riffle.__file__).parent
MODULES = sorted(f"riffle.{module.name}" for module in pkgutil.iter_modules([str(PACKAGE)])
                 if not module.name.startswith("_"))


@pytest.mark.parametrize("name", ["riffle", *MODULES])
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(name), extraglobs={"riffle": riffle, "torch": torch})
    assert result.failed == 0


@pytest.mark.parametrize("name", [name for name in riffle.__all__ if inspect.isclass(getattr(riffle, name))
                                  or inspect.isfunction(getattr(riffle, name))])
def test_everything_public_is_explained(name):
    item = getattr(riffle, name)
    assert item.__doc__
    methods = inspect.getmembers(item, inspect.isfunction) if inspect.isclass(item) else []
    for method, function in methods:
        if not method.startswith("_") and function.__module__.startswith("riffle"):
            assert function.__doc__ or method == "forward", f"{name}.{method}"


def names_in_stub():
    tree = ast.parse((PACKAGE / "_riffle.pyi").read_text())
    for item in tree.body:
        if isinstance(item, ast.FunctionDef):
            yield item.name
        if isinstance(item, ast.ClassDef):
            yield item.name
            for member in item.body:
                if isinstance(member, ast.FunctionDef):
                    yield f"{item.name}.{member.name}"
                if isinstance(member, ast.AnnAssign):
                    yield f"{item.name}.{member.target.id}"


def names_in_extension():
    for name, item in vars(_riffle).items():
        if name.startswith("__"):
            continue
        yield name
        if inspect.isclass(item) and item is not _riffle.Error:
            for member in vars(item):
                if not member.startswith("_") or member in ("__init__", "__call__"):
                    yield f"{name}.{member}"


def test_stub_has_the_names_of_the_extension():
    made_by_functions = {"Stream.__init__", "Batch.__init__"}
    assert set(names_in_stub()) == set(names_in_extension()) - made_by_functions


def test_types_are_right():
    checked = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-incremental",
                              "--cache-dir=/dev/null", "--follow-imports=silent", str(PACKAGE)],
                             capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_guide_can_be_followed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guide = (pathlib.Path(__file__).parents[2] / "docs" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert len(blocks) > 5
    names = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)
