"""What riffle's networks have in common."""

from typing import Mapping, TypeVar

import torch
from torch import Tensor, nn

from ._load import Error

Value = TypeVar("Value")


def chosen(key: str, name: str, values: Mapping[str, Value]) -> Value:
    """Returns the value of a name. Raises Error with the valid ones if it is unknown."""
    if name not in values:
        raise Error(f"unknown {key} '{name}' (valid: {', '.join(values)})")
    return values[name]


class Network(nn.Module):
    """An encoder that takes uint8 pictures, [n, 3, height, width], or pictures normalised by `mean` and `std`."""

    mean: Tensor
    std: Tensor

    def __init__(self, size: int, features: int) -> None:
        if features < 1:
            raise Error("width must be at least 1")
        super().__init__()
        self.size = size
        """Side of the pictures that it was trained on, px; 0: unknown."""
        self.features = features
        """Width of the features."""
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1), persistent=False)

    def _normalised(self, pictures: Tensor) -> Tensor:
        if pictures.dtype != torch.uint8:
            return pictures
        # In the type of the network, which may be bfloat16.
        return ((pictures / 255 - self.mean) / self.std).to(self.mean.dtype)
