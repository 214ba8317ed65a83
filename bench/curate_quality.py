#!/usr/bin/env python3
"""How well `riffle curate` covers a stream, beside offline methods that see all of it.

Embeds a stream, selects N of its pictures with riffle in one pass, and compares the mean cosine
distance of all pictures of the stream to the nearest kept one with that of greedy k-centre, of
k-means++ and of as many random pictures, all with the same features. Of a stream with junk (the
shape of that name) also the share of junk among the kept ones, and how much of it `riffle curate`
says stands alone. With --val, a labelled stream, also the accuracy there of a linear classifier
(ridge regression on the features) that was trained on the labels of the kept pictures alone. Needs
numpy.

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


def standardised(features, like):
    return (features - like.mean(axis=0)) / (like.std(axis=0) + 1e-6)


def accuracy(features, labels, kept, val_features, val_labels):
    """Returns the percentage of val_labels that ridge regression on the kept rows gets right."""
    classes = {label: number for number, label in enumerate(sorted(set(labels) | set(val_labels)))}
    rows = standardised(features[kept], features)
    targets = numpy.zeros((len(kept), len(classes)), dtype=numpy.float32)
    targets[numpy.arange(len(kept)), [classes[labels[row]] for row in kept]] = 1
    penalty = 0.1 * len(kept) * numpy.eye(rows.shape[1], dtype=numpy.float32)
    weights = numpy.linalg.solve(rows.T @ rows + penalty, rows.T @ (targets - targets.mean(axis=0)))
    guesses = (standardised(val_features, features) @ weights).argmax(axis=1)
    return 100.0 * float((guesses == [classes[label] for label in val_labels]).mean())


def embedded(options, stream, shapes, samples, out):
    """Returns unit features, labels and indices of a stream."""
    run([options.riffle, "embed", options.encoder, "--input", stream, *shapes, "--samples", samples,
         "--out", out])
    features = numpy.load(out)
    features /= numpy.linalg.norm(features, axis=1, keepdims=True)
    with open(out.with_suffix(".csv"), newline="") as table:
        lines = list(csv.DictReader(table))
    return features, [line["label"] for line in lines], [line["index"] for line in lines]


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
    parser.add_argument("--val", help="a labelled stream, for the accuracy of a classifier")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()

    shapes = [word for shape in options.shape for word in ("--shape", shape)]
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        features, labels, indices = embedded(options, options.stream, shapes, options.samples,
                                             out / "all.npy")
        run([options.riffle, "curate", options.stream, *shapes, "--samples", options.samples,
             "--keep", options.keep, "--encoder", options.encoder, "--out", out / "kept", "--list"])
        row_of = {index: row for row, index in enumerate(indices)}
        with open(out / "kept" / "selection.csv", newline="") as table:
            lines = list(csv.DictReader(table))
        kept = [row_of[line["index"]] for line in lines]
        val = embedded(options, options.val, [], 0, out / "val.npy") if options.val else None

    def measures(rows):
        found = [*coverage(features, rows), 100 * junk[rows].mean()]
        return [*found, accuracy(features, labels, rows, *val[:2])] if val else found

    print(f"{len(features)} pictures, {len(kept)} kept")
    junk = numpy.array([label == "junk" for label in labels])
    if junk.any():
        alone = [line["label"] == "junk" for line in lines if line["alone"] == "1"]
        print(f"junk: {100 * junk.mean():.1f} % of the stream; {len(alone)} kept ones stand alone, "
              f"{sum(alone)} of them junk, of {junk[kept].sum()} that are kept")
    ways = {
        "riffle curate, one pass": lambda *_: kept,
        "greedy k-centre, offline": greedy_k_centre,
        "k-means++, offline": k_means_plus_plus,
        "random": lambda rows, keep, random: random.choice(len(rows), keep, replace=False),
    }
    ours = coverage(features, kept)[0]
    for name, choose in ways.items():
        found = numpy.array([measures(choose(features, options.keep, numpy.random.default_rng(seed)))
                             for seed in range(options.seeds)])
        mean = found.mean(axis=0)
        line = (f"{name:26} mean distance {mean[0]:.4f}  99th percentile {mean[1]:.4f}  "
                f"riffle's / its {ours / mean[0]:.3f}")
        if junk.any():
            line += f"  junk {mean[2]:.1f} %"
        if val:
            line += f"  accuracy {mean[3]:.1f} +- {found[:, 3].std():.1f} %"
        print(line)


if __name__ == "__main__":
    main()
