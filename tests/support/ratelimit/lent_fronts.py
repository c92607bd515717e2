"""A front as a process of its own that borrows from partition actors and counts what it admits."""

import os
from collections.abc import Sequence
from typing import Any

from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.counting.counters import LimitedHits, Unreachable
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.actor import RayChannel
from tollgate.actors.ratelimit.lent_counting.store import BorrowedCounters

Question = tuple[int, bytes, int]
"""Partition, key, limit."""


class SentMessages(RayChannel):
    """A channel that counts what is sent."""

    sent = 0

    def send(self, message: bytes, on_reply: Any) -> None:
        self.sent += 1
        super().send(message, on_reply)


class LentFront:
    """The actor. `end_s`: of the window of all its hits."""

    def __init__(
        self, name: str, partitions: Sequence[Any], deadline_s: float, terms: Terms, end_s: int
    ) -> None:
        self._channels = [SentMessages(handle) for handle in partitions]
        self._end_s = end_s
        # (an actor that was killed starts again, and is another front)
        front = f"{name}-{os.getpid()}"
        self._store = BorrowedCounters(self._channels, terms, front, deadline_s, SystemClock())
        self._store.start()

    def describe(self) -> dict[str, int]:
        return {"pid": os.getpid()}

    def ask(self, question: Question, times: int = 1, by: int = 1) -> list[int | str]:
        """Ask so many times; the count after each, or why there is none."""
        partition, key, limit = question
        answers: list[int | str] = []
        for _ in range(times):
            batch = [LimitedHits(self._end_s, [key], [by], [limit])]
            ((count,),) = self._store.hit({partition: batch}, 0)[partition]  # type: ignore[misc]
            answers.append(str(count) if isinstance(count, Unreachable) else count)
        return answers

    def slots(self) -> int:
        """How many slots it has whole, of all partitions."""
        lines = self._store._lines
        return sum(len(line._borrower._home.slots()) for line in lines)

    def sent(self) -> int:
        """How many messages it has sent."""
        return sum(channel.sent for channel in self._channels)

    def down(self) -> list[int]:
        return sorted(self._store.down)

    def close(self) -> None:
        self._store.close()
