"""Decided calls that wait to become spans, in memory that is bounded."""

from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from tollgate.actors.kernel.call_parts import CallPart
from tollgate.serve.ratelimit.fronts.front import BegunCall, ErrorStatus

WAITING_MAX = 4_096
WAITING_BYTES_MAX = 16 * 1024 * 1024
# What a record takes beside the texts in it, about.
RECORD_BYTES = 512
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


class AnsweredCall(NamedTuple):
    """A call of another service that was answered, and what it waited for. `failure` empty: it was
    answered as it should be."""

    begun: BegunCall
    name: str
    ended_s: float
    attributes: tuple[tuple[str, str], ...]
    parts: tuple[CallPart, ...]
    failure: str = ""


Record = DecidedCall | RenderedReply | AnsweredCall


def calls_in(records: Sequence[Record]) -> int:
    """How many calls they are about; a reply belongs to a call that has a record of its own."""
    return sum(type(record) is not RenderedReply for record in records)


def bytes_in(record: Record) -> int:
    """About how much memory it takes."""
    size = RECORD_BYTES
    for name, value in record.begun.headers:
        size += len(name) + len(value)
    if type(record) is DecidedCall:
        reply = record.reply
        size += len(record.request)
        size += len(reply.message) if isinstance(reply, ErrorStatus) else len(reply)
    if type(record) is AnsweredCall:
        size += RECORD_BYTES * len(record.parts)
    return size


class WaitingRecords:
    """At most `records_max`, of at most `bytes_max`; what finds no room is lost, and counted.
    Thread-safe."""

    def __init__(self, records_max: int = WAITING_MAX, bytes_max: int = WAITING_BYTES_MAX) -> None:
        self._records_max = records_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._records: deque[Record] = deque()
        self._lost = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._records)

    def add(self, records: Sequence[Record]) -> None:
        """Queues as many as there is room for."""
        with self._lock:
            for record in records:
                size = self._bytes + bytes_in(record)
                if len(self._records) < self._records_max and size <= self._bytes_max:
                    self._records.append(record)
                    self._bytes = size
                else:
                    self._lost += type(record) is not RenderedReply

    def take(self, records_max: int) -> list[Record]:
        """The oldest ones."""
        with self._lock:
            count = min(records_max, len(self._records))
            taken = [self._records.popleft() for _ in range(count)]
            self._bytes -= sum(map(bytes_in, taken))
            return taken

    def take_lost(self) -> int:
        """How many calls were lost since this was asked last."""
        with self._lock:
            lost, self._lost = self._lost, 0
            return lost
