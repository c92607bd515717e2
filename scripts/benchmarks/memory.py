"""`scripts/bench memory`: the memory of lent counters, over as many distinct keys as one likes.

One front counts every key once; each partition is a process of its own, and messages go through a
pipe. So what each process grows by is what its counters cost, in the front and in the partition
that hears of them. There is no Ray here, nor gRPC.
"""

import multiprocessing
import queue
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from threading import Event, Thread
from time import perf_counter, sleep

import click
import psutil
from rich.console import Console
from rich.table import Table

from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.kernel.garbage_collection import spare_what_is_there
from tollgate.actors.kernel.hashing import stable_hash
from tollgate.actors.ratelimit.counting.counters import LimitedHits
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.counter_keys import KeyForm
from tollgate.actors.ratelimit.lending.home_counters import HomeCounters
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.channel import OnReply
from tollgate.actors.ratelimit.lent_counting.partition import LendingPartition
from tollgate.actors.ratelimit.lent_counting.store import BorrowedCounters

MIB = 2**20
TICK_S = 0.1
SNAPSHOT_EVERY_S = 1.0
CHANGED_AT_ONCE = 1_024
PATIENCE_S = 5.0
DEADLINE_S = 10.0
MEMORY_MAX_BYTES = 4 * 2**30
LOOK_EVERY = 256  # batches
SETTLED_WITHIN_S = 300.0
WINDOW_S = 86_400
LIMIT = 100
KEY = KeyForm("", "bench", (("client", None),), Unit.DAY)


def serve_partition(
    terms: Terms, calls: Connection, standing: Connection, facts: Connection
) -> None:
    """The process of a partition: answers what comes through each pipe, until it is closed."""
    partition = LendingPartition(terms, 1, SystemClock(), is_new=True, keeps_changes=True)
    spare_what_is_there()
    process = psutil.Process()
    before = process.memory_info().rss

    def tick() -> None:
        due_s = perf_counter()
        pause = Event()
        while not pause.wait(TICK_S):
            partition.tick()
            if perf_counter() >= due_s:
                due_s = perf_counter() + SNAPSHOT_EVERY_S
                while partition.changed(CHANGED_AT_ONCE):
                    pass

    def stand() -> None:
        while True:
            standing.send_bytes(partition.wait_for_mail(standing.recv_bytes().decode(), PATIENCE_S))

    def tell() -> None:
        while facts.recv_bytes():
            facts.send(partition.describe() | {"rss": process.memory_info().rss - before})

    for work in (tick, stand, tell):
        Thread(target=work, daemon=True).start()
    while call := calls.recv_bytes():
        calls.send_bytes(partition.receive(call))


class PipeChannel:
    """To a partition in a process of its own."""

    def __init__(self, terms: Terms) -> None:
        context = multiprocessing.get_context("spawn")
        pipes = [context.Pipe() for _ in range(3)]
        self._calls, self._standing, self._facts = (here for here, _ in pipes)
        theirs = [there for _, there in pipes]
        self.process = context.Process(target=serve_partition, args=(terms, *theirs), daemon=True)
        self.process.start()
        self._waiting: queue.SimpleQueue[tuple[bytes, OnReply]] = queue.SimpleQueue()
        self._listening: queue.SimpleQueue[tuple[bytes, OnReply]] = queue.SimpleQueue()
        for pipe, asked in ((self._calls, self._waiting), (self._standing, self._listening)):
            Thread(target=_carry, args=(pipe, asked), daemon=True).start()

    def send(self, message: bytes, on_reply: OnReply) -> None:
        self._waiting.put((message, on_reply))

    def listen(self, front: str, on_reply: OnReply) -> None:
        self._listening.put((front.encode(), on_reply))

    def describe(self) -> dict[str, int]:
        """What the partition tells of itself, and by how much its memory has grown."""
        self._facts.send_bytes(b"?")
        told: dict[str, int] = self._facts.recv()
        return told

    def end(self) -> None:
        self.process.kill()
        self.process.join()


def _carry(pipe: Connection, asked: "queue.SimpleQueue[tuple[bytes, OnReply]]") -> None:
    while True:
        message, on_reply = asked.get()
        try:
            pipe.send_bytes(message)
            on_reply(pipe.recv_bytes())
        except (EOFError, OSError):
            return


@dataclass(frozen=True, slots=True)
class Growth:
    """What became of one run. Memory in bytes, grown since the start."""

    keys: int
    seconds: float
    slowest_s: float
    refused: int
    front_rss: int
    front_counters: int
    front_evicted: int
    partitions: list[dict[str, int]]

    @property
    def cells(self) -> list[str]:
        held = sum(each["counters"] for each in self.partitions)
        rss = sum(each["rss"] for each in self.partitions)
        return [
            f"{self.keys:,}",
            f"{self.front_counters:,}",
            f"{self.front_rss / MIB:,.0f}",
            f"{self.front_rss / max(1, self.front_counters):,.0f}",
            f"{self.front_evicted:,}",
            f"{held:,}",
            f"{rss / MIB:,.0f}",
            f"{rss / max(1, held):,.0f}",
            f"{sum(each['evicted'] for each in self.partitions):,}",
            f"{self.refused:,}",
            f"{self.seconds:.0f}",
            f"{self.seconds / self.keys * 1e6:.1f}",
            f"{self.slowest_s * 1e3:.1f}",
        ]


COLUMNS = (
    "keys",
    "in front",
    "MiB",
    "bytes each",
    "evicted",
    "in partitions",
    "MiB",
    "bytes each",
    "evicted",
    "refused",
    "s",
    "µs a key",
    "slowest batch ms",
)


@click.command()
@click.option("--keys", default=5_000_000, show_default=True, help="Distinct keys, each hit once.")
@click.option("--partitions", default=1, show_default=True)
@click.option("--counters-max", default=Terms().counters_max, show_default=True, help="Of each.")
@click.option("--batch", default=64, show_default=True, help="Hits that arrive together.")
@click.option("--looks", default=5, show_default=True, help="Rows of the table.")
@click.option("--refuse", is_flag=True, help="A full table refuses new keys.")
def memory(
    keys: int, partitions: int, counters_max: int, batch: int, looks: int, refuse: bool
) -> None:
    """Bytes that a counter costs in the front and in its partition, and what a full table does."""
    terms = Terms(counters_max=counters_max, refuses_when_full=refuse)
    table = Table(title=f"Lent counters, {partitions} partitions of at most {counters_max:,}")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for growth in _grown(terms, partitions, keys, batch, looks):
        table.add_row(*growth.cells)
        click.echo(" | ".join(growth.cells))
    Console(width=160).print(table)


@contextmanager
def _lent(terms: Terms, partitions: int) -> Iterator[tuple[BorrowedCounters, list[PipeChannel]]]:
    with ExitStack() as stack:
        channels = [PipeChannel(terms) for _ in range(partitions)]
        for channel in channels:
            stack.callback(channel.end)
            channel.describe()
        store = BorrowedCounters(channels, terms, "front", DEADLINE_S, SystemClock())
        store.start()
        yield store, channels


def _grown(terms: Terms, partitions: int, keys: int, batch: int, looks: int) -> Iterator[Growth]:
    end_s = (int(SystemClock().now_s()) // WINDOW_S + 2) * WINDOW_S
    process = psutil.Process()
    with _lent(terms, partitions) as (store, channels):
        spare_what_is_there()
        before = process.memory_info().rss
        hit = 0
        seconds = slowest_s = 0.0
        refused = 0
        for share in range(1, looks + 1):
            while hit < keys * share // looks:
                numbers = range(hit, min(hit + batch, keys * share // looks))
                hit = numbers.stop
                batches = _batches(numbers, partitions, end_s)
                asked_s = perf_counter()
                answers = store.hit(batches, 0)
                took_s = perf_counter() - asked_s
                seconds += took_s
                slowest_s = max(slowest_s, took_s)
                refused += sum(_refused(each) for each in answers.values())
                if hit // batch % LOOK_EVERY == 0:
                    _keep_within(process, channels)
            _settle(store)
            yield Growth(
                hit,
                seconds,
                slowest_s,
                refused,
                process.memory_info().rss - before,
                sum(len(each) for each in _homes(store)),
                store.evicted,
                [each.describe() for each in channels],
            )


def _refused(answer: object) -> int:
    assert isinstance(answer, list), answer
    return sum(not isinstance(count, int) for counts in answer for count in counts)


def _batches(numbers: Sequence[int], partitions: int, end_s: int) -> dict[int, list[LimitedHits]]:
    hits: dict[int, list[LimitedHits]] = {}
    for number in numbers:
        key = KEY.key((("client", f"visitor-{number}"),))
        partition = stable_hash(key) % partitions
        if partition not in hits:
            hits[partition] = [LimitedHits(end_s, [], [], [])]
        (column,) = hits[partition]
        column.keys.append(key)
        column.addends.append(1)
        column.limits.append(LIMIT)
    return hits


def _keep_within(process: psutil.Process, channels: Sequence[PipeChannel]) -> None:
    pids = [each.process.pid for each in channels]
    used = process.memory_info().rss + sum(psutil.Process(pid).memory_info().rss for pid in pids)
    if used > MEMORY_MAX_BYTES:
        raise click.ClickException(f"more than {MEMORY_MAX_BYTES // MIB:,} MiB are used: enough")


def _homes(store: BorrowedCounters) -> list[HomeCounters]:
    return [line._borrower._home for line in store._lines]


def _settle(store: BorrowedCounters) -> None:
    """Wait until partitions have heard of everything."""
    give_up_s = perf_counter() + SETTLED_WITHIN_S
    while any(each.has_changed for each in _homes(store)) and perf_counter() < give_up_s:
        sleep(TICK_S)
    sleep(SNAPSHOT_EVERY_S + TICK_S)  # (the last report arrives, and changes are taken)
