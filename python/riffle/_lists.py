"""Lists of numbers and of names, as tensors, arrays of numpy or anything else that can be listed."""

import operator
import sys
from typing import Any

from torch import Tensor

from ._load import Error


def is_array(values: Any) -> bool:
    """Whether it is an array of numpy; whoever has one has imported that."""
    return isinstance(values, getattr(sys.modules.get("numpy"), "ndarray", ()))


def _listed(values: Any) -> Any:
    return values.reshape(-1).tolist() if isinstance(values, Tensor) or is_array(values) else values


def require_room(number: int, name: str, bits: int = 63) -> None:
    """Raises Error, with this name, for a whole number that C++ has no room for."""
    if not -2**63 <= number < 2**bits:
        raise Error(f"{name} must be in [-2^63, 2^{bits})")


def integers(values: Any, name: str, bits: int = 63) -> list[int]:
    """Returns whole numbers in [-2^63, 2^bits). Raises Error, with this name, for anything else."""
    listed = _listed(values)
    try:
        numbers = list(map(operator.index, listed))
    except TypeError:
        raise Error(f"{name} must be a list of whole numbers, not {listed!r:.60}") from None
    for number in (min(numbers, default=0), max(numbers, default=0)):
        require_room(number, name, bits)
    return numbers


def texts(values: Any, name: str) -> list[str]:
    """Returns strings. Raises Error, with this name, for anything else."""
    listed = list(_listed(values))
    for value in listed:
        if not isinstance(value, str):
            raise Error(f"{name} must be strings, not {type(value).__name__}")
    return listed
