"""Exact redundancy of any features."""

from typing import Any, Mapping, NamedTuple

import torch
from torch import Tensor

from . import _riffle
from ._lists import integers, is_array
from ._load import Error
from ._settings import settings


class Removed(NamedTuple):
    """Rows that NearestIndex.take() took out, in that order, and the other end of each one's pair.

    >>> index = riffle.NearestIndex(slots=3, dim=2)
    >>> index.set([0, 1, 2], [[1.0, 0.0], [0.0, 1.0], [0.1, 0.9]])
    >>> gone, into = index.take(1)
    >>> int(gone), int(into)
    (1, 2)
    """

    slots: Any
    """[n] int64."""
    into: Any
    """[n] int64; -1 where there was no other row."""


def _rows(features: Any) -> Tensor:
    """Returns features as a tensor of floats, [n, dim]."""
    if is_array(features) and not (features.flags.writeable and min(features.strides, default=0) >= 0):
        features = features.copy()  # torch takes no memory that is read-only or runs backwards
    try:
        rows = torch.as_tensor(features)
    except (TypeError, ValueError, RuntimeError) as error:
        raise Error(f"features must be numbers, [n, dim]: {str(error).splitlines()[0]}") from None
    if rows.dim() != 2:
        raise Error(f"features must be [n, dim], not {list(rows.shape)}")
    return rows.detach() if rows.is_floating_point() else rows.to(torch.float32)


class NearestIndex:
    """Finds the most redundant of many features, exactly, while they change.

    Rows are named by slots in [0, slots). `policy`: "minred", where one of the nearest pair (cosine
    distance) goes, again and again; or "merge", where the pair goes that is cheapest to merge and
    weights are handed on (docs/minred.md). `feature_type`: "float32", "float16" or "bfloat16", what
    rows are kept as. Other keys of the configuration's buffer part go as keywords: tie="newer",
    merge_exponent=0.5, weight_limit=16.

    Arguments may be tensors, arrays of numpy or lists. Results are tensors on the CPU; or arrays, if
    the features that set() or blend() was last given were.

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
        self._arrays = False

    def set(self, slots: Any, features: Any, ages: Any = None) -> None:
        """Sets the rows of these slots, new or in place of old ones.

        `features`: [n, dim], of any length other than zero: the index normalises. `ages`: for ties;
        smaller is older; default: by the order in which they are given.

        >>> index = riffle.NearestIndex(slots=4, dim=2)
        >>> index.set(torch.tensor([0, 3]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        >>> 3 in index, len(index)
        (True, 2)
        """
        self._index.set(*self._checked(slots, features, ages))

    def blend(self, slots: Any, features: Any, momentum: float, ages: Any = None) -> None:
        """As set(), but moves the rows that are there: normalize(momentum * row + (1 - momentum) * feature).

        >>> index = riffle.NearestIndex(slots=2, dim=2)
        >>> index.set([0, 1], [[1.0, 0.0], [0.0, 1.0]])
        >>> index.blend([0], [[0.0, 1.0]], momentum=0.5)  # half way to the other
        >>> index.distances()
        tensor([0.2929, 0.2929])
        """
        self._index.blend(*self._checked(slots, features, ages), momentum)

    def erase(self, slots: Any) -> None:
        """Takes rows out. Raises Error, and takes none, if a slot has no row.

        >>> index = riffle.NearestIndex(slots=2, dim=2)
        >>> index.set([0, 1], [[1.0, 0.0], [0.0, 1.0]])
        >>> index.erase([0])
        >>> 0 in index, 1 in index
        (False, True)
        """
        self._index.erase(self._checked_slots(slots))

    def take(self, n: int) -> Removed:
        """Takes out the n most redundant rows, one after another.

        After Ctrl-C the work is finished in the background: `slot in index` says who is left.

        >>> index = riffle.NearestIndex(slots=3, dim=2)
        >>> index.set([0, 1, 2], [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
        >>> index.take(2).slots.tolist()
        [0, 1]
        """
        if not 0 <= n <= len(self):
            raise Error(f"cannot take {n} of {len(self)} rows")
        slots, into = self._index.take(n)
        return Removed(self._result(torch.tensor(slots, dtype=torch.int64)),
                       self._result(torch.tensor(into, dtype=torch.int64)))

    def weigh(self, slots: Any, weights: Any) -> None:
        """Sets the weights that slots without a row will have when they get one (policy merge).

        >>> index = riffle.NearestIndex(slots=2, dim=2, policy="merge")
        >>> index.weigh([0, 1], [2.0, 3.0])
        >>> index.set([0, 1], [[1.0, 0.0], [1.0, 0.0]])
        >>> kept = index.take(1).into
        >>> index.weights()[kept]
        tensor([5.], dtype=torch.float64)
        """
        values = torch.as_tensor(weights, dtype=torch.float64).reshape(-1)
        names = self._checked_slots(slots)
        if len(values) != len(names) or not bool((values > 0).all()):
            raise Error(f"weights must be {len(names)} positive numbers")
        if any(slot in self for slot in names):
            raise Error("weigh() is for slots without a row")
        self._index.weigh(names, values.tolist())

    def weights(self) -> Any:
        """Returns the weights by slot, [slots] float64; 1 unless weigh() or a merge set another.

        >>> riffle.NearestIndex(slots=2, dim=2, policy="merge").weights()
        tensor([1., 1.], dtype=torch.float64)
        """
        return self._result(torch.tensor(self._index.weights(), dtype=torch.float64))

    def distances(self) -> Any:
        """Returns each row's distance to the nearest other one, [slots] float32; 2 where there is none.

        >>> index = riffle.NearestIndex(slots=3, dim=2)
        >>> index.set([0, 1], [[1.0, 0.0], [0.0, 1.0]])
        >>> index.distances()
        tensor([1., 1., 2.])
        """
        return self._result(self._index.distances())

    def state_dict(self) -> dict[str, Any]:
        """Returns the exact state, for torch.save().

        >>> index = riffle.NearestIndex(slots=3, dim=2)
        >>> index.set([0, 1, 2], [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
        >>> again = riffle.NearestIndex(slots=3, dim=2)
        >>> again.load_state_dict(index.state_dict())
        >>> again.take(1) == index.take(1)
        True
        """
        return {"index": dict(self._index.save()), "changes": self._changes}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues as the index of state_dict() would; it must have been made in the same way."""
        if not {"index", "changes"} <= state.keys():
            raise Error("this is not the state_dict() of a NearestIndex")
        self._index.restore(list(state["index"].items()))
        self._changes = state["changes"]

    def __contains__(self, slot: int) -> bool:
        return 0 <= slot < self._slots and self._index.contains(slot)

    def __len__(self) -> int:
        return self._index.size()

    def _checked_slots(self, slots: Any) -> list[int]:
        names = integers(slots, "slots")
        for slot in (min(names, default=0), max(names, default=0)):
            if not 0 <= slot < self._slots:
                raise Error(f"slot {slot} is not in [0, {self._slots})")
        if len(set(names)) != len(names):
            raise Error("a slot is given twice")
        return names

    def _checked(self, slots: Any, features: Any, ages: Any) -> tuple[list[int], list[int], Tensor]:
        names = self._checked_slots(slots)
        rows = _rows(features)
        if list(rows.shape) != [len(names), self._dim]:
            raise Error(f"features must be [{len(names)}, {self._dim}], not {list(rows.shape)}")
        if ages is None:
            ages = range(self._changes, self._changes + len(names))
        when = integers(ages, "ages", bits=64)
        if len(when) != len(names):
            raise Error(f"{len(when)} ages for {len(names)} slots")
        if min(when, default=0) < 0:
            raise Error(f"an age must not be negative: {min(when)}")
        self._changes += len(names)
        self._arrays = is_array(features)
        return names, when, rows

    def _result(self, values: Tensor) -> Any:
        return values.numpy() if self._arrays else values


def select(features: Any, keep: int, policy: str = "minred", **options: Any) -> Any:
    """Returns the indices of the `keep` rows that are left when the most redundant ones have gone, in order.

    `features`: [n, dim]; the indices are a tensor on the CPU, or an array of numpy if `features` is
    one. `policy` and `options`: as for NearestIndex. On equal terms the older, earlier row goes.

    >>> riffle.select(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 0.9]]), keep=2)
    tensor([2, 3])
    """
    rows = _rows(features)
    count, dim = rows.shape
    if not 0 <= keep <= count:
        raise Error(f"cannot keep {keep} of {count} rows")
    index = NearestIndex(count, dim, policy, rows.device.type, **options)
    index.set(range(count), rows)
    stays = torch.ones(count, dtype=torch.bool)
    stays[index.take(count - keep).slots] = False
    kept = stays.nonzero().reshape(-1)
    return kept.numpy() if is_array(features) else kept
