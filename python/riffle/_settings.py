"""Configuration as the C++ side takes it: keys with values as text."""

from typing import Any, Iterator, Mapping

Settings = list[tuple[str, str]]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(_text(part) for part in value)
    return str(value)


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
