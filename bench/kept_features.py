#!/usr/bin/env python3
"""Who fills a replay buffer, on generated features and without a network: a trial of eviction rules in seconds.

A stream of clips passes a buffer of unit vectors. Frames of a clip wander around a centre near the
mean of its class; junk frames point anywhere. For each rule the table shows the share of junk in the
buffer, the same weighted as batches would be drawn, the clips that are still represented, and the
mean cosine distance of past real frames to the nearest sample held (smaller: the buffer covers more).

    bench/kept_features.py --junk 0.2 --seeds 3
    bench/kept_features.py --junk 0.2 --rules reservoir,minred,merge:1:heavier,merge:0.5:drawn

Rules: fifo, reservoir, minred, merge:EXPONENT:heavier|drawn[:HALF_LIFE[:LIMIT[:REACH]]]; riffle's default is
merge:1:drawn:0:16:0.5. This is brute force in float64 with numpy, meant for looking at ideas; riffle's index does the same at
any size.
"""
import argparse

import numpy as np


def stream(args, rng):
    """Yields (unit vector, clip or -1 for junk) for every arrival."""
    classes = rng.normal(size=(args.classes, args.dim))
    clip, left = -1, 0
    for _ in range(args.arrivals):
        if rng.random() < args.junk:
            yield rng.normal(size=args.dim), -1
            continue
        if left == 0:
            clip, left = clip + 1, args.clip
            centre = classes[rng.integers(args.classes)] + args.spread * rng.normal(size=args.dim)
            wander = np.zeros(args.dim)
        left -= 1
        wander = 0.95 * wander + args.step * rng.normal(size=args.dim)
        yield centre + wander, clip


class Buffer:
    """Rows 0 to size - 1 are held; the last rows are room for a batch of arrivals."""

    def __init__(self, rule, args, rng):
        self.name, *options = rule.split(":")
        self.exponent = float(options[0]) if options else 0.0
        self.drawn = len(options) > 1 and options[1] == "drawn"
        self.half_life = float(options[2]) if len(options) > 2 else 0.0
        self.limit = float(options[3]) if len(options) > 3 else np.inf
        self.reach = float(options[4]) if len(options) > 4 else np.inf
        self.rng, self.capacity, self.batch, self.size, self.arrivals = rng, args.capacity, args.batch, 0, 0
        rows = args.capacity + args.batch
        self.z = np.zeros((rows, args.dim))
        self.clip = np.zeros(rows, dtype=int)
        self.age = np.zeros(rows)
        self.weight = np.ones(rows)
        self.chance = np.zeros(rows)
        self.distance = np.full((rows, rows), np.inf)

    def add(self, z, clip):
        at = self.size
        self.z[at], self.clip[at], self.age[at] = z, clip, self.arrivals
        self.weight[at] = 2 ** (self.arrivals / self.half_life) if self.half_life else 1.0
        if self.weight[at] > 1e100:
            self.weight /= 1e100
        if self.name == "reservoir":  # those with the smallest numbers are a uniform sample of all arrivals
            self.chance[at] = self.rng.random()
        if self.name in ("minred", "merge"):
            self.distance[at, : at + 1] = 1 - self.z[: at + 1] @ z
            self.distance[: at + 1, at] = self.distance[at, : at + 1]
            self.distance[at, at] = np.inf
        self.size, self.arrivals = at + 1, self.arrivals + 1
        if self.size == self.capacity + self.batch:
            for _ in range(self.batch):
                self.remove(self.leaver())

    def leaver(self):
        n = self.size
        if self.name == "fifo":
            return int(np.argmin(self.age[:n]))
        if self.name == "reservoir":
            return int(np.argmax(self.chance[:n]))
        cost = self.distance[:n, :n]
        if self.name == "merge":
            w = self.weight[:n]
            cost = np.minimum(cost, 2)
            cost = cost / (1 + cost / self.reach) * (1 / (1 / w[:, None] + 1 / w[None, :])) ** self.exponent
            np.fill_diagonal(cost, np.inf)
        a, b = np.unravel_index(np.argmin(cost), cost.shape)
        if self.name == "minred":
            return int(a if self.age[a] < self.age[b] else b)
        if self.drawn:
            a_stays = self.rng.random() * (self.weight[a] + self.weight[b]) < self.weight[a]
        else:
            a_stays = (self.weight[a], -self.age[a]) > (self.weight[b], -self.age[b])
        leaver, stayer = (b, a) if a_stays else (a, b)
        handed_over = self.weight[leaver] * max(0.0, 1 - self.distance[a, b] / self.reach)
        self.weight[stayer] = max(self.weight[stayer], min(self.weight[stayer] + handed_over, self.limit))
        return int(leaver)

    def remove(self, slot):
        last = self.size - 1
        for values in (self.z, self.clip, self.age, self.weight, self.chance, self.distance):
            values[slot] = values[last]
        self.distance[:, slot] = self.distance[:, last]
        self.distance[slot, slot] = np.inf
        self.size = last


def trial(rule, args, seed):
    rng = np.random.default_rng(seed)
    buffer = Buffer(rule, args, np.random.default_rng(seed + 1000))
    past = []
    for i, (z, clip) in enumerate(stream(args, rng)):
        z = z / np.linalg.norm(z)
        buffer.add(z, clip)
        if clip >= 0 and i % 7 == 0:
            past.append(z)
    held = buffer.clip[: buffer.size]
    weight = buffer.weight[: buffer.size]
    by_root = np.sqrt(weight) / np.sqrt(weight).sum()
    nearest = 1 - (np.array(past) @ buffer.z[: buffer.size].T).max(axis=1)
    return (100 * np.mean(held < 0), 100 * by_root[held < 0].sum(), len(set(held[held >= 0])),
            nearest.mean(), np.mean(args.arrivals - buffer.age[: buffer.size]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", default="fifo,reservoir,minred,merge:0.5:heavier,merge:1:heavier,merge:1:drawn")
    parser.add_argument("--junk", type=float, default=0.2, help="share of junk (default 0.2)")
    parser.add_argument("--capacity", type=int, default=256)
    parser.add_argument("--arrivals", type=int, default=8192)
    parser.add_argument("--batch", type=int, default=1, help="arrivals before as many leave (default 1)")
    parser.add_argument("--clip", type=int, default=64, help="frames of a clip")
    parser.add_argument("--classes", type=int, default=50)
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--spread", type=float, default=0.5, help="of clips within a class")
    parser.add_argument("--step", type=float, default=0.1, help="from frame to frame")
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    print(f"{'rule':26}{'junk %':>9}{'drawn by root %':>17}{'clips':>8}{'distance':>10}{'age':>8}")
    for rule in args.rules.split(","):
        rows = np.array([trial(rule, args, seed) for seed in range(args.seeds)])
        junk, drawn, clips, distance, age = rows.mean(axis=0)
        print(f"{rule:26}{junk:9.1f}{drawn:17.1f}{clips:8.0f}{distance:10.4f}{age:8.0f}", flush=True)


if __name__ == "__main__":
    main()
