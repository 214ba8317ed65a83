"""Configuration as the C++ side takes it: keys with values as text."""

from typing import Any, Iterator, Mapping

from ._load import Error

Settings = list[tuple[str, str]]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(_text(part) for part in value)
    return str(value)


def checked_seed(seed: int) -> int:
    """Returns a seed. Raises Error for one that C++ has no room for."""
    if not 0 <= seed < 2**64:
        raise Error(f"seed must be in [0, 2^64), not {seed}")
    return seed


def settings(values: Mapping[str, Any], room: str = "") -> Settings:
    """Flattens {"train": {"batch": 64}} and {"train.batch": 64} alike; `room` comes before each key."""

    def leaves(mapping: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
        for key, value in mapping.items():
            name = f"{prefix}.{key}" if prefix else key
            if isinstance(value, Mapping):
                yield from leaves(value, name)
            else:
                yield name, _text(value)

    return list(leaves(values, room))
