"""A wheel installs in a fresh environment with torch and nothing else, works there, and wants its torch."""

import os
import pathlib
import subprocess
import sys
import venv

import pytest
import torch
from conftest import packages_with

BUILD = pathlib.Path(os.environ["RIFFLE_BUILD"])
SOURCE = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def fresh_python(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False, symlinks=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    for distribution in packages_with("torch"):
        tops = {pathlib.PurePath(file).parts[0] for file in distribution.files or []}
        for top in tops - {"..", "__pycache__"}:
            (site / top).symlink_to(distribution.locate_file(top))
    subprocess.run([SOURCE / "scripts" / "make-wheel", BUILD], check=True, capture_output=True)
    wheels = list((BUILD / "wheels").glob("*.whl"))
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index",
                    *wheels], check=True)
    return python


def run(python, code):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([python, "-c", code], env=environment, cwd="/", capture_output=True, text=True)


def test_works_beside_torch_alone(fresh_python):
    done = run(fresh_python, """
import importlib.util, riffle, torch
assert importlib.util.find_spec("numpy") is None
buffer = riffle.ReplayBuffer("minred", 32, 32, feature_dim=4, batch=8)
loader = riffle.ReplayLoader("synthetic:?frames=4", buffer, batch=8)
batch = next(loader)
views = riffle.two_views(batch.pictures, size=32, step=0)
loader.track(batch, torch.randn(8, 4))
print(riffle.__version__, tuple(views.shape), len(riffle.select(torch.randn(9, 3), keep=4)))
""")
    assert done.stdout.endswith("(16, 3, 32, 32) 4\n"), done.stderr


def test_the_wheel_names_its_torch(fresh_python):
    minor = ".".join(torch.__version__.split(".")[:2])
    wheel, = (BUILD / "wheels").glob("*.whl")
    assert f"+torch{minor}-cp3" in wheel.name
    done = run(fresh_python, "import importlib.metadata as m; print(m.requires('riffle'))")
    assert f"torch=={minor}.*" in done.stdout


def test_another_torch_is_refused_by_the_version_wanted(fresh_python):
    done = run(fresh_python, "import torch; torch.__version__ = '2.1.0'; import riffle")
    minor = ".".join(torch.__version__.split(".")[:2])
    assert done.returncode != 0
    assert f"ImportError: this riffle was built for torch {minor}" in done.stderr.splitlines()[-1]
    assert f"install torch=={minor}.*" in done.stderr.splitlines()[-1]
