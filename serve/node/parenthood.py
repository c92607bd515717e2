"""Ties between processes that only the kernel can keep when one of them is killed (Linux)."""

import ctypes
import os
from signal import Signals

_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Makes this process the parent of all descendants whose own parent ends. Raises OSError."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def end_with_parent(signal: Signals) -> None:
    """Has the kernel send this process a signal when its parent ends. Raises OSError."""
    _prctl(_SET_PARENT_DEATH_SIGNAL, signal)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
