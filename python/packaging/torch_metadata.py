"""The version and the dependencies of the package, which depend on the torch that it is built for."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def torch_version() -> str:
    """Returns the minor version of the torch that is installed, "2.13"; pip hides it by PYTHONPATH."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    asked = subprocess.run(
        [sys.executable, "-c", "import importlib.metadata as m; print(m.version('torch'))"],
        env=environment, capture_output=True, text=True)
    if asked.returncode != 0:
        sys.exit("riffle is built against the torch that is installed, and there is none: pip install torch")
    return ".".join(asked.stdout.split(".")[:2])


def dynamic_metadata(field: str, settings: object = None, *unused: object) -> "str | list[str]":
    if field == "dependencies":
        return [f"torch=={torch_version()}.*"]
    version = re.search(r"project\(riffle VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert version
    return f"{version.group(1)}+torch{torch_version()}"
