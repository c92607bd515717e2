"""Processes of a run: fronts with a machine per partition, and partitions; they stop, go on, die.

A frozen process does nothing; what it was sent, and what it was about to do, happens when it wakes.
A process that has died is replaced by another one with a name of its own and no memory.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from random import Random

from tests.simulation.ratelimit.auditor import Fate, HitRecord, ResetRecord
from tests.simulation.ratelimit.network import Agenda
from tollgate.actors.ratelimit.counting.counters import Conditional, Unreachable
from tollgate.actors.ratelimit.lending.borrower import Borrower
from tollgate.actors.ratelimit.lending.lender import Lender
from tollgate.actors.ratelimit.lending.messages import (
    Answer,
    CounterName,
    Forgotten,
    LimitedHits,
    Spent,
    ToFront,
    ToldAll,
    ToPartition,
)
from tollgate.actors.ratelimit.lending.partition.tasks import PendingReset
from tollgate.actors.ratelimit.lending.pending_call import PendingCall
from tollgate.actors.ratelimit.lending.terms import Terms

EPOCH_S = 1_000_000.0


class Process:
    """What fronts and partitions have in common: clocks, and that they can stop."""

    def __init__(self, agenda: Agenda, chance: Random) -> None:
        self.agenda = agenda
        self.is_alive = True
        self.clock_error_s = 0.0
        self._zero_s = chance.random() * 1_000
        self._frozen_until_s = 0.0

    @property
    def now_s(self) -> float:
        """The monotonic clock."""
        return self.agenda.now_s + self._zero_s

    @property
    def wall_s(self) -> float:
        return EPOCH_S + self.agenda.now_s + self.clock_error_s

    def freeze(self, seconds: float) -> None:
        self._frozen_until_s = self.agenda.now_s + seconds

    def wake(self) -> None:
        self._frozen_until_s = 0.0

    def run(self, do: Callable[[], None]) -> None:
        """Do it now, or after waking, or never."""
        if not self.is_alive:
            return
        if self._frozen_until_s > self.agenda.now_s:
            self.agenda.at(self._frozen_until_s, lambda: self.run(do))
        else:
            do()


@dataclass(slots=True)
class Line:
    """What a front and a partition have of each other in one lease, as seen from outside.

    `reports`: item -> when it was sent first, of reports that held all there was. `reported`: the
    last of them that was taken; it may be sent again all the same. `late`: the last item so far of
    those that tell what was not heard under the lease before."""

    reported_s: float
    heard_s: float = 0.0
    stamp_s: float = -inf
    reports: dict[int, float] = field(default_factory=dict)
    reported: int = 0
    late: int = 0

    def send_report(self, item: int, now_s: float) -> None:
        if item > self.reported:
            self.reports.setdefault(item, now_s)

    def take_reports(self, taken: int) -> None:
        """All items until this one were taken."""
        for item in [each for each in self.reports if each <= taken]:
            self.reported = max(self.reported, item)
            self.reported_s = max(self.reported_s, self.reports.pop(item))


class PartitionProcess(Process):
    """One incarnation of a partition."""

    def __init__(
        self,
        agenda: Agenda,
        chance: Random,
        terms: Terms,
        *,
        number: int,
        incarnation: int,
    ) -> None:
        super().__init__(agenda, chance)
        self.number = number
        self.terms = terms
        self.incarnation = incarnation
        self.started_s = agenda.now_s
        self.resets: list[tuple[PendingReset, ResetRecord]] = []
        self.machine = Lender(
            terms, incarnation, self.now_s, is_new=incarnation == 1, keeps_changes=True
        )

    @property
    def has_evicted(self) -> bool:
        return self.machine.counters.table.evicted > 0


class FrontProcess(Process):
    """One front, with the calls that it waits for."""

    def __init__(
        self,
        agenda: Agenda,
        chance: Random,
        terms: Terms,
        *,
        number: int,
        boot: int,
        partitions: int,
    ) -> None:
        super().__init__(agenda, chance)
        self.number = number
        self.name = f"front {number} boot {boot}"
        self.machines = [Borrower(terms, self.name) for _ in range(partitions)]
        self.limits: dict[bytes, int] = {}
        self.admitted: list[HitRecord] = []
        self.refundable: list[HitRecord] = []
        self._resets_heard_s: dict[tuple[int, CounterName], float] = {}
        self._waiting: dict[tuple[int, int], tuple[PendingCall, list[list[HitRecord]]]] = {}

    @property
    def has_evicted(self) -> bool:
        return any(machine.evicted for machine in self.machines)

    def hit(self, partition: int, hits: list[HitRecord], patience_s: float) -> None:
        batch: dict[int, LimitedHits] = {}
        places = []
        for record in hits:
            end_s, key = record.counter
            columns = batch.setdefault(end_s, LimitedHits(end_s, [], [], []))
            places.append((list(batch).index(end_s), len(columns.keys)))
            columns.keys.append(key)
            columns.addends.append(record.addend)
            columns.limits.append(record.limit)
        machine = self.machines[partition]
        call = machine.hit(list(batch.values()), self.wall_s, self.now_s, patience_s)
        by_place = dict(zip(places, hits, strict=True))
        records = [[by_place[place] for place in each.places] for each in call.awaited]
        self._note(partition, call, [([place], [by_place[place]]) for place in places], records)

    def hit_conditionally(
        self, partition: int, request: list[HitRecord], patience_s: float
    ) -> None:
        conditional = Conditional(
            [hit.counter[0] for hit in request],
            [hit.counter[1] for hit in request],
            [hit.addend for hit in request],
            [None if hit.addend < 0 else hit.limit for hit in request],
        )
        machine = self.machines[partition]
        call = machine.hit_conditionally([conditional], self.wall_s, self.now_s, patience_s)
        places = [(0, column) for column in range(len(request))]
        records = [request for _ in call.awaited]
        self._note(partition, call, [(places, request)], records)

    def _note(
        self,
        partition: int,
        call: PendingCall,
        requests: list[tuple[list[tuple[int, int]], list[HitRecord]]],
        awaited: list[list[HitRecord]],
    ) -> None:
        """Learn what is known of each request, or keep it until all of the call is."""
        waiting = {id(record) for records in awaited for record in records}
        for places, records in requests:
            if call.is_done or id(records[0]) not in waiting:
                self._learn(records, [call.counts[row][column] for row, column in places])
        if not call.is_done:
            assert call.number is not None
            self._waiting[partition, call.number] = (call, awaited)

    def _learn(self, records: list[HitRecord], counts: list[int | Unreachable]) -> None:
        """What a request's counts mean: only as a whole it is let through."""
        is_over = False
        for record, count in zip(records, counts, strict=True):
            record.told_s = self.agenda.now_s
            if isinstance(count, Unreachable):
                record.fate = Fate.FAILED
            elif record.addend >= 0 and count > record.limit:
                record.fate = Fate.REFUSED
            else:
                record.fate = Fate.SPARED if len(records) > 1 else Fate.ADMITTED
            is_over = is_over or record.fate in (Fate.REFUSED, Fate.FAILED)
        if not is_over:
            for record in records:
                record.fate = Fate.ADMITTED
                self.admitted.append(record)
                if record.addend > 0:
                    self.refundable.append(record)

    def is_waiting(self, partition: int, call: int) -> bool:
        """Whether somebody still waits for an answer."""
        return (partition, call) in self._waiting

    def receive(self, partition: int, message: ToFront) -> None:
        for _, item in message.items:
            if isinstance(item, Answer) and (partition, item.call) in self._waiting:
                _, awaited = self._waiting[partition, item.call]
                for outcome in item.outcomes:
                    if isinstance(outcome.counts, list):
                        for record in awaited[outcome.request]:
                            record.is_direct = True
        machine = self.machines[partition]
        machine.receive(message, self.wall_s, self.now_s)
        for number, item in message.items:
            is_taken = (message.incarnation, message.lease) == machine._lease
            if isinstance(item, Forgotten) and is_taken and number <= machine._stream.taken:
                self._resets_heard_s[partition, item.counter] = self.agenda.now_s
        self.learn_all()

    def outgoing(self, partition: int) -> list[ToPartition]:
        messages = []
        while message := self.machines[partition].outgoing(self.wall_s, self.now_s):
            messages.append(message)
        self.learn_all()
        return messages

    def remembers(self, record: ResetRecord) -> bool:
        """Whether it has heard of a reset."""
        heard_s = self._resets_heard_s.get((record.partition, record.counter), -inf)
        return heard_s >= record.set_s

    def learn_all(self) -> None:
        """Look which of the calls that were waited for are done."""
        if not self._waiting:
            return
        for name, (call, awaited) in list(self._waiting.items()):
            for request, records in enumerate(awaited):
                if call.awaited[request].is_answered and records[0].fate is Fate.UNKNOWN:
                    places = call.awaited[request].places
                    self._learn(records, [call.counts[row][column] for row, column in places])
            if call.is_done:
                del self._waiting[name]


def complete_reports(message: ToPartition, terms: Terms) -> list[int]:
    """The items of a message that report everything there was to report."""
    return [
        number
        for number, item in message.items
        if isinstance(item, ToldAll)
        or (
            isinstance(item, Spent)
            and sum(len(keys) for _, keys, _ in item.counters) < terms.reported_max
            and len(item.quotas) < terms.reported_max
        )
    ]
