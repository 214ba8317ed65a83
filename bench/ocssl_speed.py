#!/usr/bin/env python3
"""Learning from a stream of tasks by the field's protocol, riffle beside Python: pictures per second and their ratio.

    bench/ocssl_speed.py --device cuda
    bench/ocssl_speed.py --device cuda --climb ~/climb    # beside the authors' own program
    bench/ocssl_speed.py --device cpu --width 8 --threads 1 --seconds 3

The protocol (the study `ocssl`): stream batches of 10, each trained on three times together with 128 replayed pictures,
memory of 2,500 pictures kept by reservoir sampling, SimCLR, and an alignment loss (weight 1) of the replayed embeddings to
those of a moving average of the network (0.999), through a head of its own.

The Python peers are minimal loops with the structure that the published methods of this kind have: the batch is transformed
on the device, all pictures alike; a forward pass for each view, another of the moving average; a memory with the features
of its samples. `published` is in float32, as they are, updates the memory's features and the moving average one by one, and
reads the loss back at every pass. `lean` does the same in bfloat16 (on a GPU), channels last, all features and averages at
once, and reads nothing back. Both have their stream in the device's memory, which no real stream is; riffle generates, transforms and
stores its pictures as it trains (`riffle bench pipeline`). All take turns, round by round.

`--climb` names a checkout of CLIMB (github.com/lefebvju/climb), whose own trainer, memory, transforms and model then learn
from generated pictures of 32 px with its settings for CIFAR-100. It needs torchvision, torchmetrics and tqdm; what it imports for
data sets, probes and plots may be missing, and without tensorboard its log goes nowhere.
"""
import argparse
import contextlib
import copy
import importlib
import importlib.machinery
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from unittest import mock

import torch
import torch.nn.functional as F
from torch import nn
from training_step import BLOCKS, METHODS

FRESH, REPLAYED, PASSES, MEMORY = 10, 128, 3, 2500
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def transformed(pictures, mean, std):
    """One view of each picture of a batch in [0, 1]: crop, flip, brightness, contrast, saturation, grey."""
    side = pictures.shape[-1]
    crop = max(4, round(side * random.uniform(0.2, 1) ** 0.5))
    top, left = random.randrange(side - crop + 1), random.randrange(side - crop + 1)
    views = F.interpolate(pictures[..., top:top + crop, left:left + crop], size=side, mode="bilinear", antialias=True)
    if random.random() < 0.5:
        views = views.flip(-1)
    if random.random() < 0.8:
        for kind in random.sample(range(3), 3):
            base = (0, views.mean((1, 2, 3), keepdim=True), views.mean(1, keepdim=True))[kind]
            views = (base + random.uniform(0.6, 1.4) * (views - base)).clamp(0, 1)
    if random.random() < 0.2:
        views = views.mean(1, keepdim=True).expand_as(views)
    return (views - mean) / std


class Reservoir:
    def __init__(self, lean):
        self.lean, self.seen, self.pictures, self.features = lean, 0, None, None

    def add(self, pictures, features):
        if self.pictures is None:
            self.pictures = pictures.new_empty(MEMORY, *pictures.shape[1:])
            self.features = features.new_empty(MEMORY, features.shape[1])
        for picture, feature in zip(pictures, features):
            place = self.seen if self.seen < MEMORY else random.randrange(self.seen + 1)
            if place < MEMORY:
                self.pictures[place], self.features[place] = picture, feature
            self.seen += 1

    def draw(self):
        return random.sample(range(min(self.seen, MEMORY)), REPLAYED)

    def update(self, places, features):
        if self.lean:
            where = torch.tensor(places, device=features.device)
            self.features[where] = self.features[where].lerp(features, 0.5)
            return
        for place, feature in zip(places, features):
            self.features[place] = 0.5 * self.features[place] + 0.5 * feature


class Peer:
    def __init__(self, args, lean):
        self.name, self.lean, self.device = "lean" if lean else "published", lean, args.device
        self.bf16 = lean and args.device == "cuda"
        layout = torch.channels_last if lean else torch.contiguous_format
        self.model = METHODS["simclr"](args).to(args.device, memory_format=layout)
        self.average = copy.deepcopy(nn.Sequential(self.model.encoder, self.model.projector)).requires_grad_(False)
        out = args.projector_out
        self.head = nn.Sequential(nn.Linear(out, 512, bias=False), nn.BatchNorm1d(512), nn.ReLU(True),
                                  nn.Linear(512, out)).to(args.device)
        self.layout, self.memory = layout, Reservoir(lean)
        self.optimizer = torch.optim.SGD([*self.model.parameters(), *self.head.parameters()], 1e-3, 0.9, weight_decay=1e-4)
        self.stream = torch.rand(MEMORY + 1000, 3, args.size, args.size, device=args.device)
        self.scale = [torch.tensor(values, device=args.device).view(3, 1, 1) for values in (MEAN, STD)]
        self.next = 0
        while self.next < MEMORY:  # as long as training waits for a full buffer in riffle
            self.memory.add(self.stream[self.next:self.next + FRESH], torch.zeros(FRESH, out, device=args.device))
            self.next += FRESH

    def update(self, fresh):
        places = self.memory.draw()
        batch = torch.cat([self.memory.pictures[places], fresh])
        views = [transformed(batch, *self.scale).contiguous(memory_format=self.layout) for _ in range(2)]
        with torch.autocast("cuda", torch.bfloat16) if self.bf16 else contextlib.nullcontext():
            z1, z2 = (self.model.projector(self.model.encoder(view)) for view in views)
            loss = self.model.loss(views, z1, z2)
            replayed = torch.cat([z1[:REPLAYED], z2[:REPLAYED]])
            with torch.no_grad():
                targets = self.average(torch.cat([view[:REPLAYED] for view in views]))
            loss = loss - F.cosine_similarity(self.head(replayed), targets).mean()
        features = ((z1 + z2) / 2).detach().float()
        self.memory.update(places, features[:REPLAYED])
        if not self.lean:
            loss.item()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.follow()
        return features[REPLAYED:]

    @torch.no_grad()
    def follow(self):
        followed = [*self.model.encoder.parameters(), *self.model.projector.parameters()]
        if self.lean:
            torch._foreach_lerp_(list(self.average.parameters()), followed, 0.001)
            return
        for average, now in zip(self.average.parameters(), followed):
            average.mul_(0.999).add_(now, alpha=0.001)

    def stream_batch(self):
        begin = self.next % (len(self.stream) - FRESH)
        fresh = self.stream[begin:begin + FRESH]
        self.next += FRESH
        for _ in range(PASSES):
            features = self.update(fresh)
        self.memory.add(fresh, features)

    def rate(self, seconds):
        """Pictures trained on per second."""
        def wait():
            if self.device == "cuda":
                torch.cuda.synchronize()
        self.stream_batch()
        wait()
        batches, begin = 0, time.perf_counter()
        while batches == 0 or time.perf_counter() - begin < seconds:
            self.stream_batch()
            wait()
            batches += 1
        return batches * PASSES * (FRESH + REPLAYED) / (time.perf_counter() - begin)


def load_torchvision():
    """Imports torchvision. Its wheels from PyPI are built for CUDA: beside a torch without it their C++ part does not load,
    and two of its operators must be declared first. Returns what keeps them declared."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")
        return library


class Climb:
    """The authors' program."""
    name = "climb"

    def __init__(self, args):
        if args.size != 32:
            raise SystemExit("--climb: its 3x3 stem is for --size 32")
        sys.path.insert(0, str(args.climb))
        self.operators = load_torchvision()
        self.logs = tempfile.TemporaryDirectory()
        self.part("src.logger").init_writer(self.logs.name)
        encoder, dim = self.part("src.backbones").get_encoder("resnet18", 32, "simclr", False)
        model = self.part("src.ssl_models.simclr").SimCLR(encoder, dim, dim_proj=args.projector_out).to(args.device)
        memory = self.part("src.strategies.climb").CLIMB(
            ssl_model=model, dataset_name="cifar100", dim_backbone_features=dim, bs=FRESH + REPLAYED,
            replay_mb_size=REPLAYED, mem_size=MEMORY, distill_alpha=2.0, device=args.device)
        self.trainer = self.part("src.trainer").Trainer(
            ssl_model=model, strategy=memory, optim="sgd", lr=1e-3, train_mb_size=FRESH, mb_passes=PASSES,
            device=args.device, dataset_name="cifar100")
        self.learn(60)  # its memory is still filling, which favours it

    @staticmethod
    def part(name):
        while True:
            try:
                return importlib.import_module(name)
            except ModuleNotFoundError as missing:
                if missing.name.partition(".")[0] in ("src", "torchmetrics", "torchvision", "tqdm"):
                    raise
                absent = "torch.utils.tensorboard" if missing.name == "tensorboard" else missing.name
                sys.modules[absent] = mock.MagicMock()
                # Torch asks for the specification of what is there.
                sys.modules[absent].__spec__ = importlib.machinery.ModuleSpec(absent, None)

    def learn(self, batches):
        """Trains on stream batches; returns how many pictures and seconds that was."""
        # Ten kinds, so that centroids gather pictures: with none in its long-term memory the program fails.
        kinds = torch.rand(10, 3, 32, 32, generator=torch.Generator().manual_seed(0))
        pictures = (kinds.repeat(batches, 1, 1, 1) + 0.3 * torch.rand(batches * FRESH, 3, 32, 32)).clamp(0, 1)
        before, begin = self.trainer.cbp, time.perf_counter()
        with contextlib.redirect_stderr(open(os.devnull, "w")):  # its progress bar
            self.trainer.train_experience([(picture, 0, 0) for picture in pictures], 0)
        return (self.trainer.cbp - before) / 2, time.perf_counter() - begin  # it counts views

    def rate(self, seconds):
        # The difference of two lengths: starting its twelve workers takes seconds, once for each task.
        few = self.learn(10)
        many = self.learn(max(40, round(10 + seconds * few[0] / few[1] / PASSES / (FRESH + REPLAYED))))
        return (many[0] - few[0]) / (many[1] - few[1])


def riffle_rate(args):
    settings = {"model.objective": "simclr", "model.projector_hidden": args.projector_hidden,
                "model.projector_out": args.projector_out, "train.stream_batch": FRESH,
                "train.fresh": FRESH / (FRESH + REPLAYED), "align.weight": 1}
    command = [args.riffle, "-q", "bench", "pipeline", "--json", "--no-peers", "--rounds", 1, "--seconds", args.seconds,
               "--stream", f"synthetic:?frames=1&size={args.size}", "--buffer", "reservoir", "--capacity", MEMORY,
               "--updates", PASSES, "--batch", FRESH + REPLAYED, "--size", args.size, "--arch", args.arch,
               "--stem", args.stem, "--width", args.width, "--device", args.device, "--threads", args.threads]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)["images_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--riffle", default=pathlib.Path(__file__).parent.parent / "build/riffle", help="the program")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--arch", choices=BLOCKS, default="resnet18")
    parser.add_argument("--stem", choices=("standard", "small", "stride2"), default="small")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--projector-hidden", type=int, default=0)
    parser.add_argument("--projector-out", type=int, default=2048)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--climb", type=pathlib.Path, help="a checkout of CLIMB to run as well")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a turn")
    args = parser.parse_args()
    args.predictor_hidden = 512
    torch.set_num_threads(args.threads)
    torch.backends.cudnn.benchmark = True
    random.seed(0)
    peers = [Peer(args, lean) for lean in (False, True)] + ([Climb(args)] if args.climb else [])
    ours, theirs = [], {peer.name: [] for peer in peers}
    for number in range(args.rounds):
        ours.append(riffle_rate(args))
        for peer in peers:
            theirs[peer.name].append(peer.rate(args.seconds))
            print(f"round {number + 1}: riffle {ours[-1]:.1f}, {peer.name} {theirs[peer.name][-1]:.1f} pictures/s",
                  file=sys.stderr, flush=True)
    stream_share = FRESH / PASSES / (FRESH + REPLAYED)
    rate = statistics.median(ours)
    print(json.dumps({"riffle": round(rate, 1), "stream_pictures_per_s": round(rate * stream_share, 1)}))
    for name, rates in theirs.items():
        ratio = statistics.median(a / b for a, b in zip(ours, rates))
        print(json.dumps({"peer": name, "pictures_per_s": round(statistics.median(rates), 1), "ratio": round(ratio, 2)}))


if __name__ == "__main__":
    main()
