"""Imports torch, then the extension that was built for it."""

import torch

from . import _build

__version__ = _build.VERSION


def _minor(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])


def _require_torch() -> None:
    """Raises ImportError unless torch is the one that the extension was built for."""
    wanted = _minor(_build.TORCH)
    kind = " with CUDA" if _build.CUDA else ""
    if _minor(torch.__version__) == wanted and (torch.version.cuda is not None or not _build.CUDA):
        return
    raise ImportError(
        f"this riffle was built for torch {wanted}{kind}, but torch {torch.__version__} is "
        f"installed: install torch=={wanted}.*{kind}, or build riffle for yours: pip install . in "
        "its source folder")


_require_torch()

from . import _riffle  # noqa: E402 - needs the libraries that torch has loaded

Error = _riffle.Error
Error.__doc__ = """What riffle raises for anything that a user can cause or meet.

    One line names the file, value or key at fault and says what would be valid.

    >>> riffle.ResNet("resnet12")
    Traceback (most recent call last):
    riffle.Error: unknown arch 'resnet12' (valid: resnet10, resnet18, resnet50)
    """
