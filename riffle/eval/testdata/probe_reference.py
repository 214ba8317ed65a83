"""A frozen encoder probed from pictures to accuracies in plain Python torch, to check riffle against.

Usage: probe_reference.py INPUT EPOCHS LR BATCH

INPUT is a safetensors file with the encoder's weights under torchvision's names (a 3x3 stem of stride 2), the pictures
"train" and "val" (uint8, [n, size, size, 3]) and their classes "train_classes" and "val_classes". Prints accuracies in
percent as one JSON object: "ridge" (the recipe `cached`), "lars" (the paper's, with random crops) and "knn". Everything
random is drawn here, apart from riffle's.
"""
import json
import math
import sys

import torch
import torch.nn.functional as F

from linear_probe_reference import read, train as train_lars

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)
PENALTY, NEIGHBOURS, TEMPERATURE = 0.01, 20, 0.07
LEAST_AREA, WIDEST = 0.08, 4 / 3


def encode(weights, pictures):
    def conv(x, name, stride):
        weight = weights[name + ".weight"]
        return F.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)

    def norm(x, name):
        running = [weights[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        return F.batch_norm(x, *running, training=False, eps=1e-5)

    x = F.relu(norm(conv(pictures, "conv1", 2), "bn1"))
    for stage in range(1, 5):
        block = 0
        while (name := f"layer{stage}.{block}") + ".conv1.weight" in weights:
            stride = 2 if stage > 1 and block == 0 else 1
            y = F.relu(norm(conv(x, name + ".conv1", stride), name + ".bn1"))
            y = norm(conv(y, name + ".conv2", 1), name + ".bn2")
            if name + ".downsample.0.weight" in weights:
                x = norm(conv(x, name + ".downsample.0", stride), name + ".downsample.1")
            x = F.relu(x + y)
            block += 1
    return x.mean((2, 3))


def features_of(weights, pictures):
    """Of pictures in [0, 1], [n, 3, size, size]."""
    parts = ((pictures - MEAN) / STD).split(512)
    return F.normalize(torch.cat([encode(weights, part) for part in parts]), dim=1)


def random_crops(pictures):
    """One crop of 8 to 100 % of the area and a ratio of 3/4 to 4/3 of each picture, at its size again, flipped or not."""
    count, _, size, _ = pictures.shape
    width, height = torch.full((count,), float(size)), torch.full((count,), float(size))
    left = torch.ones(count, dtype=torch.bool)
    for _ in range(10):
        area = size * size * torch.empty(count).uniform_(LEAST_AREA, 1)
        ratio = torch.empty(count).uniform_(-math.log(WIDEST), math.log(WIDEST)).exp()
        w, h = (area * ratio).sqrt().round(), (area / ratio).sqrt().round()
        fits = left & (w >= 1) & (h >= 1) & (w <= size) & (h <= size)
        width, height, left = torch.where(fits, w, width), torch.where(fits, h, height), left & ~fits
    places = torch.arange(size) + 0.5

    def line(extent, flip):
        """Where each pixel of the crop comes from along one axis, in grid_sample's coordinates."""
        begin = (torch.rand(count) * (size - extent + 1)).floor()
        at = places * (extent / size).unsqueeze(1) - 0.5
        at = at.clamp(min=0).minimum(extent.unsqueeze(1) - 1) + begin.unsqueeze(1)
        at = torch.where(flip.unsqueeze(1), at.flip(1), at)
        return (2 * at + 1) / size - 1

    x = line(width, torch.rand(count) < 0.5)
    y = line(height, torch.zeros(count, dtype=torch.bool))
    grid = torch.stack([x.unsqueeze(1).expand(-1, size, -1), y.unsqueeze(2).expand(-1, -1, size)], dim=3)
    return F.grid_sample(pictures, grid, mode="bilinear", padding_mode="border", align_corners=False)


def ridge_scores(train, classes, val):
    train, val = train.double(), val.double()
    mean, std = train.mean(0), train.std(0, unbiased=False).clamp(min=1e-6)
    x, y = (train - mean) / std, F.one_hot(classes).double()
    system = x.T @ x / len(x) + PENALTY * torch.eye(x.shape[1], dtype=x.dtype)
    weight = torch.linalg.solve(system, x.T @ (y - y.mean(0)) / len(x))
    return (val - mean) / std @ weight + y.mean(0)


def knn_scores(train, classes, val):
    similarity, neighbours = (val @ train.T).topk(NEIGHBOURS, dim=1)
    votes = F.one_hot(classes)[neighbours] * (similarity / TEMPERATURE).exp().unsqueeze(2)
    return votes.sum(1)


def percent(scores, classes):
    return 100 * (scores.argmax(1) == classes).double().mean().item()


def main():
    source, epochs, lr, batch = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    given = read(source)
    train, val = (given[name].permute(0, 3, 1, 2).float() / 255 for name in ("train", "val"))
    classes, truth = given["train_classes"], given["val_classes"]
    with torch.no_grad():
        train_features, val_features = features_of(given, train), features_of(given, val)
        crops = [features_of(given, random_crops(train)) for _ in range(epochs)]
    first = 0.01 * torch.randn(int(classes.max()) + 1, val_features.shape[1], dtype=torch.float64)
    weight, bias = train_lars(lambda epoch: crops[epoch], classes, first, epochs, lr, batch)
    with torch.no_grad():
        lars = val_features.double() @ weight.T + bias
    print(json.dumps({"ridge": percent(ridge_scores(train_features, classes, val_features), truth),
                      "lars": percent(lars, truth),
                      "knn": percent(knn_scores(train_features, classes, val_features), truth)}))


if __name__ == "__main__":
    main()
