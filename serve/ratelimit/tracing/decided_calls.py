"""Decided calls that wait to become spans, in memory that is bounded."""

from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from tollgate.serve.ratelimit.fronts.front import BegunCall, ErrorStatus

WAITING_MAX = 4_096
# What is kept of a request, and of a reply.
MESSAGE_BYTES_MAX = 4 * 1024


class Counted(NamedTuple):
    """The time in which the counters of a batch were counted. `failure`: why that failed."""

    started_s: float
    ended_s: float
    failure: str = ""


class DecidedCall(NamedTuple):
    """An answered call. `request` and `reply`: what is kept of them; a reply that is too long is
    empty. `request_bytes`: of all of it."""

    begun: BegunCall
    request: bytes
    request_bytes: int
    reply: bytes | ErrorStatus
    counted: Counted | None
    ended_s: float


class RenderedReply(NamedTuple):
    """A reply that was written as JSON, in that time."""

    begun: BegunCall
    started_s: float
    ended_s: float


Record = DecidedCall | RenderedReply


def calls_in(records: Sequence[Record]) -> int:
    """How many calls they are about; a reply belongs to a call that has a record of its own."""
    return sum(type(record) is DecidedCall for record in records)


class WaitingRecords:
    """At most `records_max`; what comes when it is full is lost, and counted. Thread-safe."""

    def __init__(self, records_max: int = WAITING_MAX) -> None:
        self._records_max = records_max
        self._records: deque[Record] = deque()
        self._lost = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._records)

    def add(self, records: Sequence[Record]) -> None:
        """Queues as many as there is room for."""
        with self._lock:
            room = self._records_max - len(self._records)
            self._records.extend(records[:room])
            self._lost += calls_in(records[room:])

    def take(self, records_max: int) -> list[Record]:
        """The oldest ones."""
        with self._lock:
            count = min(records_max, len(self._records))
            return [self._records.popleft() for _ in range(count)]

    def take_lost(self) -> int:
        """How many calls were lost since this was asked last."""
        with self._lock:
            lost, self._lost = self._lost, 0
            return lost
