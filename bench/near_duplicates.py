#!/usr/bin/env python3
"""How well `riffle curate --near` finds near-duplicates, beside imagededup and fastdup.

Makes a folder of pictures with known duplicates, out of tar shards or, with --films, of films. Of
every fourth picture of a shard there are a crop, a strong JPEG, a brighter and a smaller version; of
every second film the frame one second later. Then for several distances: recall (duplicates dropped,
of all), precision (dropped ones that repeat the picture they were said to repeat, of all dropped)
and seconds. Needs numpy, Pillow, imagededup and fastdup.

    bench/near_duplicates.py --encoder runs/encoder --pictures 2000 /data/train-000000.tar
    bench/near_duplicates.py --encoder runs/encoder --films '/data/ucf101_10/*/*_c01.mp4'
"""

import argparse
import contextlib
import csv
import io
import os
import pathlib
import random
import subprocess
import tarfile
import tempfile
import time

import numpy
from PIL import Image, ImageEnhance


def variants(picture):
    width, height = picture.size
    edge_x, edge_y = width // 20, height // 20
    yield picture.crop((edge_x, edge_y, width - edge_x, height - edge_y)).resize((width, height)), 90
    yield picture, 25
    yield ImageEnhance.Brightness(picture).enhance(1.25), 90
    yield picture.resize((width * 3 // 4, height * 3 // 4)), 90


def pictures_of(options):
    """Yields groups of JPEGs that are duplicates of one another, from a shard."""
    with tarfile.open(options.tar) as archive:
        members = (member for member in archive if member.name.endswith(".jpg"))
        for origin, member in zip(range(options.pictures), members):
            group = [archive.extractfile(member).read()]
            if origin % 4 == 0:
                picture = Image.open(io.BytesIO(group[0])).convert("RGB")
                for changed, quality in variants(picture):
                    out = io.BytesIO()
                    changed.save(out, "JPEG", quality=quality)
                    group.append(out.getvalue())
            yield group


def frames_of(options, folder):
    """Yields groups of frames, at 0 s and every second time also at 1 s of a film."""
    frames = folder / "frames"
    curate(options, f"video:{options.films}?fps=1", frames, "--keep", "1000000")
    films = {}
    with open(frames / "selection.csv", newline="") as table:
        for line in csv.DictReader(table):
            films.setdefault(line["key"].rpartition("#")[0], []).append(
                (int(line["index"]), frames / "pictures" / line["file"]))
    for origin, film in enumerate(sorted(films)):
        wanted = sorted(films[film])[: 2 if origin % 2 == 0 else 1]
        yield [path.read_bytes() for _, path in wanted]


def write_set(groups, folder):
    """Writes NUMBER_ORIGIN.jpg files in a random order; those of one origin are duplicates."""
    files = [(origin, data) for origin, group in enumerate(groups) for data in group]
    random.Random(1).shuffle(files)
    for number, (origin, data) in enumerate(files):
        (folder / f"{number:06d}_{origin:06d}.jpg").write_bytes(data)
    return len(files), len(files) - len({origin for origin, _ in files})


def origin_of(name):
    return pathlib.Path(name).stem.split("_")[1]


def curate(options, stream, out, *more):
    subprocess.run([options.riffle, "curate", stream, "--encoder", options.encoder, "--out",
                    str(out), *more],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def riffle_pairs(options, folder, out, near):
    curate(options, f"folder:{folder}", out, "--keep", "1000000", "--near", str(near), "--list",
           "--assignments")
    with open(out / "assignments.csv", newline="") as table:
        return [(line["key"], line["kept_key"]) for line in csv.DictReader(table)]


def dropped(names, nearest_first):
    """Drops each picture that is near one before it that was not dropped."""
    kept, pairs = set(), []
    for name in names:
        repeats = next((other for other in nearest_first(name) if other in kept), None)
        if repeats is None:
            kept.add(name)
        else:
            pairs.append((name, repeats))
    return pairs


def imagededup_pairs(hashes, names, bits):
    rows = numpy.array([[int(digit, 16) for digit in hashes[name]] for name in names], dtype=numpy.uint8)
    rows = numpy.unpackbits(rows, axis=1)
    place = {name: number for number, name in enumerate(names)}

    def nearest_first(name):
        distances = (rows != rows[place[name]]).sum(axis=1)
        return [names[other] for other in distances.argsort(kind="stable")
                if distances[other] <= bits]

    return dropped(names, nearest_first)


def fastdup_pairs(similar, names, least):
    def nearest_first(name):
        return [other for score, other in sorted(similar.get(name, []), reverse=True)
                if score >= least]

    return dropped(names, nearest_first)


def quietly(what):
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), \
            contextlib.redirect_stderr(nothing):
        begin = time.monotonic()
        result = what()
        return result, time.monotonic() - begin


def fastdup_similar(folder, work):
    """Returns for each picture those that fastdup finds similar, with cosine similarities."""
    import fastdup
    found = fastdup.create(work_dir=str(work), input_dir=str(folder))
    found.run(nearest_neighbors_k=10, threshold=0.5)
    similar = {}
    for line in found.similarity().itertuples():
        one, other = pathlib.Path(line.filename_from).name, pathlib.Path(line.filename_to).name
        similar.setdefault(one, []).append((line.distance, other))
        similar.setdefault(other, []).append((line.distance, one))
    return similar


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tar", nargs="?")
    parser.add_argument("--films", help="a pattern of films, in the place of a shard")
    parser.add_argument("--riffle", default="build/riffle")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--pictures", type=int, default=2000)
    options = parser.parse_args()
    if (options.tar is None) == (options.films is None):
        parser.error("give a tar shard or --films")
    import imagededup.methods

    with tempfile.TemporaryDirectory() as top:
        top = pathlib.Path(top)
        folder = top / "pictures"
        folder.mkdir()
        groups = frames_of(options, top) if options.films else pictures_of(options)
        files, duplicates = write_set(groups, folder)
        names = sorted(path.name for path in folder.iterdir())
        print(f"{files} pictures, {duplicates} of them duplicates")

        def show(what, pairs, seconds):
            right = sum(origin_of(one) == origin_of(other) for one, other in pairs)
            print(f"{what:28} recall {right / duplicates:.3f}  "
                  f"precision {right / max(1, len(pairs)):.3f}  {seconds:5.1f} s", flush=True)

        for near in (0.001, 0.003, 0.01, 0.02, 0.03, 0.05):
            begin = time.monotonic()
            pairs = riffle_pairs(options, folder, top / f"near-{near}", near)
            show(f"riffle curate --near {near}", pairs, time.monotonic() - begin)
        for method in (imagededup.methods.PHash, imagededup.methods.DHash):
            hashes, seconds = quietly(lambda: method(verbose=False).encode_images(str(folder)))
            for bits in (2, 6, 10, 14, 18):
                show(f"imagededup {method.__name__}, {bits} bits",
                     imagededup_pairs(hashes, names, bits), seconds)
        similar, seconds = quietly(lambda: fastdup_similar(folder, top / "fastdup"))
        for least in (0.98, 0.96, 0.94, 0.92, 0.9, 0.85, 0.8):
            show(f"fastdup, similarity {least}", fastdup_pairs(similar, names, least), seconds)


if __name__ == "__main__":
    main()
