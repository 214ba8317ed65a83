"""Where pictures come from."""

import dataclasses
import operator
from typing import Any, Iterable, Iterator, Sequence

from torch import Tensor

from . import _riffle
from ._closing import close_at_exit
from ._lists import require_room
from ._load import Error
from ._pictures import channels_first, one_picture

NO_CLIP = -1


@dataclasses.dataclass
class Sample:
    """A picture of a stream and what the stream knows of it.

    >>> sample = next(riffle.open_stream("synthetic:?frames=8&size=32"))
    >>> sample.picture.shape, sample.picture.dtype, sample.index, sample.clip
    (torch.Size([3, 32, 32]), torch.uint8, 0, 0)
    """

    picture: Any
    """[3, height, width] uint8. A stream of yours may also give an array or an image of Pillow."""
    index: int = 0
    """The number of samples that the stream gave before this one."""
    clip: int = NO_CLIP
    """The same for consecutive samples of one shot; -1: none."""
    label: str = ""
    """Empty if the stream knows none. Training never reads it."""
    key: str = ""
    """Where it came from: a path, a URL, a member of a shard."""


class Stream:
    """A stream of pictures that never has to end: each Sample is seen once, in order.

    open_stream() makes one. It is an iterator; what cannot be decoded is skipped and counted.

    >>> stream = riffle.open_stream("synthetic:?frames=8&size=32")
    >>> first = [next(stream).index for _ in range(5)]
    >>> place = stream.position()
    >>> after = next(stream)
    >>> stream.seek(place)
    >>> next(stream).index == after.index == 5
    True
    """

    def __init__(self, handle: _riffle.Stream, name: str) -> None:
        self._handle = handle
        self._name = name
        close_at_exit(self)

    def __iter__(self) -> Iterator[Sample]:
        return self

    def __next__(self) -> Sample:
        """Returns the next sample. Ctrl-C loses none: the sample awaited is the next one returned."""
        given = self._handle.next()
        if given is None:
            raise StopIteration
        picture, index, clip, label, key = given
        return Sample(channels_first(picture), index, clip, label, key)

    def position(self) -> str:
        """Returns a short text that says where the stream is, for seek()."""
        return self._handle.position()

    def seek(self, position: str) -> None:
        """Continues where position() said, also in a stream that was opened again in the same way."""
        self._handle.seek(position)

    def skipped(self) -> dict[str, int]:
        """Returns how many items were skipped since the stream was opened, by reason.

        >>> stream = riffle.open_stream("synthetic:?frames=8&size=32")
        >>> stream.skipped()
        {}
        >>> stream.close()
        """
        return self._handle.skipped()

    def close(self) -> None:
        """Ends the threads of the stream. It cannot be used after that."""
        self._handle.close()

    def __repr__(self) -> str:
        return f"<riffle.Stream {self._name}>"


class _Source:
    """What the C++ side reads a Python stream through."""

    def __init__(self, iterable: Iterable[Any]) -> None:
        self._iterable = iterable
        self._iterator = iter(iterable)
        self._given = 0
        self._stopped = False

    def next(self) -> tuple[Tensor, int, str, str] | None:
        item = None if self._stopped else next(self._iterator, None)
        if item is None:
            return None
        if isinstance(item, tuple):
            item = Sample(item[0], label=str(item[1]))
        elif not isinstance(item, Sample):
            item = Sample(item)
        picture = one_picture(item.picture)
        for name, text in (("label", item.label), ("key", item.key)):
            if not isinstance(text, str):
                raise Error(f"the {name} of a sample must be a string, not {type(text).__name__}")
        try:
            clip = operator.index(item.clip)
        except TypeError:
            raise Error(f"the clip of a sample must be a whole number, not {item.clip!r:.60}") from None
        require_room(clip, "the clip of a sample")
        self._given += 1
        return picture, clip, item.label, item.key

    def position(self) -> str:
        if hasattr(self._iterable, "position"):
            return f"{self._given} {self._iterable.position()}"
        return str(self._given)

    def seek(self, text: str) -> int:
        given, _, position = text.partition(" ")
        known = hasattr(self._iterable, "position")
        if not given.isdecimal() or int(given) >= 2**64 or bool(position) != known:
            raise ValueError(f"'{text}' is not a position of this stream")
        if position:
            self._iterable.seek(position)  # type: ignore[attr-defined]
            self._iterator = iter(self._iterable)
        else:
            again = iter(self._iterable)
            if again is self._iterator and int(given) < self._given:
                raise ValueError("an iterator cannot go back: give a list, or an object with "
                                 "position() and seek()")
            for _ in range(int(given) - (self._given if again is self._iterator else 0)):
                next(again, None)
            self._iterator = again
        self._given = int(given)
        return self._given

    def stop(self) -> None:
        self._stopped = True
        if hasattr(self._iterable, "stop"):
            self._iterable.stop()


def open_stream(source: str | Iterable[Any], shapes: str | Sequence[str] = ()) -> Stream:
    """Opens a stream: an address, or anything of Python that gives pictures.

    `source`: "folder:photos", "shards:train-*.tar", "video:films/*.mp4?fps=5", "urls:list.txt",
    "synthetic:?frames=64" (docs/streams.md has them all); or an iterable of pictures, of
    (picture, label) or of Sample, where a picture is a uint8 tensor [3, height, width], an array
    [height, width, 3] or an image of Pillow. If the iterable has position() and seek(text), training
    resumes by them; otherwise by counting. A stop() that it has is called from another thread, to
    end a wait.

    `shapes`: what is put around the stream, the innermost first: ["clips:length=64", "loop"].

    Raises Error for an unknown address, shape or option, naming the nearest valid one.

    >>> photos = [torch.full((3, 48, 64), value, dtype=torch.uint8) for value in range(10)]
    >>> stream = riffle.open_stream(photos, shapes=["loop"])
    >>> [int(next(stream).picture[0, 0, 0]) for _ in range(12)]
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    """
    around = shapes if isinstance(shapes, str) else ",".join(shapes)
    if isinstance(source, str):
        return Stream(_riffle.open_stream(source, around), source)
    if isinstance(source, Stream):
        raise Error("this is a stream already: give its address, and shapes with it")
    if not isinstance(source, Iterable):
        raise Error(f"a stream is an address or an iterable of pictures, not {type(source).__name__}")
    return Stream(_riffle.open_python_stream(lambda: _Source(source), around), type(source).__name__)


def as_stream(source: Stream | str | Iterable[Any]) -> Stream:
    """Returns a stream as it is, and opens anything else."""
    return source if isinstance(source, Stream) else open_stream(source)
