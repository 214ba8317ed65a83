"""Streams: addresses, iterables of Python, places, errors."""

import os

import numpy
import pytest
import torch
from conftest import pictures, require_refusal
from PIL import Image

import riffle

SYNTHETIC = "synthetic:?frames=4&size=32"


def test_gives_samples_in_order():
    stream = riffle.open_stream(SYNTHETIC)
    samples = [next(stream) for _ in range(9)]
    assert [sample.index for sample in samples] == list(range(9))
    assert [sample.clip for sample in samples] == [0] * 4 + [1] * 4 + [2]
    assert samples[0].picture.shape == (3, 32, 32)
    assert samples[0].label


def test_finds_its_place_again():
    stream = riffle.open_stream(SYNTHETIC, shapes=["limit:samples=20"])
    for _ in range(7):
        next(stream)
    place = stream.position()
    rest = [sample.picture for sample in stream]
    again = riffle.open_stream(SYNTHETIC, shapes=["limit:samples=20"])
    again.seek(place)
    assert len(rest) == 13
    assert all(torch.equal(one, other.picture) for one, other in zip(rest, again, strict=True))


def test_reads_files_and_counts_what_it_skips(tmp_path):
    Image.fromarray(numpy.full((40, 60, 3), 200, dtype=numpy.uint8)).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"not a picture")
    stream = riffle.open_stream(f"folder:{tmp_path}?order=name")
    samples = list(stream)
    assert [sample.key.endswith("a.png") for sample in samples] == [True]
    assert samples[0].picture.shape == (3, 40, 60) and int(samples[0].picture[0, 0, 0]) == 200
    assert sum(stream.skipped().values()) == 1


def test_names_need_not_be_utf_8(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    for name in (b"a\xff.png", b"b.png"):
        Image.fromarray(numpy.zeros((8, 8, 3), dtype=numpy.uint8)).save(folder / os.fsdecode(name))
    address = f"folder:{tmp_path}?order=name"
    stream = riffle.open_stream(address)
    sample = next(stream)
    assert sample.label == folder.name
    with open(sample.key, "rb") as file:  # the very file
        assert file.read(4) == b"\x89PNG"
    again = riffle.open_stream(address)
    again.seek(stream.position())
    assert next(again).key == next(stream).key
    require_refusal(lambda: riffle.open_stream(f"folder:{folder / 'absent'}"), r"caf\\xe9/absent")


def test_python_gives_names_that_are_not_utf_8():
    name = os.fsdecode(b"caf\xe9")
    sample = next(riffle.open_stream([riffle.Sample(pictures(1)[0], label=name, key=name)]))
    assert (sample.label, sample.key) == (name, name)


@pytest.mark.parametrize("given", [
    torch.arange(3 * 4 * 5, dtype=torch.uint8).view(3, 4, 5),
    numpy.arange(3 * 4 * 5, dtype=numpy.uint8).reshape(3, 4, 5).transpose(1, 2, 0),
    Image.fromarray(numpy.ascontiguousarray(
        numpy.arange(3 * 4 * 5, dtype=numpy.uint8).reshape(3, 4, 5).transpose(1, 2, 0))),
], ids=["tensor", "array", "Pillow"])
def test_takes_pictures_of_python(given):
    sample = next(riffle.open_stream([given]))
    assert torch.equal(sample.picture, torch.arange(3 * 4 * 5, dtype=torch.uint8).view(3, 4, 5))


def test_takes_labels_and_clips_of_python():
    picture = pictures(1)[0]
    given = [picture, (picture, "cat"), riffle.Sample(picture, clip=3, label="dog", key="d.png")]
    known = [(s.index, s.clip, s.label, s.key) for s in riffle.open_stream(given)]
    assert known == [(0, -1, "", ""), (1, -1, "cat", ""), (2, 3, "dog", "d.png")]


def test_an_iterable_finds_its_place_by_counting():
    given = list(pictures(10))
    stream = riffle.open_stream(given)
    for _ in range(4):
        next(stream)
    again = riffle.open_stream(given)
    again.seek(stream.position())
    sample = next(again)
    assert sample.index == 4 and torch.equal(sample.picture, given[4])


class Camera:
    """A stream with a place of its own."""

    def __init__(self):
        self.frame = 0

    def __iter__(self):
        while True:
            self.frame += 1
            yield torch.full((3, 8, 8), self.frame, dtype=torch.uint8)

    def position(self):
        return f"frame {self.frame}"

    def seek(self, position):
        self.frame = int(position.split()[1])


def test_an_object_with_places_is_asked_for_them():
    stream = riffle.open_stream(Camera())
    for _ in range(4):
        next(stream)
    again = riffle.open_stream(Camera())
    again.seek(stream.position())
    assert int(next(again).picture[0, 0, 0]) == 5


def test_an_iterator_cannot_go_back():
    stream = riffle.open_stream(iter(pictures(5)))
    next(stream)
    with pytest.raises(riffle.Error, match="cannot go back"):
        stream.seek("0")


@pytest.mark.parametrize("source, shapes, message", [
    ("foldr:photos", [], "folder"),
    ("folder:no/such/folder", [], "no/such/folder"),
    ("synthetic:?frame=4", [], "frames"),
    ("synthetic:", ["clip:length=4"], "clips"),
    (17, [], "an iterable of pictures, not int"),
    ([torch.zeros(3, 4, 4)], [], r"uint8 tensor \[3, height, width\], not float32"),
    ([numpy.zeros((4, 4), dtype=numpy.uint8)], [], "uint8 array"),
    ([riffle.Sample(pictures(1)[0], label=3)], [], "label of a sample must be a string, not int"),
    ([riffle.Sample(pictures(1)[0], clip=0.5)], [], "clip of a sample must be a whole number, not 0.5"),
    ([riffle.Sample(pictures(1)[0], clip=2**63)], [], r"clip of a sample must be in \[-2\^63, 2\^63\)"),
    ([riffle.Sample(pictures(1)[0], label="\ud800")], [], r"'\\ud800' has half of a character"),
    ([riffle.Sample(pictures(1)[0], key="\ud800")], [], r"'\\ud800' has half of a character"),
    ("folder:a\n\ud800", [], r"'folder:a\\x0a\\ud800' has half of a character"),
    ("synthetic:", ["limit:samples=\ud800"], r"ud800' has half of a character"),
])
def test_errors_are_one_line_that_says_what_to_do(source, shapes, message):
    require_refusal(lambda: next(riffle.open_stream(source, shapes)), message)


def test_what_a_python_stream_raises_is_named():
    def broken():
        yield pictures(1)[0]
        raise OSError("the camera is gone")

    stream = riffle.open_stream(broken())
    next(stream)
    with pytest.raises(riffle.Error, match="OSError: the camera is gone"):
        next(stream)


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize("raised, message", [
    (OSError("no\npicture"), r"OSError: no\\x0apicture"),
    (OSError("no \ud800"), r"OSError: no \\ud800"),
    (Unspeakable(), r"Unspeakable: \(no text\)"),
], ids=["lines", "surrogate", "no text"])
def test_what_a_python_stream_raises_is_one_line_whatever_it_says(raised, message):
    def broken():
        raise raised
        yield

    require_refusal(lambda: next(riffle.open_stream(broken())), f"^the stream failed: {message}$")


def test_a_place_that_no_stream_reaches_is_refused():
    stream = riffle.open_stream(Camera())
    require_refusal(lambda: stream.seek(f"{2**64} frame 5"), "is not a position")


def test_a_stop_that_fails_is_a_warning(capfd):
    class Unstoppable(Camera):
        def stop(self):
            raise OSError("no way")

    stream = riffle.open_stream(Unstoppable())
    next(stream)
    stream.close()
    assert "OSError: no way" in capfd.readouterr().err


def test_a_closed_stream_says_so():
    stream = riffle.open_stream(SYNTHETIC)
    stream.close()
    stream.close()
    with pytest.raises(riffle.Error, match="this stream was closed"):
        next(stream)
