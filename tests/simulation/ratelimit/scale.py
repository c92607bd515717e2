"""The price of lending: messages, memory and error of many fronts that share Zipf's keys.

Nothing goes wrong here and messages take no time: what is left is what the machines say to each
other. Direct counting, with the same requests in the same order, says what each should have been.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from gc import get_referents
from itertools import accumulate
from random import Random
from types import FunctionType, ModuleType

from tollgate.actors.kernel.hashing import stable_hash
from tollgate.actors.ratelimit.counting.counters import CounterTable, Hits, Unreachable
from tollgate.actors.ratelimit.lending.borrower import Borrower
from tollgate.actors.ratelimit.lending.lender import Lender
from tollgate.actors.ratelimit.lending.messages import LimitedHits
from tollgate.actors.ratelimit.lending.terms import Terms

START_S = 1_000_000
TICK_S = 0.05
WINDOW_S = 10
PARTITIONS = 4
FRONTS_WEIGHED = 10
KEPT_ONCE = (type, ModuleType, FunctionType, Enum, Terms)
"""What a process has once, however much it counts."""


@dataclass(frozen=True, slots=True)
class Load:
    """`rate`: decisions a second of each front; `batch`: decisions in one call of a front.
    `zipf`: the exponent of the keys' popularity; `limit`: hits per key and window."""

    fronts: int
    keys: int = 10_000
    rate: int = 100
    batch: int = 1
    zipf: float = 1.0
    limit: int = 100
    seconds: float = 10.0


@dataclass(slots=True)
class Price:
    """`calls`: from fronts to partitions, with their answers; `pushes`: unasked, the other way.
    `false_*`: against direct counting; `notes`, `counters`: kept by all fronts in the end;
    `front_bytes`, `partition_bytes`: the memory of one of them then, on average."""

    decisions: int = 0
    calls: int = 0
    pushes: int = 0
    refused: int = 0
    false_refused: int = 0
    false_admitted: int = 0
    failed: int = 0
    direct_calls: int = 0
    notes: int = 0
    counters: int = 0
    front_bytes: int = 0
    partition_bytes: int = 0

    def per_thousand(self, number: int) -> float:
        return 1_000 * number / max(1, self.decisions)


class _Run:
    def __init__(self, load: Load) -> None:
        self.load = load
        self.price = Price()
        self.now_s = 0.0
        terms = Terms()
        self.fronts = [
            [Borrower(terms, f"{number}") for _ in range(PARTITIONS)]
            for number in range(load.fronts)
        ]
        self.partitions = [Lender(terms, 1, 0.0, is_new=True) for _ in range(PARTITIONS)]
        self.oracle = CounterTable()
        self.keys = [b"key %d" % number for number in range(load.keys)]
        self.owners = [stable_hash(key) % PARTITIONS for key in self.keys]
        self.weights = list(accumulate((1 + n) ** -load.zipf for n in range(load.keys)))

    def decide(self, front: int, picked: list[int]) -> None:
        """One batch: at the fronts' price, and as direct counting has it."""
        load, price = self.load, self.price
        wall_s = START_S + self.now_s
        end_s = int(wall_s) - int(wall_s) % WINDOW_S + WINDOW_S
        by_owner: dict[int, list[bytes]] = {}
        for number in picked:
            by_owner.setdefault(self.owners[number], []).append(self.keys[number])
        price.direct_calls += len(by_owner)
        for owner, keys in by_owner.items():
            ones, limits = [1] * len(keys), [load.limit] * len(keys)
            machine = self.fronts[front][owner]
            call = machine.hit([LimitedHits(end_s, keys, ones, limits)], wall_s, self.now_s, 1.0)
            if not call.is_done:
                self.exchange(front, owner)
            (truth,) = self.oracle.hit([Hits(end_s, keys, ones)], int(wall_s))
            for count, true_count in zip(call.counts[0], truth, strict=True):
                price.decisions += 1
                if not call.is_done or isinstance(count, Unreachable):
                    price.failed += 1
                    continue
                is_over, is_truly_over = count > load.limit, true_count > load.limit
                price.refused += is_over
                price.false_refused += is_over and not is_truly_over
                price.false_admitted += is_truly_over and not is_over

    def exchange(self, front: int, owner: int) -> None:
        """All messages between a front and a partition, and what they bring about elsewhere."""
        machine, partition = self.fronts[front][owner], self.partitions[owner]
        while message := machine.outgoing(START_S + self.now_s, self.now_s):
            self.price.calls += 1
            answers = partition.receive(message, START_S + self.now_s, self.now_s)
            for name, answer in sorted(answers.items(), key=lambda each: each[0] == str(front)):
                other = self.fronts[int(name)][owner]
                other.receive(answer, START_S + self.now_s, self.now_s)
                if int(name) != front:
                    self.price.pushes += 1
                    self.exchange(int(name), owner)

    def tick(self) -> None:
        for owner, partition in enumerate(self.partitions):
            for name, answer in partition.tick(START_S + self.now_s, self.now_s).items():
                self.price.pushes += 1
                self.fronts[int(name)][owner].receive(answer, START_S + self.now_s, self.now_s)
            for front in range(self.load.fronts):
                self.exchange(front, owner)


def measure(load: Load, seed: int = 0) -> Price:
    """The price of a load."""
    chance, run = Random(seed), _Run(load)
    run.tick()
    ticks = round(load.seconds / TICK_S)
    batches = round(load.fronts * load.rate * TICK_S / load.batch)
    for _ in range(ticks):
        for _ in range(batches):
            run.now_s += TICK_S / batches
            picked = chance.choices(range(load.keys), cum_weights=run.weights, k=load.batch)
            run.decide(chance.randrange(load.fronts), picked)
        run.tick()
    for front in run.fronts:
        for machine in front:
            sizes = machine.sizes()
            run.price.notes += sizes["notes_max"][0]
            run.price.counters += sizes["counters_max"][0]
    weighed = run.fronts[:FRONTS_WEIGHED]
    run.price.front_bytes = sum(map(_bytes_of, weighed)) // len(weighed)
    run.price.partition_bytes = sum(map(_bytes_of, run.partitions)) // PARTITIONS
    return run.price


def _bytes_of(machine: object) -> int:
    """The memory of everything that a machine holds, by itself or with others."""
    return sum(map(sys.getsizeof, _held(machine)))


def _held(machine: object) -> Iterator[object]:
    seen: set[int] = set()
    left = [machine]
    while left:
        each = left.pop()
        if id(each) not in seen and not isinstance(each, KEPT_ONCE):
            seen.add(id(each))
            yield each
            left.extend(get_referents(each))
