"""What the tests share."""

import importlib.metadata
import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import pytest
import torch

import riffle


def pictures(n, size=32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, (n, 3, size, size), dtype=torch.uint8, generator=generator)


def require_refusal(use, message):
    """Requires that a call raises riffle.Error with a message of one line that matches."""
    with pytest.raises(riffle.Error, match=message) as raised:
        use()
    assert "\n" not in str(raised.value)


def run_program(*arguments):
    """Returns what the program `riffle` prints."""
    program = pathlib.Path(os.environ["RIFFLE_BUILD"]) / "riffle"
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def train_run(path, *flags):
    """Makes a run with the program `riffle`."""
    run_program("train", "--run", path, "--capacity", "64", "--batch", "16", "--stream", "synthetic:?frames=8",
                *flags)


def guide_blocks(guide):
    """Returns the blocks of Python in a page of the documentation."""
    return re.findall(r"```python\n(.*?)```", guide, re.DOTALL)


def packages_with(*names):
    """Returns installed packages and all that they require."""
    found, open_names = {}, list(names)
    while open_names:
        try:
            distribution = importlib.metadata.distribution(open_names.pop())
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform
        if distribution.metadata["Name"] in found:
            continue
        found[distribution.metadata["Name"]] = distribution
        for requirement in distribution.requires or []:
            if "extra ==" not in requirement:
                open_names.append(re.match(r"[\w.-]+", requirement).group())
    return found.values()


@pytest.fixture
def interrupted():
    """Calls a function that waits, presses Ctrl-C meanwhile, and checks that it ends within a second."""

    def check(call):
        pressed = []

        def press():
            pressed.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(0.2, press)
        timer.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                call()
            assert time.monotonic() - pressed[0] < 1
        finally:
            timer.cancel()
            timer.join()

    return check


@pytest.fixture(scope="session")
def torchvision():
    """The package torchvision. Its wheels from PyPI are built for CUDA: beside a torch without it their C++
    part does not load, and two of its operators must be declared first."""
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("there is no torchvision")
    library = None  # lives as long as the operators are needed
    try:
        import torchvision.models
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision.models
    yield torchvision
    del library


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """A short run of the program `riffle`."""
    path = tmp_path_factory.mktemp("folder") / "runs" / "photos"
    train_run(path, "--stem", "small", "--size", "32", "--width", "8", "--max-updates", "20")
    return path
