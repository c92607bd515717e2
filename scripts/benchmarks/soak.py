"""`scripts/bench soak`: mixed traffic for as long as one likes, and the memory of every process.

Captures, decisions over gRPC and JSON and verdicts come one after another all the time, and gRPC
decisions of many keys at a steady rate beside them. Memory is looked at by the name of a process,
so one that was replaced goes on in its row. It is *flat* when the last quarter of the looks is, by
its median, no more than a few percent above the second quarter: the first one is for caches to
fill.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from statistics import median
from threading import Event, Thread
from time import monotonic

import click
import psutil
from rich.console import Console
from rich.table import Table

from scripts.benchmarks.grpc_load import Load, run_load
from scripts.benchmarks.ratelimit import MIB, distinct_messages
from scripts.benchmarks.tollgate_node import TollgateNode, tollgate_node
from tests.support.processes.killing import processes
from tests.support.processes.service_load import ServiceLoad
from tollgate.serve.ratelimit.codec.messages import METHOD_PATH

LOOKS = 40
LOOKS_MIN = 8
LOOK_EVERY_MIN_S = 1.0
GROWTH_MAX = 0.03
GROWTH_MAX_MIB = 4.0
IN_FLIGHT = 32
CONNECTIONS = 4
BURST_S = 0.5
CAPTURES_MAX = 900
"""Of one transaction: then another one is made, for its captures have an end."""

Looks = dict[str, list[float]]
"""Memory in MiB at each look, by the name of the process."""


class SteadyCalls:
    """gRPC decisions of so many keys, so many a second, until it is stopped."""

    def __init__(self, node: TollgateNode, keys: int, per_second: int) -> None:
        self._address = node.grpc
        self._keys = keys
        self._messages = distinct_messages(keys)
        self._per_burst = max(IN_FLIGHT, int(per_second * BURST_S))
        self._stop = Event()
        self.decided = 0
        self.errors = 0
        self.slowest_s = 0.0

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Calls while the block runs; every key has been there once before."""
        self._note(self._send(self._keys))
        thread = Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        due_s = monotonic()
        while not self._stop.wait(max(0.0, due_s - monotonic())):
            due_s = max(due_s + BURST_S, monotonic())
            try:
                self._note(self._send(self._per_burst))
            except OSError:
                self.errors += self._per_burst

    def _send(self, calls: int) -> Load:
        return run_load(
            self._address,
            METHOD_PATH,
            self._messages,
            calls=calls,
            in_flight=IN_FLIGHT,
            connections=CONNECTIONS,
        )

    def _note(self, load: Load) -> None:
        self.decided += len(load.latencies_s)
        self.errors += load.errors
        self.slowest_s = max([self.slowest_s, *load.latencies_s[-1:]])


@click.command()
@click.option("--minutes", default=10.0, show_default=True, help="How long.")
@click.option("--keys", default=200_000, show_default=True, help="Distinct keys over gRPC.")
@click.option("--rate", default=2_000, show_default=True, help="gRPC decisions a second.")
@click.option("--setting", "settings", multiple=True, metavar="NAME=VALUE", help="Of the Tollgate.")
def soak(minutes: float, keys: int, rate: int, settings: tuple[str, ...]) -> None:
    """Memory of every process under mixed traffic, over time: flat, or growing?"""
    given = dict(each.split("=", 1) for each in settings)
    console = Console(width=150)
    with tollgate_node(**given) as node:
        steady, heard = SteadyCalls(node, keys, rate), Counter[tuple[str, str]]()
        with steady.flowing():
            looks = _watched(node, minutes * 60, heard)
        console.print(_table(looks, minutes))
        answers = (f"{service} {said}: {n:,}" for (service, said), n in sorted(heard.items()))
        console.print(f"answers: {', '.join(answers)}")
        console.print(
            f"gRPC decisions of {keys:,} keys: {steady.decided:,}, errors {steady.errors:,}, "
            f"the slowest {steady.slowest_s * 1e3:.0f} ms"
        )
        growing = [name for name, seen in looks.items() if not is_flat(seen)]
        console.print(f"growing: {', '.join(growing)}" if growing else "flat")


def _watched(node: TollgateNode, for_s: float, heard: Counter[tuple[str, str]]) -> Looks:
    looks: Looks = {}
    every_s = max(LOOK_EVERY_MIN_S, for_s / LOOKS)
    due_s, left = monotonic(), max(LOOKS_MIN, int(for_s / every_s))
    pause = Event()
    while left:
        services = ServiceLoad(node.process)
        with services.flowing():
            while left and services.captured < CAPTURES_MAX:
                due_s += every_s
                while services.captured < CAPTURES_MAX and monotonic() < due_s:
                    pause.wait(LOOK_EVERY_MIN_S)
                _look(node, looks)
                left -= 1
        for service, calls in services.calls.items():
            heard.update((service, "right" if call.is_right else call.said) for call in calls)
    return looks


def _look(node: TollgateNode, looks: Looks) -> None:
    found: Counter[str] = Counter()
    for name, process in processes(node.process):
        with suppress(psutil.NoSuchProcess):
            found[name] += process.memory_info().rss  # (several may have one name)
    for name, size in found.items():
        looks.setdefault(name, []).append(size / MIB)


def quarters(seen: Sequence[float]) -> list[float]:
    """The medians of the four quarters of the looks."""
    size = max(1, len(seen) // 4)
    return [median(seen[n * size : (n + 1) * size] or seen[-1:]) for n in range(4)]


def is_flat(seen: Sequence[float]) -> bool:
    """Whether memory has stopped growing."""
    _, second, _, last = quarters(seen)
    return last - second <= max(GROWTH_MAX_MIB, GROWTH_MAX * second)


def _table(looks: Looks, minutes: float) -> Table:
    columns = ("first", "1st quarter", "2nd", "3rd", "4th", "last", "most")
    table = Table("process", title=f"Memory in MiB, {minutes:g} minutes of mixed traffic")
    for column in columns:
        table.add_column(column, justify="right")
    table.add_column("")
    for name, seen in sorted(looks.items()):
        figures = (seen[0], *quarters(seen), seen[-1], max(seen))
        cells = [f"{mib:.0f}" for mib in figures]
        table.add_row(name, *cells, "flat" if is_flat(seen) else "grows")
    return table
