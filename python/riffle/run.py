"""What a training run left on disk."""

import json
import math
import os
from typing import Any

from . import _riffle
from .encoder import ResNet, load_encoder


class Run:
    """A run folder, as `riffle train` makes it.

    >>> run = riffle.Run("runs/photos")      # doctest: +SKIP
    >>> run.config["train.batch"]            # doctest: +SKIP
    '256'
    >>> pandas.DataFrame(run.metrics())      # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.config: dict[str, str] = dict(_riffle.run_config(self.path))
        """Every key with its value, as text."""

    def metrics(self) -> dict[str, list[float]]:
        """Returns metrics.jsonl as columns of equal length; NaN where a line lacks a value."""
        path = _riffle.run_metrics(self.path)
        lines: list[dict[str, Any]] = []
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                # The last line may be half written while the run is training.
                lines = [json.loads(line) for line in file if line.endswith("\n")]
        names = {name: None for line in lines for name in line}
        return {name: [math.nan if line.get(name) is None else line[name] for line in lines]
                for name in names}

    def checkpoints(self) -> list[str]:
        """Returns the names of the checkpoints, oldest first."""
        return _riffle.run_checkpoints(self.path)

    def encoder(self, checkpoint: str = "") -> ResNet:
        """Returns the encoder of a checkpoint; default: the newest."""
        return load_encoder(self.path, checkpoint)

    def __repr__(self) -> str:
        return f"<riffle.Run {self.path}>"
