"""The little of the stream that is kept."""

from typing import Any, Mapping, Sequence

import torch
from torch import Tensor

from . import _riffle
from ._lists import integers, texts
from ._load import Error
from ._pictures import channels_first, picture_batch
from ._settings import checked_seed, settings


class Batch:
    """Samples drawn for one update.

    >>> buffer = riffle.ReplayBuffer("fifo", capacity=8, size=32, batch=8)
    >>> buffer.insert(torch.zeros(8, 3, 32, 32, dtype=torch.uint8), labels=list("abcdefgh"))
    >>> batch = buffer.sample(4)
    >>> len(batch), batch.pictures.shape, batch.update
    (4, torch.Size([4, 3, 32, 32]), 0)
    """

    __slots__ = ("_drawn", "pictures")

    pictures: Tensor
    """[n, 3, size, size] uint8, in the memory that the buffer keeps them in; yours to keep."""

    def __init__(self, drawn: _riffle.Batch) -> None:
        self._drawn = drawn
        self.pictures = channels_first(drawn.pictures)

    @property
    def update(self) -> int:
        """The number of draws before this one: the `step` of two_views(), for runs that can be repeated."""
        return self._drawn.update

    @property
    def slots(self) -> list[int]:
        """Where in the buffer the samples are."""
        return self._drawn.slots

    @property
    def indices(self) -> list[int]:
        """The samples' places in the stream."""
        return self._drawn.indices

    @property
    def clips(self) -> list[int]:
        """The samples' clips; -1: none."""
        return self._drawn.clips

    @property
    def labels(self) -> list[str]:
        """The samples' labels, empty where the stream knows none. A method must not look at them."""
        return self._drawn.labels

    def __len__(self) -> int:
        return len(self.pictures)


class ReplayBuffer:
    """A buffer of bounded size, and a policy that decides who leaves when it is full.

    `policy`: "merge" (what is alike becomes one sample with a weight), "minred" (one of the most
    similar pair leaves), "reservoir" (at random), "fifo" (the oldest) or "none" (each batch of the
    stream is used once). The first two compare features: bring them with insert() or track().

    `capacity`: samples, or memory for everything: "8GiB". `size`: side of the stored pictures, px.
    `feature_dim`: width of your features. `device`: where your network is; with "cuda" pictures are
    kept there too if they fit. `batch`: the most samples in one insert. All memory is taken at once.
    Further keys of the configuration's buffer part go as keywords, such as storage="jpeg",
    momentum=0.5 or draw="weight"; `riffle config` lists them.

    Raises Error for values that make no sense, naming the key, or that do not fit into memory.

    >>> buffer = riffle.ReplayBuffer("minred", capacity=4, size=32, feature_dim=2, batch=4)
    >>> pictures = torch.zeros(4, 3, 32, 32, dtype=torch.uint8)
    >>> ways = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> buffer.insert(pictures, ways, labels=["east", "north", "west", "south"])
    >>> buffer.insert(pictures, torch.tensor([[1.0, 0.01]] * 4), labels=["east again"] * 4)
    >>> sorted(buffer.label_counts())
    ['east again', 'north', 'south', 'west']
    """

    def __init__(self, policy: str = "merge", capacity: int | str = 65536, size: int = 224,
                 feature_dim: int = 2048, device: str | torch.device = "cpu", *, batch: int = 256,
                 seed: int = 0, **options: Any) -> None:
        for name, value in (("size", size), ("batch", batch), ("feature_dim", feature_dim)):
            if value < 1:
                raise Error(f"{name} must be at least 1, not {value}")
        values = settings({"policy": policy, "capacity": capacity, **options}, "buffer")
        self._buffer = _riffle.ReplayBuffer(values, batch, size, feature_dim, checked_seed(seed),
                                            str(device))
        self._sampled = 0
        self._seed = seed
        self._feature_dim = feature_dim

    def insert(self, pictures: Tensor, features: Tensor | None = None, *,
               clips: Sequence[int] | None = None, labels: Sequence[str] | None = None) -> None:
        """Inserts [n, 3, size, size] uint8, in order of arrival; the policy says who leaves.

        `features`: [n, feature_dim], of any length.

        >>> buffer = riffle.ReplayBuffer("fifo", capacity=8, size=32, batch=8)
        >>> buffer.insert(torch.zeros(5, 3, 32, 32, dtype=torch.uint8), clips=[0, 0, 0, 1, 1])
        >>> len(buffer), buffer.capacity, buffer.size, buffer.device
        (5, 8, 32, device(type='cpu'))
        """
        pixels = picture_batch(pictures)
        count, size, most = len(pixels), self.size, self._buffer.batch()
        if list(pixels.shape[1:3]) != [size, size]:
            raise Error(f"the buffer keeps pictures of {size} x {size} px, not {list(pictures.shape)}")
        if count > most:
            raise Error(f"{count} samples at once; this buffer was made for at most batch={most}")
        for name, given in (("clips", clips), ("labels", labels)):
            if given is not None and len(given) != count:
                raise Error(f"{len(given)} {name} for {count} pictures")
        clip_list = [] if clips is None else integers(clips, "clips")
        label_list = [] if labels is None else texts(labels, "labels")
        rows = None if features is None else self._checked(features, count)
        self._buffer.insert(pixels, rows, clip_list, label_list)

    def sample(self, n: int) -> Batch:
        """Returns n distinct samples, drawn at random. A function of the seed and the draws before.

        >>> buffer = riffle.ReplayBuffer("fifo", capacity=8, size=32, batch=8)
        >>> buffer.insert(torch.zeros(8, 3, 32, 32, dtype=torch.uint8))
        >>> sorted(buffer.sample(8).indices)
        [0, 1, 2, 3, 4, 5, 6, 7]
        """
        if not 0 < n <= len(self):
            raise Error(f"cannot draw {n} of {len(self)} samples")
        step = self._sampled
        self._sampled += 1  # before other threads draw
        try:
            return Batch(self._buffer.sample(n, self._seed, step))
        except BaseException:
            self._sampled -= 1  # after Ctrl-C, too, the next draw is this one
            raise

    def track(self, batch: Batch, features: Tensor) -> None:
        """Takes the features that your network gave for a batch, [n, feature_dim]; samples that left are skipped.

        >>> buffer = riffle.ReplayBuffer("minred", capacity=8, size=32, feature_dim=4, batch=8)
        >>> buffer.insert(torch.zeros(8, 3, 32, 32, dtype=torch.uint8))
        >>> buffer.track(buffer.sample(2), torch.randn(2, 4))
        >>> buffer.stats()["tracked_share"]
        0.25
        """
        self._buffer.track(batch._drawn, self._checked(features, len(batch)))

    def pictures(self, slots: Sequence[int]) -> Tensor:
        """Returns the pictures in these slots, [n, 3, size, size] uint8.

        >>> buffer = riffle.ReplayBuffer("fifo", capacity=8, size=32, batch=8)
        >>> buffer.insert(torch.zeros(3, 3, 32, 32, dtype=torch.uint8))
        >>> buffer.pictures(buffer.slots()).shape
        torch.Size([3, 3, 32, 32])
        """
        return channels_first(self._buffer.pictures(integers(slots, "slots")))

    def slots(self) -> list[int]:
        """Returns the slots that hold a sample, in no particular order."""
        return self._buffer.live()

    def stats(self, nearest: bool = False) -> dict[str, Any]:
        """Returns size, ages, draws, clips and evictions; `nearest`: also how redundant it is (slow)."""
        return self._buffer.stats(nearest)

    def label_counts(self) -> dict[str, int]:
        """Returns how many samples of each label are held.

        >>> buffer = riffle.ReplayBuffer("fifo", capacity=8, size=32, batch=8)
        >>> buffer.insert(torch.zeros(3, 3, 32, 32, dtype=torch.uint8), labels=["cat", "dog", "cat"])
        >>> buffer.label_counts()
        {'cat': 2, 'dog': 1}
        """
        return self._buffer.label_counts()

    def state_dict(self) -> dict[str, Any]:
        """Returns the exact state, for torch.save(). A loader's state holds its buffer's too.

        >>> buffer = riffle.ReplayBuffer("fifo", capacity=8, size=32, batch=8)
        >>> buffer.insert(torch.zeros(8, 3, 32, 32, dtype=torch.uint8))
        >>> again = riffle.ReplayBuffer("fifo", capacity=8, size=32, batch=8)
        >>> again.load_state_dict(buffer.state_dict())
        >>> again.sample(4).indices == buffer.sample(4).indices
        True
        """
        return {"buffer": dict(self._buffer.save()), "inserted": self._buffer.inserted(),
                "sampled": self._sampled}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues as the buffer of state_dict() would; it must have been made in the same way."""
        if not {"buffer", "inserted", "sampled"} <= state.keys():
            raise Error("this is not the state_dict() of a ReplayBuffer")
        self._buffer.restore(list(state["buffer"].items()), state["inserted"])
        self._sampled = state["sampled"]

    @property
    def capacity(self) -> int:
        """The most samples held."""
        return self._buffer.capacity()

    @property
    def size(self) -> int:
        """Side of the stored pictures, px."""
        return self._buffer.picture_size()

    @property
    def device(self) -> torch.device:
        """Where the pictures are kept."""
        return torch.device(self._buffer.device())

    def __len__(self) -> int:
        return self._buffer.size()

    def _checked(self, features: Tensor, rows: int) -> Tensor:
        if not isinstance(features, Tensor) or not features.is_floating_point() \
                or list(features.shape) != [rows, self._feature_dim]:
            kind = list(features.shape) if isinstance(features, Tensor) else type(features).__name__
            raise Error(f"features must be a float tensor [{rows}, {self._feature_dim}], not {kind}")
        return features.detach()
