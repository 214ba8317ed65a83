"""Runs the shell blocks of docs/tutorial.md on generated photos, with fewer updates.

    tutorial_test.py RIFFLE TUTORIAL
"""
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

from pictures import write_png

RIFFLE = pathlib.Path(sys.argv[1]).resolve()
TUTORIAL = pathlib.Path(sys.argv[2]).read_text()


def write_photos(folder, count, seed):
    numbers = random.Random(seed)
    for i in range(count):
        name = ["cat", "dog"][i % 2]
        (folder / name).mkdir(parents=True, exist_ok=True)
        tint, step = numbers.randrange(256), numbers.randrange(1, 16)
        write_png(folder / name / f"{i}.png", 24,
                  lambda row, column: (tint, step * (row if i % 2 else column) % 256, numbers.randrange(32)))


def shell_blocks():
    blocks = re.findall(r"```sh\n(.*?)```", TUTORIAL, re.S)
    assert blocks[0].strip() == "make build"
    for block in blocks[1:]:
        for long, short in [("--max-updates 2000", "--max-updates 150"), ("checkpoint.every=200", "checkpoint.every=5"),
                            ("--width 16 --capacity 256 --batch 32", "--width 4 --capacity 64 --batch 8 --threads 1")]:
            block = block.replace(long, short)
        yield block


def interrupt(process, ready):
    """Ctrl-C once it is ready; the time is that of a test that hangs."""
    start = time.monotonic()
    while process.poll() is None and not ready():
        assert time.monotonic() - start < 120
        time.sleep(0.02)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)


def run(block, folder):
    process = subprocess.Popen(["bash", "-euc", "trap : INT\n" + block], cwd=folder, start_new_session=True, text=True,
                               env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if "train" in block and "--watch" in block:
        status = folder / "runs/photos/status.json"
        interrupt(process, lambda: status.exists() and json.loads(status.read_text())["update"] > 0)
    serves = "riffle watch" in block
    if serves:
        interrupt(process, lambda: "http://" in process.stdout.readline())
    said = process.communicate(timeout=120)[0]
    assert process.returncode == (128 + signal.SIGINT if serves else 0), f"{block}\nexit code {process.returncode}\n{said}"
    return said


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "build").mkdir()
    (folder / "build/riffle").symlink_to(RIFFLE)
    write_photos(folder / "photos", 80, seed=1)
    write_photos(folder / "held-out", 40, seed=2)
    said = [run(block, folder) for block in shell_blocks()]
    for file in ["contact.png", "photos.npy", "kept/index.csv", "compared.html"]:
        assert (folder / file).stat().st_size > 0, file
    assert json.loads((folder / "runs/photos/status.json").read_text())["state"] == "done"
    assert "1.000 " in said[3] and len(said[3].splitlines()) >= 6, said[3]
    assert "untrained" in said[5], said[5]
