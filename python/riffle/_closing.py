"""Ends the threads of what is still open when the interpreter exits."""

import atexit
import weakref
from typing import Protocol


class _Closable(Protocol):
    def close(self) -> None: ...


_open: "weakref.WeakSet[_Closable]" = weakref.WeakSet()


def close_at_exit(item: _Closable) -> None:
    _open.add(item)


@atexit.register
def _close_all() -> None:
    for item in list(_open):
        item.close()
