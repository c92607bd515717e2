"""Partitions that failed, each of which is left alone until it answers a probe:

up --call fails or misses its deadline--> down (every hit Unreachable at once, one probe out)
down --the probe is answered--> up          down --the probe fails--> down, next probe
"""

from collections.abc import Sequence
from concurrent.futures import Future
from threading import Lock

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.fall_watch import Ask, Described

INTERVAL_S = 0.05


class Probes:
    """`asks`: one for each partition, whose answer is the sign that it is back. Thread-safe."""

    def __init__(self, asks: Sequence[Ask], clock: Clock) -> None:
        self._asks = asks
        self._clock = clock
        self._lock = Lock()
        self._sent: dict[int, tuple[float, Future[Described] | None]] = {}

    @property
    def down(self) -> frozenset[int]:
        """The partitions that are not answering."""
        return frozenset(self._sent)

    def lose(self, partition: int) -> None:
        """A call has failed."""
        with self._lock:
            if partition not in self._sent:
                self._send(partition)

    def is_up(self, partition: int) -> bool:
        """Whether it may be called; if not, another probe is sent when it is time."""
        if not self._sent:
            return True
        with self._lock:
            if partition not in self._sent:
                return True
            sent_s, probe = self._sent[partition]
            if probe is not None:
                if not probe.done():
                    return False
                if probe.exception() is None:
                    del self._sent[partition]
                    return True
            if self._clock.monotonic_s() - sent_s >= INTERVAL_S:
                self._send(partition)
            return False

    def _send(self, partition: int) -> None:
        probe = self._asks[partition]()
        self._sent[partition] = (self._clock.monotonic_s(), probe)
