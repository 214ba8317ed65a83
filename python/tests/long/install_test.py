"""docs/python.md as a newcomer follows it: from a clone into a new environment, then its examples."""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import pytest
from conftest import guide_blocks, packages_with

SOURCE = pathlib.Path(__file__).parents[3]
GUIDE = (SOURCE / "docs" / "python.md").read_text()


def repack(distribution, folder):
    """Writes a package that is installed here as the wheel that it came from: there may be no network."""
    kept = {}
    for file in distribution.files:
        if file.parts[0] != ".." and "__pycache__" not in file.parts:
            kept[str(file)] = pathlib.Path(distribution.locate_file(file))
    about = next(name.split("/")[0] for name in kept if name.endswith(".dist-info/METADATA"))
    tag = re.search(r"^Tag: (\S+)", distribution.read_text("WHEEL"), re.MULTILINE).group(1)
    record = f"{about}/RECORD"
    del kept[record]
    with zipfile.ZipFile(folder / f"{about.removesuffix('.dist-info')}-{tag}.whl", "w") as wheel:
        lines = []
        for name, path in kept.items():
            if path.is_file():
                wheel.write(path, name)
                digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest())
                lines.append(f"\"{name}\",sha256={digest.rstrip(b'=').decode()},{path.stat().st_size}\n")
        wheel.writestr(record, "".join([*lines, f"{record},,\n"]))


def commit_working_tree(folder):
    """Makes a repository of the files here, those that are not committed yet too."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=SOURCE, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (SOURCE / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(SOURCE / name, folder / name)
    for command in (["init", "--quiet"], ["add", "--all"],
                    ["-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet", "-m", "test"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


@pytest.fixture
def home():
    with tempfile.TemporaryDirectory() as folder:  # gigabytes: not pytest's, which are kept
        yield pathlib.Path(folder)


def test_a_newcomer_installs_from_a_clone_and_follows_the_guide(home):
    (home / "wheels").mkdir()
    for distribution in packages_with("torch", "numpy", "scikit-build-core"):
        repack(distribution, home / "wheels")
    (home / "origin" / "riffle").mkdir(parents=True)
    commit_working_tree(home / "origin" / "riffle")

    section = GUIDE.split("## Install\n")[1].split("\n## ")[0]
    commands = "\n".join(re.findall(r"^    (.*)$", section, re.MULTILINE))
    assert commands.splitlines()[-1].startswith("pip install .")
    environment = {name: value for name, value in os.environ.items()
                   if name != "PYTHONPATH" and not name.startswith(("PIP_", "VIRTUAL_ENV"))}
    environment |= {"HOME": str(home), "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1",
                    "PIP_FIND_LINKS": str(home / "wheels"), "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                    "PATH": f"{pathlib.Path(sys._base_executable).parent}:{os.environ['PATH']}"}
    script = "set -e\n" + re.sub(r"\bRIFFLE\b", str(home / "origin" / "riffle"), commands)
    subprocess.run(["bash", "-c", script], cwd=home, env=environment, check=True)

    (home / "guide.py").write_text("\n".join(guide_blocks(GUIDE)))
    (home / "elsewhere").mkdir()
    done = subprocess.run([home / "riffle-env" / "bin" / "python", home / "guide.py"], env=environment,
                          cwd=home / "elsewhere", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    where = subprocess.run([home / "riffle-env" / "bin" / "python", "-c", "import riffle; print(riffle.__file__)"],
                           env=environment, cwd=home / "elsewhere", capture_output=True, text=True).stdout
    assert where.startswith(str(home / "riffle-env"))
