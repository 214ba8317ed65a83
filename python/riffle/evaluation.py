"""Features of a stream, and how good they are."""

import dataclasses
import os
from typing import Any, Iterable

import torch
from torch import Tensor, nn

from . import _riffle
from ._load import Error
from ._pictures import channels_first, channels_last
from .stream import Sample, Stream, as_stream

Encoder = str | os.PathLike[str] | nn.Module


@dataclasses.dataclass
class Embedding:
    """Features of the samples of a stream, as embed() returns them; row i belongs to item i of each list.

    >>> encoder = torch.nn.Flatten()
    >>> embedding = riffle.embed(encoder, "synthetic:?frames=1", samples=3, size=8)
    >>> len(embedding), embedding.features.shape, embedding.indices
    (3, torch.Size([3, 192]), [0, 1, 2])
    """

    features: Tensor
    """[n, dim] float32 on the CPU."""
    indices: list[int]
    clips: list[int]
    labels: list[str]
    keys: list[str]

    def __len__(self) -> int:
        return len(self.features)


def _by_module(module: nn.Module, stream: Stream, samples: int, size: int, batch: int,
               device: str) -> Embedding:
    size = size or getattr(module, "size", 0)
    if size <= 0:
        raise Error("say which size the encoder wants its pictures in, in px: size=224")
    place = device or next((p.device for p in module.parameters()), torch.device("cpu"))
    features: list[Tensor] = []
    seen: list[Sample] = []
    pictures: list[Tensor] = []

    def encode() -> None:
        if pictures:
            rows = module(channels_first(torch.stack(pictures)).to(place))
            if not isinstance(rows, Tensor):
                raise Error(f"the encoder must return a tensor [n, dim], not {type(rows).__name__}")
            features.append(rows.float().cpu())
            pictures.clear()

    # A part may be in another mode than the whole: norms that are kept as they are, for one.
    modes = [(part, part.training) for part in module.modules()]
    module.to(place).eval()
    try:
        with torch.no_grad():
            for sample in stream:
                pictures.append(_riffle.fit_square(channels_last(sample.picture), size))
                seen.append(dataclasses.replace(sample, picture=None))
                if len(pictures) == batch:
                    encode()
                if samples and len(seen) == samples:
                    break
            encode()
    finally:
        for part, training in modes:
            part.training = training
    if not seen:
        raise Error(f"{stream!r} has no samples")
    return Embedding(torch.cat(features), [s.index for s in seen], [s.clip for s in seen],
                     [s.label for s in seen], [s.key for s in seen])


def embed(encoder: Encoder, stream: Stream | str | Iterable[Any], *, samples: int = 0, size: int = 0,
          batch: int = 256, device: str = "", checkpoint: str = "") -> Embedding:
    """Returns the features of the samples of a stream.

    `encoder`: a run folder or a file of weights, which riffle's own network encodes with while the
    stream is read ahead; or any module that takes uint8 pictures, [n, 3, size, size], such as
    load_encoder() gives. `samples`: at most so many; 0: all, if the stream ends. `size`: default:
    the run's.

    >>> encoder = riffle.ResNet("resnet10", stem="small", width=8)
    >>> result = riffle.embed(encoder, "synthetic:?frames=1", samples=10, size=32)
    >>> result.features.shape, len(result.labels)
    (torch.Size([10, 64]), 10)
    """
    if samples < 0 or batch < 1:
        raise Error(f"samples must be at least 0 and batch at least 1, not {samples} and {batch}")
    source = as_stream(stream)
    if isinstance(encoder, nn.Module):
        return _by_module(encoder, source, samples, size, batch, device)
    features, indices, clips, labels, keys = _riffle.embed_stream(
        os.fspath(encoder), checkpoint, source._handle, samples, size, batch, device)
    if not features:
        raise Error(f"{source!r} has no samples")
    return Embedding(torch.cat(features), indices, clips, labels, keys)


def probe(encoder: Encoder, train: Stream | str | Iterable[Any], val: Stream | str | Iterable[Any], *,
          recipe: str = "cached", samples: int = 0, size: int = 0, device: str = "",
          checkpoint: str = "") -> dict[str, Any]:
    """Returns how well a linear and a k-NN classifier on the frozen encoder tell labels apart, in percent.

    `train`, `val`: labelled streams. `recipe`: "cached" (ridge regression), "softmax", or the
    paper's "imagenet", "inaturalist" and "full-imagenet", on random crops, for run folders and files
    of weights only. The other arguments are those of embed().

    >>> encoder = riffle.ResNet("resnet10", stem="small", width=8)
    >>> result = riffle.probe(encoder, "synthetic:?frames=1&seed=1", "synthetic:?frames=1&seed=2",
    ...                       samples=100, size=32)
    >>> sorted(result)
    ['knn_top1', 'linear_top1', 'linear_top5', 'recipe', 'standard_error']
    """
    if samples < 0:
        raise Error(f"samples must be at least 0, not {samples}")
    if not isinstance(encoder, nn.Module):
        return _riffle.probe_run(os.fspath(encoder), checkpoint, as_stream(train)._handle,
                                 as_stream(val)._handle, recipe, samples, size, device)
    known = [embed(encoder, stream, samples=samples, size=size, device=device)
             for stream in (train, val)]
    return _riffle.probe_features(known[0].features, known[0].labels, known[1].features,
                                  known[1].labels, recipe)
