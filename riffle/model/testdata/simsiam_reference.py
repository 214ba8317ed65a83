"""SimSiam in plain Python torch, written from the papers (Chen and He 2021; He et al. 2016), to check riffle against.

Usage: simsiam_reference.py INPUT OUTPUT ARCH STEM STEPS LR

INPUT is a safetensors file with the initial weights and buffers under riffle's names and two batches, view1 and view2.
OUTPUT gets, for those weights: "loss", "z1", "z2", "features", "encoded" (evaluation mode, before any training pass),
"gradient/NAME" for each parameter, and "after/NAME" for each parameter and buffer after STEPS updates of SGD.
"""
import json
import struct
import sys

import torch
import torch.nn.functional as F

MOMENTUM, WEIGHT_DECAY = 0.9, 1e-4
BLOCKS = {"resnet10": (1, 1, 1, 1), "resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}
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

    def __init__(self, w, arch, stem):
        self.w, self.stem = w, stem
        self.blocks, self.bottleneck = BLOCKS[arch], arch == "resnet50"

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

    def encode(self, x, training):
        x = self.conv(x, "encoder.conv1", 1 if self.stem == "small" else 2)
        x = F.relu(self.norm(x, "encoder.bn1", training))
        if self.stem == "standard":
            x = F.max_pool2d(x, 3, 2, 1)
        for stage, count in enumerate(self.blocks, 1):
            for i in range(count):
                stride = 2 if stage > 1 and i == 0 else 1
                x = self.block(x, f"encoder.layer{stage}.{i}", stride, training)
        return F.adaptive_avg_pool2d(x, 1).flatten(1)

    def project(self, x, training):
        w = self.w
        x = F.relu(self.norm(F.linear(x, w["projector.0.weight"]), "projector.1", training))
        x = F.relu(self.norm(F.linear(x, w["projector.3.weight"]), "projector.4", training))
        return self.norm(F.linear(x, w["projector.6.weight"]), "projector.7", training)

    def predict(self, x, training):
        w = self.w
        x = F.relu(self.norm(F.linear(x, w["predictor.0.weight"]), "predictor.1", training))
        return F.linear(x, w["predictor.3.weight"], w["predictor.3.bias"])

    def loss(self, view1, view2):
        z1 = self.project(self.encode(view1, True), True)
        z2 = self.project(self.encode(view2, True), True)
        p1, p2 = self.predict(z1, True), self.predict(z2, True)
        first = -F.cosine_similarity(p1, z2.detach(), dim=1).mean()
        second = -F.cosine_similarity(p2, z1.detach(), dim=1).mean()
        return (first + second) / 2, z1, z2


def main():
    source, target, arch, stem, steps, lr = sys.argv[1:]
    torch.set_num_threads(1)
    w = read(source)
    view1, view2 = w.pop("view1"), w.pop("view2")
    trained = [name for name in w if name.endswith((".weight", ".bias"))]
    for name in trained:
        w[name].requires_grad_()
    network = Network(w, arch, stem)
    result = {}
    with torch.no_grad():
        result["encoded"] = network.encode(view1, False)
        result["arrival"] = F.normalize(network.project(network.encode(view1, False), False), dim=1)
    optimizer = torch.optim.SGD([w[name] for name in trained], float(lr), MOMENTUM, weight_decay=WEIGHT_DECAY)
    for step in range(int(steps)):
        optimizer.zero_grad()
        loss, z1, z2 = network.loss(view1, view2)
        loss.backward()
        if step == 0:
            result["loss"] = loss
            result["features"] = F.normalize(z1 + z2, dim=1)
            spread = torch.cat([F.normalize(z1, dim=1), F.normalize(z2, dim=1)]).std(0, unbiased=False)
            result["std"] = spread.mean() * z1.shape[1] ** 0.5
            for name in trained:
                result["gradient/" + name] = w[name].grad.clone()
        optimizer.step()
    for name, tensor in w.items():
        result["after/" + name] = tensor
    write(target, result)


main()
