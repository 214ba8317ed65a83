"""riffle's own training."""

import sys
import time
from typing import Any, Iterable, Iterator, Mapping

from torch import Tensor

from . import _riffle
from ._closing import close_at_exit
from ._settings import settings
from .encoder import Network, make_encoder
from .stream import Stream, as_stream

_PROGRESS_SECONDS = 0.2


class Learner:
    """Learns from a stream with riffle's network, methods and optimiser: the whole, in C++.

    `stream`: a Stream, which belongs to the learner from then on, an address, or an iterable of
    pictures. `config`: keys of the configuration, nested or dotted; `riffle config` lists them.

    An iterator of reports, one for each update, that ends with train.max_updates or the stream.
    train() does the same with a line of progress. After Ctrl-C the update under way is finished in
    the background, and the next call continues after it.

    >>> learner = riffle.Learner("synthetic:?frames=8", {
    ...     "augment.size": 32, "model": {"stem": "small", "width": 8}, "buffer.capacity": 64,
    ...     "train": {"batch": 16, "max_updates": 3}})
    >>> [report["update"] for report in learner]
    [1, 2, 3]
    >>> learner.encoder().features
    64
    """

    def __init__(self, stream: Stream | str | Iterable[Any],
                 config: Mapping[str, Any] | None = None) -> None:
        self._learner = _riffle.Learner(as_stream(stream)._handle, settings(config or {}))
        close_at_exit(self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        """Makes one update and returns its report: update, samples_seen, loss, std, lr, same_clip_pairs."""
        report = self._advance(1)
        if report is None:
            raise StopIteration
        return report

    def train(self, updates: int | None = None, *, every: int = 1,
              progress: bool = True) -> list[dict[str, Any]]:
        """Makes so many updates, or all that are left, and returns the report of every `every`-th.

        On a GPU a report makes it wait: with every=10 it works without a pause.

        >>> learner = riffle.Learner("synthetic:?frames=8", {
        ...     "augment.size": 32, "model": {"stem": "small", "width": 8}, "buffer.capacity": 64,
        ...     "train": {"batch": 16, "max_updates": 9}})
        >>> reports = learner.train(2, every=2, progress=False)
        >>> [report["update"] for report in reports], learner.update
        ([2], 2)
        >>> learner.skipped()
        {}
        >>> learner.stop()
        >>> learner.close()
        """
        reports: list[dict[str, Any]] = []
        start = shown = time.monotonic()
        before = self.update
        end = None if updates is None else before + updates
        while end is None or self.update < end:
            report = self._advance(every if end is None else min(every, end - self.update))
            if report is None:
                break
            reports.append(report)
            now = time.monotonic()
            if progress and (now - shown > _PROGRESS_SECONDS or report["update"] == end):
                shown = now
                rate = (report["update"] - before) / (now - start)
                print(f"\rupdate {report['update']}  loss {report['loss']:.4f}  "
                      f"std {report['std']:.3f}  {rate:.1f} updates/s ", end="", file=sys.stderr)
        if progress and reports:
            print(file=sys.stderr)
        return reports

    def _advance(self, updates: int) -> dict[str, Any] | None:
        report = self._learner.advance(updates)
        if report is None:
            return None
        return {**report, "update": int(report["update"]), "samples_seen": int(report["samples_seen"])}

    def encoder(self) -> Network:
        """Returns a copy of the encoder as it is now, on the CPU, in evaluation mode."""
        return make_encoder(*self._learner.weights())

    @property
    def update(self) -> int:
        """Updates so far."""
        return self._learner.update()

    def skipped(self) -> dict[str, int]:
        """Returns how many items the stream skipped, by reason."""
        return self._learner.skipped()

    def state_dict(self) -> dict[str, Tensor]:
        """Returns everything, the buffer's pictures too, for torch.save(): a new learner, made in the
        same way, continues exactly where this one is.

        >>> def make():
        ...     return riffle.Learner("synthetic:?frames=8", {
        ...         "augment.size": 32, "model": {"stem": "small", "width": 8}, "buffer.capacity": 64,
        ...         "train": {"batch": 16, "max_updates": 4}})
        >>> learner = make()
        >>> first = next(learner)
        >>> again = make()
        >>> again.load_state_dict(learner.state_dict())
        >>> next(again) == next(learner)
        True
        """
        return dict(self._learner.save())

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continues where state_dict() was called. Requires a new learner."""
        self._learner.restore(list(state.items()))

    def stop(self) -> None:
        """Ends the wait for the stream, from any thread; the iteration ends."""
        self._learner.stop()

    def close(self) -> None:
        """Ends the learner's threads. It cannot be used after that."""
        self._learner.close()
