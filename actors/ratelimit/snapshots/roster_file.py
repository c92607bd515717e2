"""The roster of a partition: the fronts that may have borrowed something, for the next process.

    a front comes -> it is written down -> it is lent something    a front goes -> that, a bit later

A process that knows its forerunner's fronts has asked everybody as soon as these have told. It must
not miss one, so a roster counts only for the very next incarnation, and one that cannot be written
is removed. It is in no copy on another node: a copy is told of a front 0.2 s after it has come, and
one that it misses could have borrowed anything. To make every new front wait for the copy's answer
would cost more than there is to be gained, which is 2.5 s after the 15 s in which Ray notices that
a node is gone: so who starts on another one waits for all fronts that there might be.
"""

import json
import logging
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from tollgate.actors.kernel.atomic_file import PRIVATE

LOG = logging.getLogger("tollgate.ratelimit")
ROSTER_SUFFIX = ".fronts"
_DRAFT_SUFFIX = ".draft"


class RosterFile:
    """Of one incarnation of a partition; `path` is the same for all of them."""

    def __init__(self, path: Path, incarnation: int) -> None:
        self._path = path
        self._incarnation = incarnation

    def left(self) -> frozenset[str] | None:
        """The fronts that the incarnation before this one has written down; None: it has not."""
        try:
            incarnation, *fronts = json.loads(self._path.read_bytes())
        except (OSError, ValueError, TypeError):
            return None
        if incarnation != self._incarnation - 1 or not all(isinstance(f, str) for f in fronts):
            return None
        return frozenset(fronts)

    def write(self, fronts: Collection[str]) -> bool:
        """Write these down, at once. False: that cannot be done, and nothing is there."""
        draft = self._path.with_name(self._path.name + _DRAFT_SUFFIX)
        content = json.dumps([self._incarnation, *sorted(fronts)]).encode()
        try:
            with open(draft, "wb", opener=_private) as file:
                file.write(content)
            draft.replace(self._path)
        except OSError as error:
            LOG.warning("%s cannot be written: %s", self._path, error.strerror)
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            return False
        return True


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE)
