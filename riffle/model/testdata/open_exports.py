"""Opens riffle's exports with the tools they are meant for, and says how far the features are from riffle's.

Usage: open_exports.py FOLDER NAME,ARCH,STEM,WIDTH ...

For each NAME, FOLDER holds NAME.safetensors and NAME.onnx as riffle exports them, and NAME.io.safetensors with a batch
of pictures and the features that riffle gave for it. Prints one JSON object: per NAME the largest difference of the
features from torch and from ONNX Runtime, and what load_state_dict found missing and unexpected. Exit code 77: a
package is missing.

The network is written from He et al. (2016) with the parameter names that torchvision uses.
"""
import json
import sys

try:
    import numpy
    import onnx
    import onnxruntime
    import torch
    from safetensors.torch import load_file
    from torch import nn
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(77)

BLOCKS = {"resnet10": (1, 1, 1, 1), "resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}


class Block(nn.Module):
    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        outputs = width * 4 if bottleneck else width
        kernels = (1, 3, 1) if bottleneck else (3, 3)
        strided = 1 if bottleneck else 0
        channels = [inputs] + [width] * (len(kernels) - 1) + [outputs]
        self.count = len(kernels)
        for i, kernel in enumerate(kernels):
            step = stride if i == strided else 1
            self.add_module(f"conv{i + 1}",
                            nn.Conv2d(channels[i], channels[i + 1], kernel, step, kernel // 2, bias=False))
            self.add_module(f"bn{i + 1}", nn.BatchNorm2d(channels[i + 1]))
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.count:
                y = torch.relu(y)
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, arch, stem, width):
        super().__init__()
        bottleneck = arch == "resnet50"
        kernel = 7 if stem == "standard" else 3
        self.conv1 = nn.Conv2d(3, width, kernel, 1 if stem == "small" else 2, kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if stem == "standard" else nn.Identity()
        inputs = width
        for stage, count in enumerate(BLOCKS[arch]):
            blocks = []
            for i in range(count):
                blocks.append(Block(inputs, width << stage, 2 if stage and not i else 1, bottleneck))
                inputs = (width << stage) * (4 if bottleneck else 1)
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, 1000)

    def forward(self, x):
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        return self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((2, 3))


def run_onnx(path, pictures):
    onnx.checker.check_model(onnx.load(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    whole = session.run(["features"], {"pictures": pictures})[0]
    # Another batch size through the same session: the dimension is free.
    one = session.run(["features"], {"pictures": pictures[:1]})[0]
    assert numpy.abs(one - whole[:1]).max() < 1e-4, "a batch of one gives other features"
    return whole, session.get_modelmeta().custom_metadata_map


def main():
    folder, cases = sys.argv[1], sys.argv[2:]
    torch.set_num_threads(1)
    report = {}
    for case in cases:
        name, arch, stem, width = case.split(",")
        io = load_file(f"{folder}/{name}.io.safetensors")
        network = ResNet(arch, stem, int(width)).eval()
        found = network.load_state_dict(load_file(f"{folder}/{name}.safetensors"), strict=False)
        with torch.no_grad():
            features = network(io["pictures"])
        from_onnx, metadata = run_onnx(f"{folder}/{name}.onnx", io["pictures"].numpy())
        report[name] = {
            "missing": list(found.missing_keys),
            "unexpected": list(found.unexpected_keys),
            "torch": float((features - io["features"]).abs().max()),
            "onnx": float(numpy.abs(from_onnx - io["features"].numpy()).max()),
            "largest": float(io["features"].abs().max()),
            "metadata": metadata,
        }
    print(json.dumps(report))


main()
