"""What a training run left on disk."""

import json
import math
import os
from typing import Any

from . import _riffle
from .encoder import Network, load_encoder


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _metrics_line(text: bytes) -> dict[str, float]:
    """Returns the numbers of a line, NaN for null; nothing if it is damaged or half written."""
    try:
        line = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(line, dict) or not _is_number(line.get("update")):
        return {}
    return {name: math.nan if value is None else value for name, value in line.items()
            if value is None or _is_number(value)}


class Run:
    """A run folder, as `riffle train` makes it.

    Raises Error if there is none.

    >>> run = riffle.Run("runs/photos")
    >>> run.config["train.batch"]
    '16'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.config: dict[str, str] = dict(_riffle.run_config(self.path))
        """Every key with its value, as text."""

    def metrics(self) -> dict[str, list[float]]:
        """Returns metrics.jsonl as columns of equal length; NaN where a line lacks a value.

        Passes over lines that are damaged or that the run is still writing.

        >>> metrics = riffle.Run("runs/photos").metrics()
        >>> metrics["update"], len(metrics["loss"])
        ([10, 20], 2)
        """
        path = _riffle.run_metrics(self.path)
        lines: list[dict[str, float]] = []
        if os.path.exists(path):
            with open(path, "rb") as file:
                lines = [line for line in map(_metrics_line, file) if line]
        names = {name: None for line in lines for name in line}
        return {name: [line.get(name, math.nan) for line in lines] for name in names}

    def checkpoints(self) -> list[str]:
        """Returns the names of the checkpoints, oldest first.

        >>> riffle.Run("runs/photos").checkpoints()
        ['update-000000020']
        """
        return _riffle.run_checkpoints(self.path)

    def encoder(self, checkpoint: str = "") -> Network:
        """Returns the encoder of a checkpoint, as load_encoder() does; default: the newest.

        >>> riffle.Run("runs/photos").encoder().features
        64
        """
        return load_encoder(self.path, checkpoint)

    def __repr__(self) -> str:
        return f"<riffle.Run {self.path}>"
