"""Times of the last use of keys (part D, Key rotation): they show if an old one is still needed.

Uses are noted in memory and written down together from time to time (`WRITE_USES_EVERY_S` of the
deployment): to know the minute is enough, and a call must not wait for it. What was noted and not
written when a process is killed is lost.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from tollgate.actors.kernel.clock import Clock

NOTED_MAX = 10_000


class KeyUseStore(Protocol):
    """Durable times of use, by digest; of two times the later one stays."""

    async def note(self, uses: Mapping[str, int]) -> None: ...

    async def last_used(self, digests: Iterable[str]) -> dict[str, int]: ...


class KeyUses:
    """Belongs to one event loop."""

    def __init__(self, store: KeyUseStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._noted: dict[str, int] = {}

    def note(self, digest: str) -> None:
        """A key was used now."""
        if digest in self._noted or len(self._noted) < NOTED_MAX:
            self._noted[digest] = int(self._clock.now_s() * 1000)

    async def last_used(self, digests: list[str]) -> dict[str, int]:
        """In milliseconds; of keys that were never used, nothing."""
        found = await self._store.last_used(digests)
        for digest in digests:
            if digest in self._noted:
                found[digest] = max(self._noted[digest], found.get(digest, 0))
        return found

    async def write_down(self) -> None:
        """Stores the uses that were noted since the last time."""
        noted, self._noted = self._noted, {}
        if noted:
            await self._store.note(noted)
