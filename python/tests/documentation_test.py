"""Everything public has an example, the examples run, and the stubs name what there is."""

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
from conftest import guide_blocks

import riffle
from riffle import _riffle

PACKAGE = pathlib.Path(riffle.__file__).parent
MODULES = sorted(f"riffle.{module.name}" for module in pkgutil.iter_modules([str(PACKAGE)])
                 if not module.name.startswith("_"))


PUBLIC = [name for name in riffle.__all__ if not name.startswith("_")]


@pytest.mark.parametrize("name", ["riffle", *MODULES])
def test_examples_run(name, run_folder, monkeypatch):
    monkeypatch.chdir(run_folder.parents[1])  # which has the run that they speak of
    result = doctest.testmod(importlib.import_module(name), extraglobs={"riffle": riffle, "torch": torch})
    assert result.failed == 0


def examples_of(item):
    return "".join(example.source for example in doctest.DocTestParser().get_examples(item.__doc__ or "")
                   if not example.options.get(doctest.SKIP))


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_public_has_an_example(name):
    assert examples_of(getattr(riffle, name))


@pytest.mark.parametrize("name", [name for name in PUBLIC if inspect.isclass(getattr(riffle, name))])
def test_every_method_is_explained_and_used_in_an_example(name):
    item = getattr(riffle, name)
    own = {method: function for method, function in inspect.getmembers(item, inspect.isfunction)
           if not method.startswith("_") and function.__module__.startswith("riffle") and method != "forward"}
    shown = "".join(map(examples_of, [item, *own.values()]))
    for method, function in own.items():
        assert function.__doc__, f"{name}.{method}"
        assert f".{method}(" in shown, f"{name}.{method}"


def test_help_names_everything_public():
    assert not [name for name in PUBLIC if not re.search(rf"\b{name}\b", riffle.__doc__)]


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
    blocks = guide_blocks(guide)
    assert len(blocks) > 5
    names = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)
