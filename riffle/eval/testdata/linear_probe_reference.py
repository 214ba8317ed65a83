"""The linear probe's LARS recipe in plain Python torch with autograd, to check riffle against.

Usage: linear_probe_reference.py INPUT OUTPUT EPOCHS LR BATCH

INPUT is a safetensors file with "features", "classes" and the first "weight"; biases begin at zero. OUTPUT gets "weight"
and "bias" after training. The order of the samples is drawn here, apart from riffle's.
"""
import json
import math
import struct
import sys

import torch
import torch.nn.functional as F

TRUST, MOMENTUM = 0.001, 0.9
TYPES = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64, "U8": torch.uint8}


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
        blob = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F64", "shape": list(tensor.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def train(features, classes, weight, epochs, lr, batch):
    """`features` gives an epoch's, of any length, by its number."""
    weight = weight.clone().requires_grad_()
    bias = torch.zeros(len(weight), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([weight, bias], lr=lr, momentum=MOMENTUM)
    total = epochs * math.ceil(len(classes) / batch)
    step = 0
    for epoch in range(epochs):
        inputs = F.normalize(features(epoch), dim=1).double()
        for places in torch.randperm(len(inputs)).split(batch):
            optimizer.param_groups[0]["lr"] = 0.5 * lr * (1 + math.cos(math.pi * step / total))
            optimizer.zero_grad()
            F.cross_entropy(F.linear(inputs[places], weight, bias), classes[places]).backward()
            for parameter in (weight, bias):
                length, slope = parameter.detach().norm(), parameter.grad.norm()
                if length > 0 and slope > 0:
                    parameter.grad *= TRUST * length / slope
            optimizer.step()
            step += 1
    return weight, bias


def main():
    source, target, epochs, lr, batch = sys.argv[1:]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    given = read(source)
    weight, bias = train(lambda epoch: given["features"], given["classes"], given["weight"], int(epochs), float(lr), int(batch))
    write(target, {"weight": weight, "bias": bias})


if __name__ == "__main__":
    main()
