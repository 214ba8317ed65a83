"""The page of `riffle watch` in a real browser, beside a run that trains.

    watch_page_test.py RIFFLE [FOLDER]    FOLDER: also leave screenshots there
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from browser import Browser

RIFFLE = sys.argv[1]
SHOTS = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
HOSTILE = "<img src=x onerror=hacked=1>"
LOSS = "document.querySelector('figure[data-key=loss] path[data-run]')"


def train(runs, name):
    return subprocess.Popen(
        [RIFFLE, "-q", "train", "--run", str(runs / name), "--stream", "synthetic:?frames=8&size=16",
         "--shape", "throttle:rate=400", "--size", "16", "--arch", "resnet10", "--stem", "stride2", "--width", "4",
         "--batch", "8", "--capacity", "64", "--updates", "1", "--threads", "1", "--max-updates", "0",
         "--schedule", "constant", "--set", "model.projector_out=16", "--set", "model.predictor_hidden=8",
         "--set", "metrics.every=1", "--set", "checkpoint.every=25"])


def write_long_run(runs, like):
    long = runs / "long"
    long.mkdir()
    (long / "config.yaml").write_text((runs / like / "config.yaml").read_text())
    with open(long / "metrics.jsonl", "w") as out:
        for update in range(1, 1_000_001):
            out.write(f'{{"update":{update},"samples_seen":{8 * update},"loss":{-update / 1e6},"std":0.5,'
                      f'"buffer_clips":12,"updates_per_s":30.5,"samples_per_s":244.0,"idle_share":0.0}}\n')


def update_of(runs, name):
    return json.loads((runs / name / "status.json").read_text())["update"]


def test(browser, runs, watch):
    url = json.loads(watch.stdout.readline())["url"]
    browser.screen(1280, 900)
    browser.open(url)
    browser.wait("document.getElementById('lead').textContent.includes('no run')")

    # A run appears while the page is open, its curves move, its pictures come.
    trains = train(runs, "first")
    try:
        browser.wait("[...document.querySelectorAll('#runs li')].some(row => row.innerText.includes('first'))")
        first, _ = browser.wait(LOSS + "?.getAttribute('d')")
        browser.wait(f"{LOSS}.getAttribute('d') !== {json.dumps(first)}")
        for sheet in ["What just arrived", "What is kept", "What just left", "Map"]:
            browser.wait(f"document.querySelector('[data-sheet=\"{sheet}\"] img')?.naturalWidth > 0")
        browser.wait("document.querySelector('.state.live')?.textContent === 'training'")

        # Names are text.
        (runs / HOSTILE).mkdir()
        (runs / HOSTILE / "config.yaml").write_text((runs / "first" / "config.yaml").read_text())
        browser.wait(f"document.getElementById('runs').innerText.includes({json.dumps(HOSTILE)})")
        assert browser.value("typeof hacked") == "undefined"

        # Several runs over one another, one of them with a million lines.
        write_long_run(runs, "first")
        opened = []
        while not opened or (min(opened) >= 2 and len(opened) < 3):  # other tests run meanwhile
            browser.open("about:blank")
            begun = time.monotonic()
            browser.open(url)
            browser.wait("document.querySelectorAll('figure[data-key=loss] path[data-run]').length === 2")
            opened.append(time.monotonic() - begun)
        assert min(opened) < 2, opened
        if SHOTS:
            browser.wait("document.querySelector('[data-sheet=\"What is kept\"] img')?.naturalWidth > 0")
            browser.picture(SHOTS / "wide.png")

        # On a phone nothing is wider than the screen; the dark look is dark.
        light = browser.value("getComputedStyle(document.body).backgroundColor")
        browser.screen(390, 844, dark=True)
        assert browser.value("document.documentElement.scrollWidth") <= 390
        assert browser.value("getComputedStyle(document.body).backgroundColor") != light
        if SHOTS:
            browser.picture(SHOTS / "phone.png")

        # A page that is killed costs the run nothing, and says that it is gone.
        watch.kill()
        watch.wait()
        browser.wait("!document.getElementById('message').hidden")
        before = update_of(runs, "first")
        start = time.monotonic()
        while update_of(runs, "first") <= before:
            assert trains.poll() is None and time.monotonic() - start < 60
            time.sleep(0.05)
    finally:
        trains.terminate()
        assert trains.wait() == 0
    asked = [address for address in browser.requests if not address.startswith((url, "data:", "about:"))]
    assert not asked, asked
    assert not browser.errors, browser.errors
    print(f"a run of a million lines opened in {min(opened):.2f} s; {len(browser.requests)} requests, all to {url}")


with tempfile.TemporaryDirectory() as folder:
    runs = pathlib.Path(folder) / "runs"
    runs.mkdir()
    browser = Browser()
    watch = subprocess.Popen([RIFFLE, "-q", "watch", str(runs), "--json"], stdout=subprocess.PIPE, text=True)
    try:
        test(browser, runs, watch)
    finally:
        watch.kill()
        watch.wait()
        browser.close()
