#!/usr/bin/env python3
"""How fast `riffle curate` reads, encodes and selects, beside a DataLoader of PyTorch in the same run.

Writes JPEG files with structure at all scales, and a ResNet-18 with random weights. riffle then
selects N of the pictures; the peer decodes the same files with Pillow in a DataLoader with one
worker per core and encodes them with the same network in torch, channels last, without selecting
anything. `riffle embed` does so too: what `riffle curate --list`, which writes no files, is slower
by is what the selection costs. All take turns, and count from a loaded network to the end. Needs
torch, numpy and Pillow.

    bench/curate_speed.py --device cuda --pictures 200000 --keep 100000
    bench/curate_speed.py --device cuda --pictures 20000 --passes 20 --keep 10000

With --passes P the files are played P times (shape `loop`), so that a long run needs few files;
pictures that come again are the first to be merged.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy
import torch
from PIL import Image
from torch import nn

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def write_picture(task):
    path, seed, width, height, quality = task
    random = numpy.random.default_rng(seed)
    picture = numpy.full((height, width, 3), 128, dtype=numpy.float32)
    for cells in (2, 5, 12, 32, 96, 200):  # coarse light, then finer and fainter texture
        coarse = random.normal(0, 90 / cells**0.5, (cells, cells, 3)).clip(-127, 127) + 128
        smooth = Image.fromarray(coarse.astype(numpy.uint8)).resize((width, height), Image.Resampling.BICUBIC)
        picture += numpy.asarray(smooth, dtype=numpy.float32) - 128
    Image.fromarray(picture.clip(0, 255).astype(numpy.uint8)).save(path, quality=quality)
    return path.stat().st_size


def write_pictures(folder, options):
    """Returns their mean size in bytes."""
    folder.mkdir(parents=True)
    tasks = [(folder / f"{i:07}.jpg", i, options.width, options.height, options.quality)
             for i in range(options.pictures)]
    with multiprocessing.Pool(options.workers) as pool:
        return sum(pool.imap_unordered(write_picture, tasks, chunksize=64)) // len(tasks)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                            nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet18(nn.Module):
    """torchvision's network, under its names, without the classifier."""

    def __init__(self, width=64):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        for stage in range(4):
            inputs, outputs = width * 2 ** max(0, stage - 1), width * 2**stage
            self.add_module(f"layer{stage + 1}", nn.Sequential(
                Block(inputs, outputs, 1 if stage == 0 else 2), Block(outputs, outputs, 1)))

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean(dim=(2, 3))


def by_riffle(options, command, out):
    command = [options.riffle, *command, "--device", options.device, "--size", options.size, "--batch", options.batch,
               "--out", out, "--json"]
    if options.passes > 1:
        command += ["--shape", f"loop:times={options.passes}"]
    done = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def curate(options, stream, encoder, out, what=()):
    return by_riffle(options, ["curate", f"folder:{stream}", "--encoder", encoder, "--keep", options.keep, *what], out)


def while_pictures_come(result):
    return result["samples"] / (result["seconds"] - result["finish_s"])


def embed(options, stream, encoder, out):
    return by_riffle(options, ["embed", encoder, "--input", f"folder:{stream}"], out)


class Pictures(torch.utils.data.Dataset):
    def __init__(self, folder, size, passes):
        self.paths = sorted(folder.iterdir()) * passes
        self.size = size

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        picture = Image.open(self.paths[i]).convert("RGB")
        short = min(picture.size)
        width, height = (side * self.size // short for side in picture.size)
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
        left, top = (width - self.size) // 2, (height - self.size) // 2
        return torch.from_numpy(numpy.array(picture.crop((left, top, left + self.size, top + self.size))))


def by_torch(options, stream, network):
    """Returns pictures per second, from the first one asked for to the last feature."""
    device = torch.device(options.device)
    network = network.to(device, memory_format=torch.channels_last).eval()
    mean, std = (torch.tensor(values, device=device).view(1, 3, 1, 1) for values in (MEAN, STD))
    gpu = device.type == "cuda"
    with torch.inference_mode():  # loads the libraries
        network(torch.zeros(1, 3, options.size, options.size, device=device)).cpu()
    pictures = Pictures(stream, options.size, options.peer_passes or options.passes)
    start = time.perf_counter()
    loader = torch.utils.data.DataLoader(pictures, options.batch, num_workers=options.workers, pin_memory=gpu)
    features = []
    with torch.inference_mode():
        for batch in loader:
            batch = batch.to(device, non_blocking=True).permute(0, 3, 1, 2).float().div_(255)
            features.append(network((batch - mean) / std))
    torch.cat(features).cpu()
    return len(pictures) / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--riffle", default="build/riffle")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--pictures", type=int, default=20000, help="files (default 20000)")
    parser.add_argument("--passes", type=int, default=1, help="how often they are played (default 1)")
    parser.add_argument("--peer-passes", type=int, help="how often the slower peer plays them (default: as --passes)")
    parser.add_argument("--width", type=int, default=320, help="of a file in px (default 320)")
    parser.add_argument("--height", type=int, default=256)
    parser.add_argument("--quality", type=int, default=85, help="of the JPEGs (default 85)")
    parser.add_argument("--keep", type=int, default=10000)
    parser.add_argument("--size", type=int, default=224, help="what the network sees in px (default 224)")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--network-width", type=int, default=64,
                        help="channels of the first stage (default 64, a ResNet-18; less shows what else costs)")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="default: one per core")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path, help="keep the files here, and use those that are there")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        stream = options.folder or work / "pictures"
        if not stream.exists():
            bytes_each = write_pictures(stream, options)
            print(f"{options.pictures} files of {options.width} x {options.height} px, {bytes_each} bytes each", flush=True)
        torch.manual_seed(0)
        network = ResNet18(options.network_width)
        encoder = work / "encoder.pth"
        torch.save(network.state_dict(), encoder)
        ratios, costs = [], []
        for number in range(options.rounds):
            encoding = embed(options, stream, encoder, work / f"features-{number}.npy")["images_per_s"]
            listing = while_pictures_come(curate(options, stream, encoder, work / f"listed-{number}", ["--list"]))
            ours = curate(options, stream, encoder, work / f"kept-{number}")
            costs.append(1 - listing / encoding)
            print(f"riffle curate: {ours['images_per_s']:.0f} pictures/s over {ours['samples']} pictures and "
                  f"{ours['seconds']:.1f} s, of which the end took {ours['finish_s']:.1f} s; before that "
                  f"{while_pictures_come(ours):.0f}, with a list alone {listing:.0f}, where riffle embed has {encoding:.0f}: "
                  f"the selection costs {100 * costs[-1]:.1f} %", flush=True)
            if options.no_peer:
                continue
            theirs = by_torch(options, stream, network)
            ratios.append(ours["images_per_s"] / theirs)
            print(f"DataLoader + torch: {theirs:.0f} pictures/s, ratio {ratios[-1]:.2f}", flush=True)
        if len(costs) > 1:
            print(f"cost of the selection, median of {len(costs)}: {100 * statistics.median(costs):.1f} %")
        if len(ratios) > 1:
            print(f"ratio, median of {len(ratios)}: {statistics.median(ratios):.2f} "
                  f"({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
