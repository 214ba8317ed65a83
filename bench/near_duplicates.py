#!/usr/bin/env python3
"""How well `riffle curate --near` finds near-duplicates, beside perceptual hashes.

Makes a folder of pictures with known duplicates out of a folder or tar shards: of every fourth
picture a crop, a strong JPEG, a brighter and a smaller version. Then for several distances: recall
(duplicates dropped, of all) and precision (dropped ones that repeat the picture they were said to
repeat, of all dropped). Needs numpy, Pillow and ImageHash.

    bench/near_duplicates.py --riffle build/riffle --encoder runs/encoder --pictures 2000 \
        /data/train-000000.tar
"""

import argparse
import csv
import io
import pathlib
import random
import subprocess
import tarfile
import tempfile

import imagehash
import numpy
from PIL import Image, ImageEnhance


def variants(picture):
    width, height = picture.size
    edge_x, edge_y = width // 20, height // 20
    yield picture.crop((edge_x, edge_y, width - edge_x, height - edge_y)).resize((width, height)), 90
    yield picture, 25
    yield ImageEnhance.Brightness(picture).enhance(1.25), 90
    yield picture.resize((width * 3 // 4, height * 3 // 4)), 90


def make_set(tar, count, folder):
    """Writes NUMBER_ORIGIN.jpg files in a random order; those of one origin are duplicates."""
    files = []
    with tarfile.open(tar) as archive:
        for member in archive:
            if len([origin for origin, kind, _ in files if kind == 0]) == count:
                break
            if not member.name.endswith(".jpg"):
                continue
            data = archive.extractfile(member).read()
            origin = len({origin for origin, _, _ in files})
            files.append((origin, 0, data))
            if origin % 4:
                continue
            picture = Image.open(io.BytesIO(data)).convert("RGB")
            for kind, (changed, quality) in enumerate(variants(picture), 1):
                out = io.BytesIO()
                changed.save(out, "JPEG", quality=quality)
                files.append((origin, kind, out.getvalue()))
    random.Random(1).shuffle(files)
    for number, (origin, _, data) in enumerate(files):
        (folder / f"{number:06d}_{origin:06d}.jpg").write_bytes(data)
    return len(files), len(files) - count


def origin_of(key):
    return pathlib.Path(key).stem.split("_")[1]


def score(pairs, duplicates):
    right = sum(origin_of(a) == origin_of(b) for a, b in pairs)
    return right / duplicates, right / max(1, len(pairs))


def riffle_pairs(options, folder, out, near):
    subprocess.run([options.riffle, "curate", f"folder:{folder}", "--keep",
                    str(options.pictures * 3), "--near", str(near), "--encoder", options.encoder,
                    "--out", str(out), "--list", "--assignments"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(out / "assignments.csv", newline="") as table:
        return [(line["key"], line["kept_key"]) for line in csv.DictReader(table)]


def hash_pairs(hashes, distance):
    """Drops what is within the distance, in bits, of an earlier picture that was not dropped."""
    kept, rows, pairs = [], numpy.zeros((len(hashes), 64), dtype=bool), []
    for name, bits in hashes:
        distances = (rows[: len(kept)] != bits).sum(axis=1)
        if len(kept) and distances.min() <= distance:
            pairs.append((name, kept[int(distances.argmin())]))
        else:
            rows[len(kept)] = bits
            kept.append(name)
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tar")
    parser.add_argument("--riffle", default="build/riffle")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--pictures", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top) / "pictures"
        folder.mkdir()
        files, duplicates = make_set(options.tar, options.pictures, folder)
        print(f"{files} pictures, {duplicates} of them duplicates")
        for near in (0.001, 0.003, 0.01, 0.02, 0.03):
            pairs = riffle_pairs(options, folder, pathlib.Path(top) / f"near-{near}", near)
            recall, precision = score(pairs, duplicates)
            print(f"riffle curate --near {near:<6} recall {recall:.3f}  precision {precision:.3f}")
        for hash_of in (imagehash.phash, imagehash.dhash):
            hashes = [(str(path), hash_of(Image.open(path)).hash.flatten())
                      for path in sorted(folder.iterdir())]
            for distance in (2, 6, 10, 14):
                recall, precision = score(hash_pairs(hashes, distance), duplicates)
                print(f"{hash_of.__name__}, {distance:2} of 64 bits    recall {recall:.3f}  "
                      f"precision {precision:.3f}")


if __name__ == "__main__":
    main()
