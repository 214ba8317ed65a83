#!/usr/bin/env python3
"""What an open page of `riffle watch` costs the run that it shows.

    bench/watch_cost.py [--riffle build/riffle] [--pairs 30] [--seconds 6]

One run trains all the time. In every second window of so many seconds the page is open: `riffle watch` is asked every
two seconds for what the page asks for. Prints the ratio of updates in the two windows of each pair, its
median over all pairs, and the share of one core that `riffle watch` took. A window's neighbour is as noisy as the
window itself, so the median says more than any pair.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
import urllib.request

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--riffle", default="build/riffle")
parser.add_argument("--pairs", type=int, default=30)
parser.add_argument("--seconds", type=float, default=6)
options = parser.parse_args()

TRAIN = ["--stream", "synthetic:?frames=16&size=32", "--size", "32", "--arch", "resnet10", "--stem", "small",
         "--width", "16", "--batch", "32", "--capacity", "1024", "--max-updates", "0", "--schedule", "constant",
         "--threads", "1", "--set", "checkpoint.every=200"]


def updates(run):
    """Updates so far, by the run's metrics, and when the last was."""
    with open(run / "metrics.jsonl", "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        line = json.loads(file.read().splitlines()[-1])
    return line["update"], line["seconds"]


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(address, path):
    with urllib.request.urlopen(address + path, timeout=30) as answer:
        return json.load(answer)


def look(address, until):
    """Looks at the run as the page does, until then."""
    while time.monotonic() < until:
        facts = ask(address, "data/runs")["runs"][0]
        for part in ("curves", "arrived"):
            ask(address, f"data/{part}?run={facts['id']}")
        if facts["checkpoint"] not in seen:
            ask(address, f"data/kept?run={facts['id']}")
            seen.add(facts["checkpoint"])
        time.sleep(max(0, min(2, until - time.monotonic())))


def window(run, page, address, with_page):
    """Returns the speed in updates a second, and the seconds that the page's program computed."""
    first, begun = updates(run)
    computed = processor_seconds(page)
    until = time.monotonic() + options.seconds
    if with_page:
        look(address, until)
    time.sleep(max(0, until - time.monotonic()))
    last, ended = updates(run)
    return (last - first) / (ended - begun), processor_seconds(page) - computed


seen = set()
with tempfile.TemporaryDirectory() as folder:
    run = pathlib.Path(folder) / "runs" / "run"
    page = None
    training = subprocess.Popen([options.riffle, "-q", "train", "--run", str(run), "--set", "metrics.every=1", *TRAIN])
    try:
        while not (run / "checkpoints").is_dir() or not any((run / "checkpoints").glob("*.json")):
            time.sleep(0.5)
        page = subprocess.Popen([options.riffle, "-q", "watch", str(run.parent), "--json"], stdout=subprocess.PIPE,
                                text=True)
        address = json.loads(page.stdout.readline())["url"]
        look(address, time.monotonic() + 1)
        ratios, used = [], 0
        for pair in range(options.pairs):
            speeds = {}
            for with_page in ((True, False) if pair % 2 else (False, True)):
                speeds[with_page], computed = window(run, page, address, with_page)
                used += computed
            ratios.append(speeds[True] / speeds[False])
            print(f"pair {pair + 1}: {speeds[False]:.1f} updates/s alone, {speeds[True]:.1f} with the page", flush=True)
        low, median, high = statistics.quantiles(ratios, n=4)
        print(f"with the page / alone: median {median:.3f}, quartiles {low:.3f} and {high:.3f}, {len(ratios)} pairs")
        print(f"the page's program took {100 * used / options.pairs / options.seconds:.1f} % of one core")
    finally:
        if page:
            page.kill()
        training.terminate()
        training.wait()
