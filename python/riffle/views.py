"""Two random views of each picture."""

import functools
import operator
import os
from typing import Any

import torch
from torch import Tensor

from . import _riffle
from ._load import Error
from ._pictures import picture_batch
from ._settings import checked_seed, settings

# Steps that there are random numbers for.
_STEPS = 2**43


class TwoViews:
    """Makes two random views of each picture of a batch: crop, flip, colours, grey, blur.

    A view is a function of (seed, step, place in the batch, picture): the same on any number of
    threads, and up to rounding on a GPU. The defaults are SimSiam's for ImageNet; other keys of the
    configuration's augment part go as keywords, such as crop_min=0.2, blur=0 or hue=0.1.

    >>> views = riffle.TwoViews(size=32, blur=0)
    >>> pictures = torch.randint(256, (8, 3, 40, 40), dtype=torch.uint8)
    >>> views(pictures, step=5).shape
    torch.Size([16, 3, 32, 32])
    >>> torch.equal(views(pictures, step=5), views(pictures, step=5))
    True
    """

    def __init__(self, size: int = 224, *, seed: int = 0, **options: Any) -> None:
        if options.get("temporal"):
            raise Error("temporal: both views of a tensor's picture are of that picture; "
                        "riffle.Learner takes augment.temporal")
        self._views = _riffle.TwoViews(settings({"size": size, **options}, "augment"), checked_seed(seed))

    def __call__(self, pictures: Tensor, step: int) -> Tensor:
        """Returns [2 n, 3, size, size] float32 where the pictures are; see two_views()."""
        step = operator.index(step)
        if not 0 <= step < _STEPS:
            raise Error(f"step must be in [0, 2^43), not {step}")
        return self._views(picture_batch(pictures), step)


@functools.lru_cache(maxsize=8)
def _cached(process: int, size: int, seed: int, options: tuple[tuple[str, Any], ...]) -> TwoViews:
    return TwoViews(size, seed=seed, **dict(options))


def two_views(pictures: Tensor, size: int = 224, *, seed: int = 0, step: int | None = None,
              **options: Any) -> Tensor:
    """Returns two random views of each picture, by riffle's kernel on a GPU or its threads on a CPU.

    `pictures`: [n, 3, height, width] uint8. Returns [2 n, 3, size, size] float32, normalised as for
    ImageNet, channels last in memory: the first views of all pictures, then their second ones;
    `.chunk(2)` parts them. `step`: what makes one call differ from the next, such as batch.update;
    default: drawn from torch's generator, so that torch.manual_seed() repeats it. `options`: as for
    TwoViews.

    >>> pictures = torch.randint(256, (4, 3, 40, 40), dtype=torch.uint8)
    >>> first, second = riffle.two_views(pictures, size=32, step=0).chunk(2)
    >>> first.shape, first.dtype
    (torch.Size([4, 3, 32, 32]), torch.float32)
    """
    if step is None:
        step = int(torch.randint(_STEPS, ()))
    return _cached(os.getpid(), size, seed, tuple(sorted(options.items())))(pictures, step)
