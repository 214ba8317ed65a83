"""Exact redundancy of any features."""

from typing import Any, Mapping, NamedTuple

import torch
from torch import Tensor

from . import _riffle
from ._load import Error
from ._settings import settings


class Removed(NamedTuple):
    """Rows that NearestIndex.take() took out, in that order, and the other end of each one's pair."""

    slots: Tensor
    into: Tensor


def _integers(values: Any) -> list[int]:
    if isinstance(values, (list, range)):
        return list(values)
    return torch.as_tensor(values, dtype=torch.int64).reshape(-1).tolist()


class NearestIndex:
    """Finds the most redundant of many features, exactly, while they change.

    Rows are named by slots in [0, slots). `policy`: "minred", where one of the nearest pair (cosine
    distance) goes, again and again; or "merge", where the pair goes that is cheapest to merge and
    weights are handed on (docs/minred.md). `feature_type`: "float32", "float16" or "bfloat16", what
    rows are kept as. Other keys of the configuration's buffer part go as keywords: tie="newer",
    merge_exponent=0.5, weight_limit=16. Arguments may be tensors, arrays or lists.

    Costs much less than all pairs: what a row's nearest others are is remembered, and only rows that
    changed are compared again.

    >>> index = riffle.NearestIndex(slots=4, dim=2)
    >>> index.set([0, 1, 2, 3], [[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [-1.0, 0.0]])
    >>> index.take(1)
    Removed(slots=tensor([0]), into=tensor([2]))
    >>> 0 in index, len(index)
    (False, 3)
    """

    def __init__(self, slots: int, dim: int, policy: str = "minred",
                 device: str | torch.device = "cpu", *, feature_type: str = "float32",
                 **options: Any) -> None:
        values = settings({"policy": policy, "feature_type": feature_type, **options}, "buffer")
        self._index = _riffle.NearestIndex(values, slots, dim, str(device))
        self._slots, self._dim = slots, dim
        self._changes = 0

    def set(self, slots: Any, features: Any, ages: Any = None) -> None:
        """Sets the rows of these slots, new or in place of old ones.

        `features`: [n, dim], of any length other than zero: the index normalises. `ages`: for ties;
        smaller is older; default: by the order in which they are given.
        """
        given = self._checked(slots, features, ages)
        self._index.set(*given)

    def blend(self, slots: Any, features: Any, momentum: float, ages: Any = None) -> None:
        """As set(), but moves the rows that are there: normalize(momentum * row + (1 - momentum) * feature)."""
        slots, ages, features = self._checked(slots, features, ages)
        self._index.blend(slots, ages, features, momentum)

    def erase(self, slots: Any) -> None:
        """Takes rows out."""
        self._index.erase(self._checked_slots(slots))

    def take(self, n: int) -> Removed:
        """Takes out the n most redundant rows, one after another.

        After Ctrl-C the work is finished in the background: `slot in index` says who is left.
        """
        if not 0 <= n <= len(self):
            raise Error(f"cannot take {n} of {len(self)} rows")
        slots, into = self._index.take(n)
        return Removed(torch.tensor(slots, dtype=torch.int64), torch.tensor(into, dtype=torch.int64))

    def weigh(self, slots: Any, weights: Any) -> None:
        """Sets the weights that slots without a row will have when they get one (policy merge)."""
        values = torch.as_tensor(weights, dtype=torch.float64).reshape(-1)
        names = self._checked_slots(slots)
        if len(values) != len(names) or not bool((values > 0).all()):
            raise Error(f"weights must be {len(names)} positive numbers")
        if any(slot in self for slot in names):
            raise Error("weigh() is for slots without a row")
        self._index.weigh(names, values.tolist())

    def weights(self) -> Tensor:
        """Returns the weights by slot, [slots] float64; 1 unless weigh() or a merge set another."""
        return torch.tensor(self._index.weights(), dtype=torch.float64)

    def distances(self) -> Tensor:
        """Returns each row's distance to the nearest other one, [slots] float32; 2 where there is none."""
        return self._index.distances()

    def state_dict(self) -> dict[str, Any]:
        """Returns the exact state, for torch.save()."""
        return {"index": dict(self._index.save()), "changes": self._changes}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues as the index of state_dict() would; it must have been made in the same way."""
        self._index.restore(list(state["index"].items()))
        self._changes = state["changes"]

    def __contains__(self, slot: int) -> bool:
        return self._index.contains(slot)

    def __len__(self) -> int:
        return self._index.size()

    def _checked_slots(self, slots: Any) -> list[int]:
        names = _integers(slots)
        for slot in (min(names, default=0), max(names, default=0)):
            if not 0 <= slot < self._slots:
                raise Error(f"slot {slot} is not in [0, {self._slots})")
        if len(set(names)) != len(names):
            raise Error("a slot is given twice")
        return names

    def _checked(self, slots: Any, features: Any, ages: Any) -> tuple[list[int], list[int], Tensor]:
        names = self._checked_slots(slots)
        rows = torch.as_tensor(features)
        if rows.dim() != 2 or list(rows.shape) != [len(names), self._dim]:
            raise Error(f"features must be [{len(names)}, {self._dim}], not {list(rows.shape)}")
        if not rows.is_floating_point():
            rows = rows.to(torch.float32)
        if ages is None:
            ages = range(self._changes, self._changes + len(names))
        when = _integers(ages)
        if len(when) != len(names):
            raise Error(f"{len(when)} ages for {len(names)} slots")
        self._changes += len(names)
        return names, when, rows.detach()


def select(features: Any, keep: int, policy: str = "minred", **options: Any) -> Any:
    """Returns the indices of the `keep` rows that are left when the most redundant ones have gone, in order.

    `features`: [n, dim], a tensor on any device or an array; the indices are of the same kind, on
    the CPU. `policy` and `options`: as for NearestIndex. On equal terms the older, earlier row goes.

    >>> riffle.select(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 0.9]]), keep=2)
    tensor([2, 3])
    """
    rows = torch.as_tensor(features)
    if rows.dim() != 2:
        raise Error(f"features must be [n, dim], not {list(rows.shape)}")
    count, dim = rows.shape
    if not 0 <= keep <= count:
        raise Error(f"cannot keep {keep} of {count} rows")
    index = NearestIndex(count, dim, policy, rows.device.type, **options)
    index.set(range(count), rows)
    stays = torch.ones(count, dtype=torch.bool)
    stays[index.take(count - keep).slots] = False
    kept = stays.nonzero().reshape(-1)
    return kept if isinstance(features, Tensor) else kept.numpy()
