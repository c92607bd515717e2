"""Lines between fronts and partitions: messages get lost, arrive late, twice and out of order."""

from collections.abc import Callable, Collection
from enum import Enum
from heapq import heappop, heappush
from itertools import count
from random import Random

from tests.simulation.ratelimit.faults import NONE, Faults

LATENCY_S = 0.002
SLOW_S = 1.2
CUT_S = 3.0


class Way(Enum):
    """The direction of a message."""

    THERE = "to the partition"
    BACK = "to the front"


class Agenda:
    """What happens when, by the one true time."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._numbers = count()
        self._entries: list[tuple[float, int, Callable[[], None]]] = []

    def at(self, time_s: float, do: Callable[[], None]) -> None:
        heappush(self._entries, (max(time_s, self.now_s), next(self._numbers), do))

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        self.at(self.now_s + seconds, do)

    def run_until(self, end_s: float) -> None:
        while self._entries and self._entries[0][0] <= end_s:
            self.now_s, _, do = heappop(self._entries)
            do()
        self.now_s = end_s


class Network:
    """Carries messages. A line is named by (front, partition) and can be cut for a while, both ways
    or one."""

    def __init__(self, agenda: Agenda, chance: Random) -> None:
        self._agenda = agenda
        self._chance = chance
        self._cut_until_s: dict[tuple[int, int, Way], float] = {}
        self.faults = NONE
        self.messages = 0

    def storm(self, faults: Faults) -> None:
        self.faults = faults

    def heal(self) -> None:
        self.faults = NONE
        self._cut_until_s.clear()

    def cut(self, front: int, partition: int, ways: Collection[Way] = Way) -> None:
        """Cut a line these ways; it is open the others."""
        until_s = self._agenda.now_s + self._chance.random() * CUT_S
        for way in Way:
            self._cut_until_s[front, partition, way] = until_s if way in ways else 0.0

    def carry(self, front: int, partition: int, way: Way, deliver: Callable[[], None]) -> None:
        """Deliver a message sooner or later, once, twice or not at all."""
        self.messages += 1
        dice = self._chance.random
        if self._cut_until_s.get((front, partition, way), 0.0) > self._agenda.now_s:
            return
        if dice() >= self.faults.lost:
            self._agenda.after(self._latency_s(), deliver)
        if dice() < self.faults.doubled:
            self._agenda.after(self._latency_s(), deliver)

    def _latency_s(self) -> float:
        dice = self._chance.random
        is_slow = dice() < self.faults.slow
        return dice() * (SLOW_S * dice() if is_slow else LATENCY_S)
