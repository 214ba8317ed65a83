"""What the tests share."""

import os
import pathlib
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
def run_folder(tmp_path_factory):
    """A short run of the program `riffle`."""
    path = tmp_path_factory.mktemp("runs") / "first"
    program = pathlib.Path(os.environ["RIFFLE_BUILD"]) / "riffle"
    subprocess.run([program, "train", "--run", path, "--size", "32", "--stem", "small", "--width", "8",
                    "--capacity", "64", "--batch", "16", "--max-updates", "20", "--stream",
                    "synthetic:?frames=8"], check=True, capture_output=True)
    return path
