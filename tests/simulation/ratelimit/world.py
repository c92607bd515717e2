"""A run of lending: fronts that count, partitions that lend, and all that goes wrong.

    storm   requests everywhere; faults of the seed's mixture
    calm    everything heals; then everybody asks for more than there is of a few new counters

What was asked and answered is written down for the auditor, and who was lost when: a loss excuses
the hits that nobody else can know of (see `silences.py`). A partition that takes a front for lost
too early, or starts again without waiting for what fronts tell, is found here, as is anything that
outgrows its bound, and a front that asks for those who have gone.
"""

from collections.abc import Callable
from functools import partial
from math import inf
from random import Random

from tests.simulation.ratelimit.auditor import Fate, ResetRecord, Testimony, check
from tests.simulation.ratelimit.callers import Callers
from tests.simulation.ratelimit.disks import Disk, excused_of
from tests.simulation.ratelimit.faults import (
    DAY_S,
    NONE,
    Faults,
    Scale,
    faults_of,
    scale_of,
    terms_of,
)
from tests.simulation.ratelimit.network import Agenda, Network, Way
from tests.simulation.ratelimit.processes import (
    EPOCH_S,
    FrontProcess,
    Line,
    PartitionProcess,
    complete_reports,
)
from tests.simulation.ratelimit.silences import Silences
from tollgate.actors.kernel.hashing import stable_hash
from tollgate.actors.ratelimit.counting.windows import Unit, window_at
from tollgate.actors.ratelimit.lending.messages import (
    Ask,
    ToFront,
    ToldAll,
    ToldNotes,
    ToldSlots,
    ToPartition,
    Unheard,
)
from tollgate.actors.ratelimit.lending.terms import Terms

TICK_S = 0.05
FAULTS_EVERY_S = 0.1
RESTART_S = 0.4
SAVED_PER_TICK = 0.2
FREEZE_S = 3.0
CALM_S = 3.5
LIMITS = (1, 3, 10, 50, 1_000)
UNITS = (Unit.SECOND, Unit.MINUTE, Unit.MINUTE, Unit.DAY)


class World:
    """One run of one seed."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        chance = self._chance
        self.scale: Scale = scale_of(chance)
        self.faults: Faults = faults_of(chance)
        self.terms: Terms = terms_of(chance)
        is_conditional = chance.random() < 0.2
        has_refunds = chance.random() < 0.4
        self._agenda = Agenda()
        self._network = Network(self._agenda, chance)
        self._skewed = 0
        self.testimony = Testimony()
        self._keys = [
            (bytes((chance.choice(UNITS),)) + b"key %d" % number, chance.choice(LIMITS))
            for number in range(self.scale.keys)
        ]
        self._lines: dict[tuple[str, int, tuple[int, int]], Line] = {}
        self._all_fronts: list[FrontProcess] = []
        self._silences = Silences(self._all_fronts)
        # (what was given back after a snapshot would be taken for counted)
        self._has_disks = not has_refunds and chance.random() < 0.5
        self._disks = [Disk() for _ in range(self.scale.partitions)]
        self.partitions = [self._partition(number, 1) for number in range(self.scale.partitions)]
        self.fronts = [self._front(number, 1) for number in range(self.scale.fronts)]
        self._callers = Callers(
            self._agenda,
            chance,
            self.scale,
            self._keys,
            self.testimony,
            self.fronts,
            self._send,
            is_conditional=is_conditional,
            has_refunds=has_refunds,
        )

    def run(self) -> Testimony:
        self._agenda.run_until(0.5)
        self._network.storm(self.faults)
        self._agenda.after(FAULTS_EVERY_S, self._fault)
        self._agenda.run_until(self.scale.storm_s)
        self.faults = NONE
        self._heal()
        self._agenda.run_until(self.scale.storm_s + CALM_S)
        self._callers.ask_for_all(self.terms)
        self._agenda.run_until(self.scale.storm_s + CALM_S + 1.5)
        self.testimony.has_evicted |= any(
            each.has_evicted for each in (*self.fronts, *self.partitions)
        )
        self.testimony.excused += self._silences.excused(self.testimony.hits)
        self.testimony.events["messages"] = self._network.messages
        return self.testimony

    # Processes

    def _partition(self, number: int, incarnation: int) -> PartitionProcess:
        process = PartitionProcess(
            self._agenda,
            self._chance,
            self.terms,
            number=number,
            incarnation=incarnation,
        )
        self._disks[number].restore(process)
        self._tick(process, lambda: self._tick_partition(process))
        return process

    def _front(self, number: int, boot: int) -> FrontProcess:
        process = FrontProcess(
            self._agenda,
            self._chance,
            self.terms,
            number=number,
            boot=boot,
            partitions=self.scale.partitions,
        )
        process.limits = dict(self._keys)
        process.clock_error_s = self._chance.choice((0.0, 0.0, 0.3, -0.4, 1.5))
        self._all_fronts.append(process)
        self._tick(process, lambda: self._send_all(process))
        return process

    def _tick(self, process: PartitionProcess | FrontProcess, do: Callable[[], None]) -> None:
        def tick() -> None:
            process.run(do)
            if process.is_alive:
                self._agenda.after(TICK_S, tick)

        self._agenda.after(self._chance.random() * TICK_S, tick)

    def _send_all(self, front: FrontProcess) -> None:
        for partition in range(self.scale.partitions):
            self._send(front, partition)

    def _send(self, front: FrontProcess, partition: int) -> None:
        for message in front.outgoing(partition):
            _check_sizes(front.machines[partition].sizes())
            line = self._line(front.name, partition, (message.incarnation, message.lease))
            for item in complete_reports(message, self.terms):
                line.send_report(item, self._agenda.now_s)
            for item, content in message.items:
                if isinstance(content, Unheard):
                    line.late = max(line.late, item)
                elif isinstance(content, Ask) and content.requests:
                    is_waiting = front.is_waiting(partition, content.call)
                    assert is_waiting, f"{front.name} asks for a call that nobody waits for"
            self._to_partition(front, partition, message)

    def _line(self, front: str, partition: int, lease: tuple[int, int]) -> Line:
        name = (front, partition, lease)
        if name not in self._lines:
            self._lines[name] = Line(self._agenda.now_s)
        return self._lines[name]

    def _to_partition(self, front: FrontProcess, partition: int, message: ToPartition) -> None:
        def deliver() -> None:
            process = self.partitions[partition]
            process.run(lambda: self._take(process, message))

        self._network.carry(front.number, partition, Way.THERE, deliver)

    def _take(self, process: PartitionProcess, message: ToPartition) -> None:
        machine = process.machine
        line = self._line(message.front, process.number, (message.incarnation, message.lease))
        lease = machine._leases.by_front.get(message.front)
        early = [] if lease is None else list(lease.stream._early.values())
        is_telling = any(
            isinstance(item, ToldSlots | ToldNotes | ToldAll)
            for item in (*early, *(item for _, item in message.items))
        )

        def receive() -> dict[str, ToFront]:
            return machine.receive(message, process.wall_s, process.now_s)

        answers = self._watched(process, receive, message.front if is_telling else "")
        named = (process.incarnation, machine.leases.get(message.front))
        if (message.incarnation, message.lease) == named:
            taken = answers[message.front].acknowledged
            if message.stamp_s > line.stamp_s:
                line.heard_s, line.stamp_s = self._agenda.now_s, message.stamp_s
                line.take_reports(taken)
            if taken >= line.late:  # (also with a message that was overtaken)
                self._silences.end(message.front, process, self._agenda.now_s)
        self._to_fronts(process, answers)

    def _tick_partition(self, process: PartitionProcess) -> None:
        machine = process.machine
        answers = self._watched(process, lambda: machine.tick(process.wall_s, process.now_s), "")
        self._to_fronts(process, answers)
        _check_sizes(machine.sizes())
        if self._has_disks and self._chance.random() < SAVED_PER_TICK:
            self._save(process)

    def _save(self, process: PartitionProcess) -> None:
        known_s = {
            front: self._line(front, process.number, (process.incarnation, lease)).reported_s
            for front, lease in process.machine.leases.items()
        }
        self._disks[process.number].save(process, known_s, self._agenda.now_s)

    def _watched(
        self, process: PartitionProcess, do: Callable[[], dict[str, ToFront]], teller: str
    ) -> dict[str, ToFront]:
        """What a partition does, and whom it takes for lost meanwhile. `teller`: the front that
        tells just now what it has, which may be too late for a partition that had started again."""
        before, told = process.machine.leases, process.machine.told
        answers = do()
        for pending, record in process.resets:
            if pending.is_set and record.set_s == inf:
                record.set_s = self._agenda.now_s
            if pending.is_done and record.told_s == inf and pending.failure is None:
                record.told_s = self._agenda.now_s
                self.testimony.events["resets"] += 1
        after = process.machine.leases
        if told is not None and process.machine.told is None:
            waited_s = self._agenda.now_s - process.started_s
            term_s = self.terms.term_s + self.terms.margin_s
            assert waited_s > term_s - 1e-6, f"fronts had {waited_s:.3f} s to tell what they have"
            self._excuse_untold(process, told)
        for front, lease in before.items():
            if after.get(front) != lease:
                line = self._line(front, process.number, (process.incarnation, lease))
                silent_s = self._agenda.now_s - line.heard_s
                term_s = self.terms.term_s + self.terms.margin_s
                is_too_late = front == teller and process.machine.told is None
                assert silent_s > term_s - 1e-6 or is_too_late, (
                    f"{front} was taken for lost after {silent_s:.3f} s"
                )
                self.testimony.events["fronts lost"] += 1
                self._silences.begin(front, process, line.reported_s, self._agenda.now_s)
                self._deafen(front, process)
        return answers

    def _deafen(self, front: str, process: PartitionProcess) -> None:
        """Perhaps nobody hears a front after a new lease has begun, of which it hears."""
        if self.faults.one_way and self._chance.random() < self.faults.one_way:
            for number in (each.number for each in self.fronts if each.name == front):
                self._network.cut(number, process.number, [Way.THERE])

    def _excuse_untold(self, process: PartitionProcess, told: frozenset[str]) -> None:
        """A partition was lost, and these fronts could not tell the next one what they had."""
        disk = self._disks[process.number]
        for record in self.testimony.resets:
            if record.partition == process.number and record.set_s < process.started_s:
                record.is_lasting &= disk.saved_s > record.set_s or any(
                    front.remembers(record) for front in self.fronts if front.name in told
                )
        self.testimony.excused += excused_of(self._all_fronts, process.number, told, disk)

    def _to_fronts(self, process: PartitionProcess, answers: dict[str, ToFront]) -> None:
        for front in self.fronts:
            message = answers.get(front.name)
            if message is not None:
                self._to_front(process, front, message)

    def _to_front(self, process: PartitionProcess, front: FrontProcess, message: ToFront) -> None:
        def receive() -> None:
            front.receive(process.number, message)
            self._send(front, process.number)

        self._network.carry(front.number, process.number, Way.BACK, lambda: front.run(receive))

    # Faults

    def _fault(self) -> None:
        """A tenth of a second of accidents."""
        faults, happens = self.faults, self._happens
        is_dark = happens(faults.blackout)
        for number, front in enumerate(self.fronts):
            if (is_dark or happens(faults.crash)) and front.is_alive:
                self._replace(front, partial(self._start_front, number))
            if happens(faults.freeze):
                self.testimony.events["freezes"] += 1
                front.freeze(self._chance.random() * FREEZE_S)
            if happens(faults.cut):
                self._network.cut(number, self._chance.randrange(self.scale.partitions))
            if happens(faults.clock_jump):
                front.clock_error_s = self._error_s()
        for number, partition in enumerate(self.partitions):
            if (is_dark or happens(faults.partition_crash)) and partition.is_alive:
                self._replace(partition, partial(self._start_partition, number))
            if happens(faults.partition_freeze):
                partition.freeze(self._chance.random() * FREEZE_S)
            if happens(faults.reset):
                partition.run(partial(self._reset, partition))
            if happens(faults.clock_jump / 4):
                partition.clock_error_s = self._error_s()
        if happens(faults.rule_change):
            self._change_rule()
        if self.faults is not NONE:
            self._agenda.after(FAULTS_EVERY_S, self._fault)

    def _reset(self, process: PartitionProcess) -> None:
        key, _ = self._chance.choice(self._keys)
        if stable_hash(key) % self.scale.partitions != process.number:
            return
        now_s = self._agenda.now_s
        end_s = window_at(Unit(key[0]), int(EPOCH_S + now_s)).end_s
        record = ResetRecord(process.number, (end_s, key), now_s)
        self.testimony.resets.append(record)
        patience_s = self._chance.choice((0.1, 2.0))
        pending = process.machine.reset(record.counter, patience_s, process.now_s)
        process.resets.append((pending, record))
        self._tick_partition(process)

    def _happens(self, per_second: float) -> bool:
        return per_second > 0 and self._chance.random() < per_second * FAULTS_EVERY_S

    def _error_s(self) -> float:
        """What is wrong with a clock; no two are wrong by nearly as much."""
        self._skewed += 1
        far_s = DAY_S + 60.0 * self._skewed
        return self._chance.choice((0.0, 0.8, -1.5, 3.0, far_s, -far_s))

    def _replace(self, process: FrontProcess | PartitionProcess, start: Callable[[], None]) -> None:
        process.is_alive = False
        self.testimony.events["crashes"] += 1
        self.testimony.has_evicted |= process.has_evicted
        self._agenda.after(self._chance.random() * RESTART_S, start)

    def _start_front(self, number: int) -> None:
        limits = self.fronts[number].limits
        boot = sum(front.number == number for front in self._all_fronts) + 1
        self.fronts[number] = self._front(number, boot)
        self.fronts[number].limits = limits

    def _start_partition(self, number: int) -> None:
        incarnation = self.partitions[number].incarnation + 1
        self.partitions[number] = self._partition(number, incarnation)

    def _change_rule(self) -> None:
        """Each front hears of it in its own time."""
        key, _ = self._chance.choice(self._keys)
        limit = self._chance.choice(LIMITS)
        change = {key: limit}
        for front in self.fronts:
            self._agenda.after(self._chance.random() * 0.3, partial(front.limits.update, change))

    def _heal(self) -> None:
        self._network.heal()
        for process in (*self.fronts, *self.partitions):
            process.wake()
            process.clock_error_s = 0.0


def _check_sizes(sizes: dict[str, tuple[int, int]]) -> None:
    for name, (size, size_max) in sizes.items():
        assert size <= size_max, f"law 4: {name} is {size_max}, and there are {size}"


def judge(seed: int) -> Testimony:
    """The run of a seed, checked. Raises AssertionError that names the seed."""
    try:
        testimony = World(seed).run()
        check(testimony)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
    for hit in testimony.hits:
        testimony.events[hit.fate.value if hit.fate is not Fate.UNKNOWN else "unknown"] += 1
    return testimony
