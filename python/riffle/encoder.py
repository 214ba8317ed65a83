"""The encoder of a run as a plain module of torch."""

import os
from typing import Mapping

from torch import Tensor

from . import _riffle
from .resnet import ResNet
from .vision_transformer import HEADS, VisionTransformer

Network = ResNet | VisionTransformer


def make_encoder(tensors: list[tuple[str, Tensor]], metadata: Mapping[str, str]) -> Network:
    """Returns the network of weights as the C++ side gives them, in evaluation mode."""
    kind = VisionTransformer if metadata["arch"] in HEADS else ResNet
    encoder: Network = kind(metadata["arch"], metadata["stem"], int(metadata["width"]),
                            int(metadata["size"]))
    encoder.load_state_dict(dict(tensors), strict=True)
    return encoder.eval()


def load_encoder(run: str | os.PathLike[str], checkpoint: str = "") -> Network:
    """Returns the encoder of a run folder, or of a safetensors file that `riffle export` wrote, on the CPU.

    A ResNet or a VisionTransformer, as the run was. `checkpoint`: of the run, such as
    "update-000000200"; default: the newest. It is in evaluation mode; call .train() to train on.
    Raises Error if there is none, or if it is damaged.

    >>> encoder = riffle.load_encoder("runs/photos")
    >>> pictures = torch.zeros(2, 3, encoder.size, encoder.size, dtype=torch.uint8)
    >>> encoder(pictures).shape == (2, encoder.features)
    True
    """
    return make_encoder(*_riffle.read_weights(os.fspath(run), checkpoint))
