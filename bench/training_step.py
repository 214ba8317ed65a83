"""The peer of `riffle bench step`: one training step of a method in Python torch, as one would write it there.

Times forward, backward and SGD on two given batches of views. Alone, it prints one JSON line:

    bench/training_step.py --objective simclr --arch resnet18 --stem small --size 32 --batch 64 --threads 2 --channels-last

With --rounds it alternates with other programs on a noisy machine: it prints its name, then answers each line on standard
input, a number of seconds, with the timing of a round of that length, until the input ends. It warms up at the first line,
so that several can be started at once and still choose their kernels one after the other.
"""
import argparse
import contextlib
import copy
import json
import math
import statistics
import sys
import time

import torch
from torch import nn
import torch.nn.functional as F

BLOCKS = {"resnet10": (1, 1, 1, 1), "resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}


class Block(nn.Module):
    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        outputs = width * 4 if bottleneck else width
        shapes = ([(inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1)] if bottleneck else
                  [(inputs, width, 3, stride), (width, width, 3, 1)])
        self.convs = nn.ModuleList(nn.Conv2d(i, o, k, s, k // 2, bias=False) for i, o, k, s in shapes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(o) for _, o, _, _ in shapes)
        nn.init.zeros_(self.norms[-1].weight)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = x
        for conv, norm in zip(self.convs[:-1], self.norms[:-1]):
            y = F.relu(norm(conv(y)), inplace=True)
        y = self.norms[-1](self.convs[-1](y))
        y += x if self.shortcut is None else self.shortcut(x)
        return F.relu(y, inplace=True)


class Encoder(nn.Sequential):
    def __init__(self, arch, stem, width):
        kernel, stride = {"standard": (7, 2), "small": (3, 1), "stride2": (3, 2)}[stem]
        layers = [nn.Conv2d(3, width, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)]
        if stem == "standard":
            layers.append(nn.MaxPool2d(3, 2, 1))
        bottleneck, inputs = arch == "resnet50", width
        for stage, count in enumerate(BLOCKS[arch]):
            for i in range(count):
                layers.append(Block(inputs, width << stage, 2 if stage and i == 0 else 1, bottleneck))
                inputs = (width << stage) * (4 if bottleneck else 1)
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.features = inputs


class Method(nn.Module):
    """An encoder, a projector and a loss: that of SimSiam, whose predictor BYOL shares."""

    def __init__(self, args):
        super().__init__()
        self.encoder = Encoder(args.arch, args.stem, args.width)
        dim, out, small = self.encoder.features, args.projector_out, args.predictor_hidden
        hidden = args.projector_hidden or dim
        layers = [nn.Linear(dim, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(True),
                  nn.Linear(hidden, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(True),
                  nn.Linear(hidden, out, bias=False)]
        if self.normed:
            layers.append(nn.BatchNorm1d(out, affine=False))
        self.projector = nn.Sequential(*layers)
        if self.predicts:
            self.predictor = nn.Sequential(
                nn.Linear(out, small, bias=False), nn.BatchNorm1d(small), nn.ReLU(True), nn.Linear(small, out))

    normed, predicts = True, False

    def forward(self, view1, view2):
        z1, z2 = self.projector(self.encoder(view1)), self.projector(self.encoder(view2))
        loss = self.loss((view1, view2), z1, z2)
        with torch.no_grad():  # what a buffer tracks, and the gauge of collapse
            features = F.normalize(z1 + z2)
            spread = F.normalize(z1).std(0).mean()
        return loss, features, spread

    def follow(self):
        """After a step of the optimiser."""


class SimSiam(Method):
    predicts = True

    def predicted(self, z1, z2, target1, target2):
        p1, p2 = self.predictor(z1), self.predictor(z2)
        return -(F.cosine_similarity(p1, target2).mean() + F.cosine_similarity(p2, target1).mean()) / 2

    def loss(self, views, z1, z2):
        return self.predicted(z1, z2, z1.detach(), z2.detach())


class Byol(SimSiam):
    def __init__(self, args):
        super().__init__(args)
        self.target = copy.deepcopy(nn.Sequential(self.encoder, self.projector)).requires_grad_(False)

    def loss(self, views, z1, z2):
        with torch.no_grad():
            targets = [self.target(view) for view in views]
        return self.predicted(z1, z2, *targets)

    @torch.no_grad()
    def follow(self):
        followed = [*self.encoder.parameters(), *self.projector.parameters()]
        torch._foreach_lerp_(list(self.target.parameters()), followed, 0.01)


class SimClr(Method):
    def loss(self, views, z1, z2):
        z, n = F.normalize(torch.cat([z1, z2])), z1.shape[0]
        logits = (z @ z.T / 0.2).fill_diagonal_(-math.inf)
        return F.cross_entropy(logits, torch.arange(2 * n, device=z.device).roll(n))


class VicReg(Method):
    normed = False

    def loss(self, views, z1, z2):
        n, dim = z1.shape
        loss = 25 * F.mse_loss(z1, z2)
        for z in (z1.float(), z2.float()):
            z = z - z.mean(0)
            covariance = z.T @ z / (n - 1)
            between = covariance.pow(2).sum() - covariance.diagonal().pow(2).sum()
            loss = loss + 25 / 2 * F.relu(1 - torch.sqrt(z.var(0) + 1e-4)).mean() + between / dim
        return loss


class VisReg(Method):
    normed, slices = False, 1024

    def loss(self, views, z1, z2):
        z = torch.stack([z1, z2]).float()
        n, dim = z.shape[1:]
        mean = z.mean(1, keepdim=True)
        deviation = (z - mean).norm(dim=1, keepdim=True) / n ** 0.5
        directions = F.normalize(torch.randn(dim, self.slices, device=z.device), dim=0)
        sketches = ((z - mean) / deviation.detach()) @ directions
        quantiles = torch.special.ndtri(torch.arange(1, n + 1, device=z.device) / (n + 1))
        shape = (sketches.sort(1).values - quantiles[None, :, None]).pow(2).mean()
        regulariser = mean.pow(2).mean() + (deviation - 1).pow(2).mean() + shape
        return 4 * (z - z.mean(0)).pow(2).mean() + 6 * regulariser


METHODS = {"simsiam": SimSiam, "simclr": SimClr, "byol": Byol, "vicreg": VicReg, "visreg": VisReg}


class Step:
    def __init__(self, args):
        self.batch, self.device, self.bf16 = args.batch, args.device, args.bf16
        layout = torch.channels_last if args.channels_last else torch.contiguous_format
        self.model = METHODS[args.objective](args).to(args.device, memory_format=layout)
        self.views = [torch.randn(args.batch, 3, args.size, args.size, device=args.device).contiguous(memory_format=layout)
                      for _ in range(2)]
        self.optimizer = torch.optim.SGD([p for p in self.model.parameters() if p.requires_grad], 1e-3, 0.9, weight_decay=1e-4, fused=True)
        self.call = torch.compile(self.model) if args.compile else self.model
        self.is_warm = False

    def __call__(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, torch.bfloat16) if self.bf16 else contextlib.nullcontext():
            loss, _, _ = self.call(*self.views)
        loss.backward()
        self.optimizer.step()
        self.model.follow()

    def warm_up(self):
        for _ in range(0 if self.is_warm else 3):
            self()
        self.is_warm = True

    def round(self, seconds):
        times, end = [], time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            begin = time.perf_counter()
            self()
            if self.device == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        middle = statistics.median_high(times)
        peak = {"peak_bytes": torch.cuda.max_memory_reserved()} if self.device == "cuda" else {}
        return {"ms": middle * 1e3, "images_per_s": self.batch / middle, "steps": len(times), **peak}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objective", choices=METHODS, default="simsiam")
    parser.add_argument("--arch", choices=BLOCKS, default="resnet18")
    parser.add_argument("--stem", choices=("standard", "small", "stride2"), default="small")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--projector-hidden", type=int, default=0)
    parser.add_argument("--projector-out", type=int, default=2048)
    parser.add_argument("--predictor-hidden", type=int, default=512)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    parser.add_argument("--tf32", action="store_true", help="float32 with TF32 products")
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", action="store_true")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = args.tf32
    words = ["torch", "channels-last" if args.channels_last else "contiguous"]
    name = " ".join(words + ["bf16"] * args.bf16 + ["TF32"] * args.tf32 + ["compiled"] * args.compile)

    step = Step(args)
    if args.rounds:
        print(json.dumps({"name": name}), flush=True)
    for line in sys.stdin if args.rounds else [args.seconds]:
        step.warm_up()
        print(json.dumps({"name": name, **step.round(float(line))}), flush=True)


if __name__ == "__main__":
    main()
