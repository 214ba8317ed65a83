"""Ends the threads of what is still open when the interpreter exits."""

import atexit
import os
import weakref
from typing import Protocol

from . import _riffle


class _Closable(Protocol):
    def close(self) -> None: ...


_process = os.getpid()
_open: "weakref.WeakSet[_Closable]" = weakref.WeakSet()


def close_at_exit(item: _Closable) -> None:
    _open.add(item)


@atexit.register
def _close_all() -> None:
    if os.getpid() != _process:
        return  # a fork has none of the threads
    for item in list(_open):
        item.close()
    _riffle.wait_for_abandoned()
