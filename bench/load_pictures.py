"""The peer of `riffle bench load`: JPEGs in memory to RGB pictures of a given short side, with Pillow on one thread.

Loads the files of a folder, prints {"ready": true, "name": ...} ({"ready": false} where there is no Pillow), then answers each line on standard input, a number of seconds,
with the pictures it decoded and resized per second of processor time in a round of that length, until the input ends.

    echo 2 | bench/load_pictures.py FOLDER --size 256
"""
import argparse
import io
import json
import pathlib
import sys
import time

try:
    import PIL
    from PIL import Image, features
except ImportError:
    PIL = None


def load(data, size):
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    short = min(picture.size)
    return picture.resize([side * size // short for side in picture.size], Image.Resampling.BILINEAR)


def round_of(files, size, seconds):
    end, pictures, begin = time.perf_counter() + seconds, 0, time.process_time()
    while pictures == 0 or time.perf_counter() < end:
        for data in files:
            load(data, size)
        pictures += len(files)
    return {"pictures_per_s": pictures / (time.process_time() - begin)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--size", type=int, default=256)
    args = parser.parse_args()
    if PIL is None:
        print(json.dumps({"ready": False}), flush=True)
        return
    files = [path.read_bytes() for path in sorted(args.folder.glob("*.jpg"))]
    round_of(files, args.size, 0)
    name = f"Pillow {PIL.__version__} (libjpeg-turbo {features.version('libjpeg_turbo')})"
    print(json.dumps({"ready": True, "name": name}), flush=True)
    for line in sys.stdin:
        print(json.dumps(round_of(files, args.size, float(line))), flush=True)


main()
