"""The encoder of a run as a plain module of torch."""

import os
from typing import Mapping

import torch
from torch import Tensor, nn

from . import _riffle

_BLOCKS = {"resnet10": (1, 1, 1, 1), "resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}


def _conv(into: int, out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(into, out, kernel, stride, padding=kernel // 2, bias=False)


class _Block(nn.Module):
    """A residual block with torchvision's names: two 3x3 convolutions, or 1x1, 3x3, 1x1."""

    def __init__(self, into: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        out = width * (4 if bottleneck else 1)
        kernels = (1, 3, 1) if bottleneck else (3, 3)
        self._layers = len(kernels)
        channels = [into] + [width] * (len(kernels) - 1) + [out]
        for i, kernel in enumerate(kernels):
            moves = stride if i == len(kernels) - 2 else 1  # the 3x3, and the first of two
            self.add_module(f"conv{i + 1}", _conv(channels[i], channels[i + 1], kernel, moves))
            self.add_module(f"bn{i + 1}", nn.BatchNorm2d(channels[i + 1]))
        self.downsample = None
        if stride != 1 or into != out:
            self.downsample = nn.Sequential(_conv(into, out, 1, stride), nn.BatchNorm2d(out))

    def forward(self, maps: Tensor) -> Tensor:
        around: Tensor = maps if self.downsample is None else self.downsample(maps)
        for i in range(1, self._layers + 1):
            maps = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(maps))
            if i < self._layers:
                maps = maps.relu()
        return (maps + around).relu()


class ResNet(nn.Module):
    """A residual network without classifier: pictures to pooled features, [n, features].

    Parameters have torchvision's names, so a ResNet-18 of stem "standard" and width 64 exchanges its
    state_dict() with torchvision.models.resnet18. Takes uint8 pictures, [n, 3, height, width], or
    pictures normalised by `mean` and `std`.

    >>> encoder = riffle.ResNet("resnet18", stem="small", width=16)
    >>> encoder(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape
    torch.Size([2, 128])
    """

    mean: Tensor
    std: Tensor

    def __init__(self, arch: str = "resnet18", stem: str = "standard", width: int = 64,
                 size: int = 0) -> None:
        super().__init__()
        self.size = size
        """Side of the pictures that it was trained on, px; 0: unknown."""
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1), persistent=False)
        self.conv1 = _conv(3, width, 7 if stem == "standard" else 3, 1 if stem == "small" else 2)
        self.bn1 = nn.BatchNorm2d(width)
        self._pool = stem == "standard"
        bottleneck = arch == "resnet50"
        into = width
        for stage, blocks in enumerate(_BLOCKS[arch]):
            layer = nn.Sequential()
            for i in range(blocks):
                stride = 2 if stage > 0 and i == 0 else 1
                layer.append(_Block(into, width << stage, stride, bottleneck))
                into = (width << stage) * (4 if bottleneck else 1)
            self.add_module(f"layer{stage + 1}", layer)
        self.features = into
        """Width of the features."""

    def forward(self, pictures: Tensor) -> Tensor:
        if pictures.dtype == torch.uint8:
            pictures = (pictures / 255 - self.mean) / self.std
        maps: Tensor = self.bn1(self.conv1(pictures)).relu()
        if self._pool:
            maps = nn.functional.max_pool2d(maps, 3, 2, 1)
        for stage in range(len(_BLOCKS["resnet18"])):
            maps = getattr(self, f"layer{stage + 1}")(maps)
        return maps.mean((2, 3))


def make_encoder(tensors: list[tuple[str, Tensor]], metadata: Mapping[str, str]) -> ResNet:
    """Returns the network of weights as the C++ side gives them, in evaluation mode."""
    if metadata["arch"] not in _BLOCKS:
        raise ValueError(f"{metadata['arch']} is not a ResNet; `riffle export` writes it for timm")
    encoder = ResNet(metadata["arch"], metadata["stem"], int(metadata["width"]),
                     int(metadata["size"]))
    encoder.load_state_dict(dict(tensors), strict=True)
    return encoder.eval()


def load_encoder(run: str | os.PathLike[str], checkpoint: str = "") -> ResNet:
    """Returns the encoder of a run folder, or of a safetensors file that `riffle export` wrote, on the CPU.

    `checkpoint`: of the run, such as "update-000000200"; default: the newest. It is in evaluation
    mode; call .train() to train on. Raises Error if there is none, or if it is damaged.

    >>> encoder = riffle.load_encoder("runs/photos")  # doctest: +SKIP
    >>> features = encoder(pictures)                  # doctest: +SKIP
    """
    return make_encoder(*_riffle.read_weights(os.fspath(run), checkpoint))
