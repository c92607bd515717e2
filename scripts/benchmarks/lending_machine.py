"""What a hit costs at home, and in a counter table that is asked directly."""

import gc
from collections.abc import Callable
from statistics import median
from time import process_time

import click

from tollgate.actors.ratelimit.counting.counters import CounterTable, Hits
from tollgate.actors.ratelimit.lending.borrower import Borrower
from tollgate.actors.ratelimit.lending.lender import Lender
from tollgate.actors.ratelimit.lending.messages import LimitedHits
from tollgate.actors.ratelimit.lending.terms import Terms

WALL_S = 1_000_000.0
END_S = 1_003_600
LIMIT = 1_000_000_000
CALLS_PER_REPORT = 50

Count = Callable[[list[bytes]], object]


class Home:
    """A front that is alone; every so many calls it says what is due, as it would by the clock."""

    def __init__(self) -> None:
        terms = Terms()
        self._front = Borrower(terms, "front")
        self._partition = Lender(terms, 1, 0.0, is_new=True)
        self._calls = 0
        self._now_s = 0.0
        self._talk()

    def _talk(self) -> None:
        self._now_s += 0.05
        wall_s = WALL_S + self._now_s
        while message := self._front.outgoing(wall_s, self._now_s):
            for answer in self._partition.receive(message, wall_s, self._now_s).values():
                self._front.receive(answer, wall_s, self._now_s)

    def count(self, keys: list[bytes]) -> object:
        ones = [1] * len(keys)
        hits = LimitedHits(END_S, keys, ones, [LIMIT] * len(keys))
        return self._front.hit([hits], WALL_S + self._now_s, self._now_s, 0.015)

    def rest(self) -> None:
        self._talk()


class Table:
    """The table of a partition, asked directly: the message to it is not in the price."""

    def __init__(self) -> None:
        self._table = CounterTable()

    def count(self, keys: list[bytes]) -> object:
        return self._table.hit([Hits(END_S, keys, [1] * len(keys))], int(WALL_S))

    def rest(self) -> None:
        """Nothing is due."""


def _seconds(count: Count, rest: Callable[[], None], batches: list[list[bytes]]) -> float:
    seconds = 0.0
    for first in range(0, len(batches), CALLS_PER_REPORT):
        part = batches[first : first + CALLS_PER_REPORT]
        start = process_time()
        for keys in part:
            count(keys)
        seconds += process_time() - start
        rest()
    return seconds


@click.command("lending-machine")
@click.option("--hits", default=100_000, show_default=True, help="Hits in one round.")
@click.option("--rounds", default=5, show_default=True, help="Rounds; the median counts.")
def lending_machine(hits: int, rounds: int) -> None:
    """Tell the nanoseconds of processor time of a hit, at home and in the table, reports aside."""
    gc.disable()
    for size in (256, 16, 1):
        for name in ("known keys", "new keys"):
            prices: dict[type, list[float]] = {Home: [], Table: []}
            for _ in range(rounds):
                for kind in (Home, Table):
                    counter = kind()
                    keys = [b"domain|key_%d" % number for number in range(hits)]
                    if name == "known keys":
                        keys = keys[:1_000] * (hits // 1_000)
                        counter.count(keys[:1_000])
                    batches = [keys[first : first + size] for first in range(0, hits, size)]
                    seconds = _seconds(counter.count, counter.rest, batches)
                    prices[kind].append(seconds / hits * 1e9)
            home, table = median(prices[Home]), median(prices[Table])
            click.echo(
                f"batches of {size:>3}, {name:>10}: {home:>6,.0f} ns at home, {table:>6,.0f} ns in "
                f"the table, {home / table:.2f} times"
            )
