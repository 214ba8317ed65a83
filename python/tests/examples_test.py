"""The examples run, and learn."""

import importlib.util
import json
import pathlib
import statistics

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "python"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def require_learning(losses):
    assert statistics.mean(losses[-5:]) < statistics.mean(losses[:5]) - 0.1


def test_simclr_learns():
    encoder, losses = load("simclr").train(updates=15)
    require_learning(losses)


def test_simclr_is_short():
    assert len((EXAMPLES / "simclr.py").read_text().split('if __name__')[0].splitlines()) <= 48


def test_a_method_of_lightly_learns(torchvision):
    pytest.importorskip("lightly")
    encoder, losses = load("lightly_simsiam").train(updates=25)
    require_learning(losses)


def test_the_notebook_runs(tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    cells = json.loads((EXAMPLES / "photos.ipynb").read_text())["cells"]
    names = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "photos.ipynb", "exec"), names)
    assert len(names["embedding"]) == 400
    for picture in ("loss.png", "embedding.png"):
        assert (tmp_path / picture).stat().st_size > 1000
