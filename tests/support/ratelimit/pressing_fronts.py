"""A front as a process of its own that asks without end, and writes down what it lets through.

What is written is there when the process is killed; only a hit that was just being answered then is
known to nobody.
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.counting.counters import LimitedHits, Unreachable
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.actor import RayChannel
from tollgate.actors.ratelimit.lent_counting.line import Line
from tollgate.actors.ratelimit.lent_counting.store import BorrowedCounters

PAUSE_S = 0.001


class Quota(NamedTuple):
    """What is asked for, `by` hits at a time: `limit` hits in a window of `unit_s`. `end_s`: of the
    only window, or None for those of the clock."""

    partition: int
    unit_s: int
    limit: int
    by: int
    end_s: int | None

    @property
    def key(self) -> bytes:
        return b"%d hits in %d s" % (self.limit, self.unit_s)


Admissions = Counter[tuple[int, int]]
"""Hits by the quota's number and the end of the window."""


def admissions(record: Path) -> Admissions:
    """What a front has written down, whatever became of it."""
    found: Admissions = Counter()
    for line in record.read_text().splitlines():
        number, end_s, hits = map(int, line.split())
        found[number, end_s] += hits
    return found


class Mark:
    """A moment of a front, and whether the partition knows what was counted before it."""

    def __init__(self, line: Line) -> None:
        self._line = line
        with line._lock:
            self._put_last = line._borrower._stream.put_last
            self._lease = line._borrower._lease
        self._report_item = 0

    def is_reached(self) -> bool:
        """True once a report that was made later has arrived, or nothing is left to report."""
        with self._line._lock:
            borrower = self._line._borrower
            assert borrower._lease == self._lease, "the front was taken for lost"
            acknowledged = borrower._stream.acknowledged
            if not self._report_item and borrower._reports._report_item > self._put_last:
                self._report_item = borrower._reports._report_item
            if self._report_item:
                return acknowledged >= self._report_item
            has_changed = borrower._home.has_changed or bool(borrower._notes.changed)
            return not has_changed and acknowledged >= borrower._stream.put_last


class PressingFront:
    """The actor: a thread for each partition asks for its quotas in turns, once it is told to."""

    def __init__(
        self,
        name: str,
        partitions: Sequence[Any],
        quotas: Sequence[Quota],
        terms: Terms,
        deadline_s: float,
        record: str,
    ) -> None:
        channels = [RayChannel(handle) for handle in partitions]
        # (an actor that was killed starts again, and is another front)
        front = f"{name}-{os.getpid()}"
        self._clock = SystemClock()
        self._store = BorrowedCounters(channels, terms, front, deadline_s, self._clock)
        self._store.start()
        self._quotas = quotas
        self._record = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._answered = [0] * len(partitions)
        self._refused: set[int] = set()
        self._partitions = len(partitions)
        self._marks: list[Mark] = []

    def describe(self) -> dict[str, int]:
        return {"pid": os.getpid()}

    def press(self) -> None:
        """Begin to ask."""
        for partition in range(self._partitions):
            Thread(target=self._ask_on, args=(partition,), daemon=True).start()

    def answered(self) -> list[int]:
        """How many hits were let through or refused, by partition."""
        return list(self._answered)

    def refused(self) -> set[int]:
        """The quotas of a single window that were refused when they were asked for last."""
        return set(self._refused)

    def mark(self) -> None:
        """Remember how far every partition has been told."""
        self._marks = [Mark(line) for line in self._store._lines]

    def is_reported(self) -> bool:
        """Whether every partition knows all that was counted before the mark."""
        return all(mark.is_reached() for mark in self._marks)

    def _ask_on(self, partition: int) -> None:
        numbers = [n for n, quota in enumerate(self._quotas) if quota.partition == partition]
        pause = Event()
        while True:
            for number in numbers:
                self._ask(number, self._quotas[number])
                pause.wait(PAUSE_S)

    def _ask(self, number: int, quota: Quota) -> None:
        unit_s = quota.unit_s
        end_s = quota.end_s or (int(self._clock.now_s()) // unit_s + 1) * unit_s
        batch = [LimitedHits(end_s, [quota.key], [quota.by], [quota.limit])]
        counts = self._store.hit({quota.partition: batch}, 0)[quota.partition]
        ((count,),) = counts  # type: ignore[misc]
        if isinstance(count, Unreachable):
            return
        self._answered[quota.partition] += 1
        if count <= quota.limit:
            os.write(self._record, b"%d %d %d\n" % (number, end_s, quota.by))
            self._refused.discard(number)
        elif quota.end_s:
            self._refused.add(number)
