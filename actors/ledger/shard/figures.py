"""The counts of what a shard has done: since it began, and since somebody asked.

What is asked for is taken, once: so several who ask have each a part, and add up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from tollgate.actors.kernel.latencies import Latency, LatencyTally
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import (
    Done,
    DoneKind,
    Indefinite,
    OrderOutcome,
    Refusal,
    TurnedAway,
)

# An order that was done before: for the same request, or for another one with its key.
REPEATED, REPLAYED = "repeated", "replayed"


@dataclass(slots=True)
class ShardFigures:
    """The counts of what a shard has done since it began."""

    orders: int = 0
    batches: int = 0
    effects: int = 0
    refused: int = 0
    replayed: int = 0
    expired: int = 0
    turned_away: int = 0
    broken: int = 0


@dataclass(frozen=True, slots=True)
class ShardReport:
    """What is told of a shard. `name`, `pid`: of it and its process; `epoch` 0: it is not taken
    over yet, which took `takeover_s` at last. `waiting`: orders; `books`, `cached_bytes`: in
    memory. `commands`: orders by the name of their command and what became of them; `commit_times`
    and, in thousandths, `commit_orders`: of each commit. These three since they were taken last."""

    name: str
    pid: int
    epoch: int = 0
    takeover_s: float = 0.0
    waiting: int = 0
    books: int = 0
    cached_bytes: int = 0
    commands: Mapping[tuple[str, str], int] = field(default_factory=dict)
    commit_times: Latency | None = None
    commit_orders: Latency | None = None


class ShardTally:
    """What has been counted and not been taken yet. For one thread."""

    def __init__(self) -> None:
        self._commands: Counter[tuple[str, str]] = Counter()
        self._commit_times, self._commit_orders = LatencyTally(), LatencyTally()

    def count(self, order: Order, became: str) -> None:
        """One order."""
        self._commands[type(order.command).__name__, became] += 1

    def committed(self, answered: Iterable[tuple[Order, str]], orders: int, seconds: float) -> None:
        """One commit, which took so long, with what its orders are told."""
        for order, became in answered:
            self.count(order, became)
        self._commit_times.observe(1, seconds)
        self._commit_orders.observe(1, orders / 1_000)

    def take(self) -> tuple[Mapping[tuple[str, str], int], Latency, Latency]:
        """Commands, times of commits, and their orders in thousandths."""
        taken = dict(self._commands), self._commit_times.value(), self._commit_orders.value()
        self._commands = Counter()
        self._commit_times, self._commit_orders = LatencyTally(), LatencyTally()
        return taken


def became(answer: OrderOutcome) -> str:
    """The outcome of an order in a word, of a set that is closed."""
    match answer:
        case Done(is_replay=True):
            return REPLAYED
        case Done(kind=DoneKind.ATTEMPT_FAILED):
            return "attempt_failed"
        case Done():
            return "done"
        case Refusal():
            return answer.kind.name.lower()
        case TurnedAway():
            return "turned_away"
        case Indefinite():
            return "indefinite"
        case _:
            assert_never(answer)
