"""Residual networks, as torchvision names their parts."""

from torch import Tensor, nn

from ._network import Network, chosen

BLOCKS = {"resnet10": (1, 1, 1, 1), "resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}
# Kernel and stride of the first convolution, which a max-pool follows in "standard".
_STEMS = {"standard": (7, 2), "small": (3, 1), "stride2": (3, 2)}


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


class ResNet(Network):
    """A residual network without classifier: pictures to pooled features, [n, features].

    `arch`: "resnet10", "resnet18" or "resnet50". `stem`: "standard", "small" (for pictures up to 64
    px) or "stride2". `width`: channels of the first stage.

    Parameters have torchvision's names, so a ResNet-18 of stem "standard" and width 64 exchanges its
    state_dict() with torchvision.models.resnet18. Takes uint8 pictures, [n, 3, height, width], or
    pictures normalised by `mean` and `std`.

    >>> encoder = riffle.ResNet("resnet18", stem="small", width=16)
    >>> encoder(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape
    torch.Size([2, 128])
    """

    def __init__(self, arch: str = "resnet18", stem: str = "standard", width: int = 64,
                 size: int = 0) -> None:
        stages = chosen("arch", arch, BLOCKS)
        kernel, stride = chosen("stem", stem, _STEMS)
        bottleneck = arch == "resnet50"
        expansion = 4 if bottleneck else 1
        super().__init__(size, (width << len(stages) - 1) * expansion)
        self.conv1 = _conv(3, width, kernel, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self._pool = stem == "standard"
        self._stages = len(stages)
        into = width
        for stage, blocks in enumerate(stages):
            layer = nn.Sequential()
            for i in range(blocks):
                stride = 2 if stage > 0 and i == 0 else 1
                layer.append(_Block(into, width << stage, stride, bottleneck))
                into = (width << stage) * expansion
            self.add_module(f"layer{stage + 1}", layer)

    def forward(self, pictures: Tensor) -> Tensor:
        maps: Tensor = self.bn1(self.conv1(self._normalised(pictures))).relu()
        if self._pool:
            maps = nn.functional.max_pool2d(maps, 3, 2, 1)
        for stage in range(self._stages):
            maps = getattr(self, f"layer{stage + 1}")(maps)
        return maps.mean((2, 3))
