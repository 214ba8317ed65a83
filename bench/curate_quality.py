#!/usr/bin/env python3
"""How well `riffle curate` covers a stream, beside offline methods that see all of it.

Embeds a stream, selects N of its pictures with riffle in one pass, and compares the mean cosine
distance of all pictures of the stream to the nearest kept one with that of greedy k-centre, of
k-means++ and of as many random pictures, all with the same features. Needs numpy.

    bench/curate_quality.py --riffle build/riffle --encoder runs/encoder --keep 500 \
        --stream 'shards:/data/train-*.tar' --shape clips:length=16,size=32 --samples 12800
"""

import argparse
import csv
import pathlib
import subprocess
import tempfile

import numpy


def coverage(features, kept):
    """Returns the mean and the 99th percentile of the distances to the nearest kept row."""
    nearest = numpy.full(len(features), -1.0, dtype=numpy.float32)
    for begin in range(0, len(kept), 512):
        products = features @ features[kept[begin : begin + 512]].T
        nearest = numpy.maximum(nearest, products.max(axis=1))
    distances = 1.0 - nearest
    return float(distances.mean()), float(numpy.quantile(distances, 0.99))


def greedy_k_centre(features, keep, random):
    kept = [int(random.integers(len(features)))]
    nearest = 1.0 - features @ features[kept[0]]
    while len(kept) < keep:
        kept.append(int(nearest.argmax()))
        nearest = numpy.minimum(nearest, 1.0 - features @ features[kept[-1]])
    return kept


def k_means_plus_plus(features, keep, random):
    kept = [int(random.integers(len(features)))]
    # Squared distances of unit vectors are twice the cosine distances.
    nearest = numpy.maximum(1.0 - features @ features[kept[0]], 0.0)
    while len(kept) < keep:
        kept.append(int(random.choice(len(features), p=nearest / nearest.sum())))
        nearest = numpy.minimum(nearest, numpy.maximum(1.0 - features @ features[kept[-1]], 0.0))
    return kept


def run(command):
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--riffle", default="build/riffle")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--stream", required=True)
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--keep", type=int, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()

    shapes = [word for shape in options.shape for word in ("--shape", shape)]
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        run([options.riffle, "embed", options.encoder, "--input", options.stream, *shapes,
             "--samples", options.samples, "--out", out / "all.npy"])
        run([options.riffle, "curate", options.stream, *shapes, "--samples", options.samples,
             "--keep", options.keep, "--encoder", options.encoder, "--out", out / "kept", "--list"])
        features = numpy.load(out / "all.npy")
        with open(out / "all.csv", newline="") as table:
            row_of = {line["index"]: int(line["row"]) for line in csv.DictReader(table)}
        with open(out / "kept" / "selection.csv", newline="") as table:
            kept = [row_of[line["index"]] for line in csv.DictReader(table)]
    features /= numpy.linalg.norm(features, axis=1, keepdims=True)

    print(f"{len(features)} pictures, {len(kept)} kept")
    ours = coverage(features, kept)
    print(f"riffle curate, one pass      mean {ours[0]:.4f}  99th percentile {ours[1]:.4f}")
    rivals = {
        "greedy k-centre, offline": greedy_k_centre,
        "k-means++, offline": k_means_plus_plus,
        "random": lambda rows, keep, random: random.choice(len(rows), keep, replace=False),
    }
    for name, choose in rivals.items():
        found = [coverage(features, choose(features, options.keep, numpy.random.default_rng(seed)))
                 for seed in range(options.seeds)]
        mean, far = numpy.mean(found, axis=0)
        print(f"{name:28} mean {mean:.4f}  99th percentile {far:.4f}  "
              f"mean of riffle's / its {ours[0] / mean:.3f}")


if __name__ == "__main__":
    main()
