"""Pictures in torch's order, [..., 3, height, width], to and from riffle's, [..., height, width, 3]."""

from typing import Any

import torch
from torch import Tensor

from ._load import Error


def channels_first(pictures: Tensor) -> Tensor:
    """Returns the same memory in torch's order (channels last in memory)."""
    return pictures.movedim(-1, -3)


def channels_last(pictures: Tensor) -> Tensor:
    """Returns riffle's order; copies only what does not lie in memory that way."""
    return pictures.movedim(-3, -1).contiguous()


def picture_batch(pictures: Tensor) -> Tensor:
    """Returns a batch in riffle's order. Raises Error unless it is [n, 3, height, width] bytes."""
    if not isinstance(pictures, Tensor) or pictures.dtype != torch.uint8 or pictures.dim() != 4 \
            or pictures.shape[1] != 3 or 0 in pictures.shape[2:]:
        raise Error(f"pictures must be a uint8 tensor [n, 3, height, width], not {_kind(pictures)}")
    return channels_last(pictures)


def one_picture(picture: Any) -> Tensor:
    """Returns a picture in riffle's order: of a tensor [3, h, w], an array [h, w, 3] or an image of Pillow."""
    if isinstance(picture, Tensor):
        if picture.dim() == 3 and picture.shape[0] == 3 and picture.dtype == torch.uint8:
            return channels_last(picture.cpu())
        raise Error(f"a picture must be a uint8 tensor [3, height, width], not {_kind(picture)}")
    import numpy  # whoever gives arrays or images has it

    if hasattr(picture, "convert"):  # Pillow
        picture = picture.convert("RGB")
    array = numpy.asarray(picture)
    if array.ndim != 3 or array.shape[2] != 3 or array.dtype != numpy.uint8:
        raise Error("a picture must be a uint8 array [height, width, 3], not "
                    f"{array.dtype} {list(array.shape)}")
    return torch.from_numpy(numpy.array(array, order="C"))


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    return type(value).__name__
