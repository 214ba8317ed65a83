"""Batches to train on, from a stream through a buffer."""

from typing import Any, Callable, Iterable, Iterator, Mapping

import torch
from torch import Tensor

from . import _riffle
from ._closing import close_at_exit
from ._load import Error
from ._pictures import channels_first
from ._settings import checked_seed, settings
from .buffer import Batch, ReplayBuffer
from .stream import Stream, as_stream


class ReplayLoader:
    """Reads a stream ahead into a buffer, and gives batches drawn from it; an iterator.

    The stream is read, decoded and resized by C++ threads, without the GIL, while you train. Once
    the buffer is full, each batch of the stream is followed by `updates` draws of `batch` samples.
    It ends when the stream does.

    `stream`: a Stream, which belongs to the loader from then on, an address or an iterable.
    `stream_batch`: samples taken from the stream at once; default: `batch`. `fresh`: share of a draw
    that comes straight from the last stream batch. `clock`: "lockstep", where all is a function of
    the arguments and the features tracked; or "live", where batches enter when they arrive and a
    draw never waits for one. `features`: a function that returns the features of pictures that just
    arrived, [n, 3, size, size] uint8 to [n, feature_dim]; without it a sample has none until it is
    first tracked.

    >>> buffer = riffle.ReplayBuffer("minred", capacity=32, size=32, feature_dim=4, batch=8)
    >>> loader = riffle.ReplayLoader("synthetic:?frames=4&size=32&samples=64", buffer, batch=8, updates=3)
    >>> for batch in loader:
    ...     loader.track(batch, torch.randn(8, 4))  # the features of your network
    >>> batch.update, loader.samples_seen
    (14, 64)
    """

    def __init__(self, stream: Stream | str | Iterable[Any], buffer: ReplayBuffer, batch: int = 256,
                 updates: int = 5, *, stream_batch: int | None = None, fresh: float = 0.0,
                 clock: str = "lockstep", seed: int = 0,
                 features: Callable[[Tensor], Tensor] | None = None) -> None:
        values = settings({"batch": batch, "updates": updates, "stream_batch": stream_batch or batch,
                           "fresh": fresh, "clock": clock}, "train")
        arrival = None if features is None else self._arrival(features, buffer)
        self._loader = _riffle.ReplayLoader(as_stream(stream)._handle, buffer._buffer, values,
                                            checked_seed(seed), arrival)
        self._buffer = buffer
        close_at_exit(self)

    @staticmethod
    def _arrival(features: Callable[[Tensor], Tensor],
                 buffer: ReplayBuffer) -> Callable[[Tensor], Tensor]:
        def call(pictures: Tensor) -> Tensor:
            with torch.no_grad():
                return buffer._checked(features(channels_first(pictures)), len(pictures))
        return call

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        """Returns the next batch. Ctrl-C loses nothing: call again to continue."""
        drawn = self._loader.next()
        if drawn is None:
            raise StopIteration
        return Batch(drawn)

    def track(self, batch: Batch, features: Tensor) -> None:
        """Hands the features of a batch, [n, feature_dim], to the buffer, whose policy compares them.

        >>> buffer = riffle.ReplayBuffer("minred", capacity=16, size=32, feature_dim=4, batch=8)
        >>> loader = riffle.ReplayLoader("synthetic:?frames=4&size=32", buffer, batch=8)
        >>> loader.track(next(loader), torch.randn(8, 4))
        >>> buffer.stats()["tracked_share"]
        0.5
        """
        self._buffer.track(batch, features)

    def state_dict(self) -> dict[str, Tensor]:
        """Returns the exact state of loader, buffer and place in the stream, for torch.save().

        A new loader, made in the same way, continues with the very batches that this one would give:

        >>> def make():
        ...     buffer = riffle.ReplayBuffer("reservoir", capacity=16, size=32, batch=8)
        ...     return riffle.ReplayLoader("synthetic:?frames=4&size=32", buffer, batch=8)
        >>> loader = make()
        >>> start = [next(loader) for _ in range(7)]
        >>> again = make()
        >>> again.load_state_dict(loader.state_dict())
        >>> torch.equal(next(loader).pictures, next(again).pictures)
        True
        """
        return dict(self._loader.save())

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continues where state_dict() was called. Raises Error unless this loader is new."""
        if self._loader.batches_taken() > 0:
            raise Error("load_state_dict() needs a new loader: this one has read its stream")
        self._loader.restore(list(state.items()))

    @property
    def update(self) -> int:
        """Batches given so far."""
        return self._loader.draws()

    @property
    def samples_seen(self) -> int:
        """Samples that entered the buffer so far."""
        return self._loader.samples_seen()

    def position(self) -> str:
        """Returns the stream's position after the last batch that entered the buffer.

        >>> buffer = riffle.ReplayBuffer("fifo", capacity=16, size=32, batch=8)
        >>> loader = riffle.ReplayLoader("synthetic:?frames=4&size=32", buffer, batch=8)
        >>> batch = next(loader)
        >>> stream = riffle.open_stream("synthetic:?frames=4&size=32")
        >>> stream.seek(loader.position())
        >>> next(stream).index
        16
        """
        return self._loader.position()

    def skipped(self) -> dict[str, int]:
        """Returns how many items the stream skipped, by reason; see Stream.skipped()."""
        return self._loader.skipped()

    def stop(self) -> None:
        """Ends the wait for the stream, from any thread; the iteration ends.

        >>> buffer = riffle.ReplayBuffer("fifo", capacity=16, size=32, batch=8)
        >>> loader = riffle.ReplayLoader("synthetic:?frames=4&size=32", buffer, batch=8)
        >>> for batch in loader:
        ...     if batch.update == 10: loader.stop()  # a camera would run forever
        >>> loader.skipped()
        {}
        >>> loader.close()
        """
        self._loader.stop()

    def close(self) -> None:
        """Ends the loader's threads. It cannot be used after that; its buffer can."""
        self._loader.close()
