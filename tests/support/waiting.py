"""Waiting for something to come true: the only place where a test lets time pass."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 60.0
LOOK_EVERY_S = 0.02


def until(condition: Callable[[], T], what: str, within_s: float = PATIENCE_S) -> T:
    """What `condition` gives, once that is something true. Fails the test, naming `what` was waited
    for and what it gave last, when this takes longer than `within_s`."""
    give_up_s = time.monotonic() + within_s
    while not (found := condition()):
        if time.monotonic() >= give_up_s:
            raise AssertionError(f"{what}: not within {within_s:g} s; the last look gave {found!r}")
        time.sleep(LOOK_EVERY_S)
    return found
