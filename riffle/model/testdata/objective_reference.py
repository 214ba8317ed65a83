"""riffle's methods in plain Python torch, written from the papers that their headers name, to check riffle against.

Usage: objective_reference.py (INPUT OUTPUT ARCH STEM STEPS LR METHOD SETTINGS)...

INPUT is a safetensors file with the initial weights and buffers under riffle's names and two batches, view1 and view2.
SETTINGS is a JSON object with the keys of riffle's configuration that METHOD reads, and "seed". OUTPUT gets, for those
weights: "loss", "features", "std", "encoded" and "arrival" (evaluation mode, before any training pass), "gradient/NAME"
for each parameter that is trained, and "after/NAME" for each parameter and buffer after STEPS updates of SGD.
"""
import json
import statistics
import struct
import sys

import torch
import torch.nn.functional as F

MOMENTUM, WEIGHT_DECAY = 0.9, 1e-4
BLOCKS = {"resnet10": (1, 1, 1, 1), "resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}
HEADS = {"vit-s": 6, "vit-b": 12}
TYPES = {"F32": torch.float32, "I64": torch.int64}


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=TYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"]).clone()
    return tensors


def write(path, tensors):
    header, blobs, at = {}, [], 0
    for name, tensor in tensors.items():
        kind = {v: k for k, v in TYPES.items()}[tensor.dtype]
        blob = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


class Network:
    """Functional: `w` holds parameters and buffers by name."""

    def __init__(self, w, arch, stem, settings):
        self.w, self.stem, self.settings = w, stem, settings
        self.heads = HEADS.get(arch)
        self.blocks, self.bottleneck = BLOCKS.get(arch), arch == "resnet50"

    def norm(self, x, name, training):
        w = self.w
        if training:
            w[name + ".num_batches_tracked"] += 1
        return F.batch_norm(x, w[name + ".running_mean"], w[name + ".running_var"],
                            w.get(name + ".weight"), w.get(name + ".bias"), training)

    def conv(self, x, name, stride):
        weight = self.w[name + ".weight"]
        return F.conv2d(x, weight, stride=stride, padding=weight.shape[2] // 2)

    def block(self, x, name, stride, training):
        layers = 3 if self.bottleneck else 2
        strided = 2 if self.bottleneck else 1  # which convolution has the stride
        y = x
        for i in range(1, layers + 1):
            y = self.conv(y, f"{name}.conv{i}", stride if i == strided else 1)
            y = self.norm(y, f"{name}.bn{i}", training)
            if i < layers:
                y = F.relu(y)
        if name + ".downsample.0.weight" in self.w:
            x = self.norm(self.conv(x, name + ".downsample.0", stride), name + ".downsample.1", training)
        return F.relu(x + y)

    def attend(self, x, name):
        """One head after the other."""
        w, width = self.w, x.shape[2] // self.heads
        query, key, value = (x @ w[name + ".qkv.weight"].T + w[name + ".qkv.bias"]).chunk(3, 2)
        mixed = []
        for head in range(self.heads):
            q, k, v = (part[:, :, head * width:(head + 1) * width] for part in (query, key, value))
            mixed.append(torch.softmax(torch.einsum("nid,njd->nij", q, k) / width ** 0.5, 2) @ v)
        return torch.cat(mixed, 2) @ w[name + ".proj.weight"].T + w[name + ".proj.bias"]

    def transform(self, x, prefix):
        w, name = self.w, prefix + "encoder."
        patches = w[name + "patch_embed.proj.weight"]
        side, n = patches.shape[3], len(x)
        cells = F.unfold(x, side, stride=side).transpose(1, 2)
        rows = x.shape[2] // side
        grid = w[name + "pos_embed"][:, 1:]
        was = int(round(grid.shape[1] ** 0.5))
        grid = F.interpolate(grid.transpose(1, 2).reshape(1, -1, was, was), size=(rows, rows), mode="bicubic", antialias=True)
        x = cells @ patches.flatten(1).T + w[name + "patch_embed.proj.bias"] + grid.flatten(2).transpose(1, 2)
        x = torch.cat([(w[name + "cls_token"] + w[name + "pos_embed"][:, :1]).expand(n, -1, -1), x], 1)

        def norm(x, which):
            centred = x - x.mean(-1, keepdim=True)
            scaled = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
            return scaled * w[which + ".weight"] + w[which + ".bias"]

        for block in (f"{name}blocks.{i}" for i in range(12)):
            x = x + self.attend(norm(x, block + ".norm1"), block + ".attn")
            inner = norm(x, block + ".norm2") @ w[block + ".mlp.fc1.weight"].T + w[block + ".mlp.fc1.bias"]
            inner = inner * (1 + torch.erf(inner / 2 ** 0.5)) / 2
            x = x + inner @ w[block + ".mlp.fc2.weight"].T + w[block + ".mlp.fc2.bias"]
        return norm(x[:, 0], name + "norm")

    def encode(self, x, training, prefix=""):
        if self.heads:
            return self.transform(x, prefix)
        x = self.conv(x, prefix + "encoder.conv1", 1 if self.stem == "small" else 2)
        x = F.relu(self.norm(x, prefix + "encoder.bn1", training))
        if self.stem == "standard":
            x = F.max_pool2d(x, 3, 2, 1)
        for stage, count in enumerate(self.blocks, 1):
            for i in range(count):
                stride = 2 if stage > 1 and i == 0 else 1
                x = self.block(x, f"{prefix}encoder.layer{stage}.{i}", stride, training)
        return F.adaptive_avg_pool2d(x, 1).flatten(1)

    def before_norm(self, x, training, prefix=""):
        w, name = self.w, prefix + "projector."
        x = F.relu(self.norm(F.linear(x, w[name + "0.weight"]), name + "1", training))
        x = F.relu(self.norm(F.linear(x, w[name + "3.weight"]), name + "4", training))
        return F.linear(x, w[name + "6.weight"])

    def project(self, x, training, prefix=""):
        return self.norm(self.before_norm(x, training, prefix), prefix + "projector.7", training)

    def predict(self, x, training):
        w = self.w
        x = F.relu(self.norm(F.linear(x, w["predictor.0.weight"]), "predictor.1", training))
        return F.linear(x, w["predictor.3.weight"], w["predictor.3.bias"])

    def loss(self, method, view1, view2):
        """Returns the loss and both views' embeddings."""
        y1 = self.before_norm(self.encode(view1, True), True)
        y2 = self.before_norm(self.encode(view2, True), True)
        z1, z2 = self.norm(y1, "projector.7", True), self.norm(y2, "projector.7", True)
        return getattr(self, method)((view1, view2), (y1, y2), (z1, z2)), z1, z2

    def predicted(self, embeddings, targets):
        p1, p2 = self.predict(embeddings[0], True), self.predict(embeddings[1], True)
        first = -F.cosine_similarity(p1, targets[1].detach(), dim=1).mean()
        second = -F.cosine_similarity(p2, targets[0].detach(), dim=1).mean()
        return (first + second) / 2

    def simsiam(self, views, projections, embeddings):
        return self.predicted(embeddings, embeddings)

    def byol(self, views, projections, embeddings):
        with torch.no_grad():
            targets = [self.project(self.encode(view, True, "target."), True, "target.") for view in views]
        return self.predicted(embeddings, targets)

    def simclr(self, views, projections, embeddings):
        n = embeddings[0].shape[0]
        z = [F.normalize(row, dim=0) for view in embeddings for row in view]
        total = 0
        for i in range(2 * n):
            partner = (i + n) % (2 * n)
            others = [partner] + [j for j in range(2 * n) if j not in (i, partner)]
            logits = torch.stack([z[i].dot(z[j]) for j in others]) / self.settings["temperature"]
            total = total + F.cross_entropy(logits[None], torch.tensor([0]))
        return total / (2 * n)

    def vicreg(self, views, projections, embeddings):
        dim, settings = projections[0].shape[1], self.settings
        variance = covariance = 0
        for y in projections:
            variance = variance + F.relu(1 - torch.sqrt(y.var(0) + 1e-4)).mean() / 2
            between = torch.cov(y.T)[~torch.eye(dim, dtype=torch.bool)]
            covariance = covariance + between.pow(2).sum() / dim
        return (settings["vicreg_invariance"] * F.mse_loss(*projections)
                + settings["vicreg_variance"] * variance + settings["vicreg_covariance"] * covariance)

    def visreg(self, views, projections, embeddings):
        settings, normal = self.settings, statistics.NormalDist()
        y = torch.stack(projections)
        n, dim = y.shape[1:]
        slices = settings["visreg_slices"]
        values = draws(settings["seed"], int(self.w["slices.update"]), slices * dim)
        directions = F.normalize(torch.tensor(values).reshape(slices, dim), dim=1).float()
        quantiles = torch.tensor([normal.inv_cdf((i + 1) / (n + 1)) for i in range(n)])
        invariance = (y - y.mean(0)).pow(2).mean()
        centre = y.mean(1).pow(2).mean()
        deviation = y.std(1, unbiased=False)
        scale = (deviation - 1).pow(2).mean()
        shape = 0
        for view in range(2):
            whitened = (y[view] - y[view].mean(0)) / deviation[view].detach()
            for direction in directions:
                shape = shape + (whitened.mv(direction).sort().values - quantiles).pow(2).mean()
        regulariser = centre + scale + shape / (2 * slices)
        return settings["visreg_invariance"] * invariance + settings["visreg_regulariser"] * regulariser

    def follow(self, method):
        """What moves after a step of the optimiser."""
        w = self.w
        if method == "byol":
            keep = self.settings["ema"]
            for name in [name for name in w if name.startswith("target.")
                         and name.endswith((".weight", ".bias", "cls_token", "pos_embed"))]:
                w[name] = keep * w[name] + (1 - keep) * w[name.removeprefix("target.")].detach()
        if method == "visreg":
            w["slices.update"] += 1


def draws(seed, update, count):
    """Normal numbers by a hash of seed, update and index."""
    def mix(x):
        x = (x ^ x >> 16) * 0x21f0aaad % 2**32
        x = (x ^ x >> 15) * 0x735a2d97 % 2**32
        return x ^ x >> 15

    key = mix((mix(mix(seed % 2**32) ^ seed >> 32) + update) % 2**32)
    normal = statistics.NormalDist()
    return [normal.inv_cdf(((mix((mix(i) + key) % 2**32) >> 9) + 0.5) / 2**23) for i in range(count)]


def answer(source, target, arch, stem, steps, lr, method, settings):
    w = read(source)
    view1, view2 = w.pop("view1"), w.pop("view2")
    trained = [name for name in w if name.endswith((".weight", ".bias", "cls_token", "pos_embed"))
               and not name.startswith("target.")]
    for name in trained:
        w[name].requires_grad_()
    network = Network(w, arch, stem, json.loads(settings))
    result = {}
    with torch.no_grad():
        result["encoded"] = network.encode(view1, False)
        result["arrival"] = F.normalize(network.project(network.encode(view1, False), False), dim=1)
    optimizer = torch.optim.SGD([w[name] for name in trained], float(lr), MOMENTUM, weight_decay=WEIGHT_DECAY)
    for step in range(int(steps)):
        optimizer.zero_grad()
        loss, z1, z2 = network.loss(method, view1, view2)
        loss.backward()
        if step == 0:
            result["loss"] = loss
            result["features"] = F.normalize(z1 + z2, dim=1)
            spread = torch.cat([F.normalize(z1, dim=1), F.normalize(z2, dim=1)]).std(0, unbiased=False)
            result["std"] = spread.mean() * z1.shape[1] ** 0.5
            for name in trained:
                result["gradient/" + name] = w[name].grad.clone()
        optimizer.step()
        network.follow(method)
    for name, tensor in w.items():
        result["after/" + name] = tensor
    write(target, result)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for first in range(1, len(sys.argv), 8):
        answer(*sys.argv[first:first + 8])
