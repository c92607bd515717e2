"""`scripts/bench lending`: counting by lending beside direct counting, in turns, in one run.

Two Tollgates run all the time and are loaded in turns, so whatever else the machine does hits both.
Every figure is the median of its rounds. Calls to partitions are counted by the partitions.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import sleep

import click
from rich.console import Console
from rich.table import Table

from scripts.benchmarks.grpc_load import Load, run_load
from scripts.benchmarks.h2load import run_h2load
from scripts.benchmarks.ratelimit import (
    BACKEND_ERROR,
    DISTINCT,
    DISTINCT_KEYS,
    ONE_BODY,
    distinct_messages,
)
from scripts.benchmarks.tollgate_node import TollgateNode, json_body, tollgate_node
from tollgate.actors.operations.actor import ASK_EVERY_S
from tollgate.serve.ratelimit.codec.json_requests import request_from_json
from tollgate.serve.ratelimit.codec.messages import METHOD_PATH

WAYS = ("lent", "direct")
CONNECTIONS = 8
BODIES = {**ONE_BODY, "ten descriptors": json_body(*({"hot": f"{n}"} for n in range(10)))}
IN_FLIGHT = {
    "hot key": (1, 8, 80, 256),
    "over limit": (1, 256),
    "two descriptors": (1, 256),
    "ten descriptors": (1, 256),
    DISTINCT: (256,),
}
# So many that each takes a second or more.
CALLS = {1: 3_000, 8: 12_000, 80: 60_000, 256: 60_000}
WARM_UP_CALLS = 10_000
CALLS_TO_PARTITIONS = "ratelimit.counters.calls"
ALONE = {"PAYMENTS_ENABLED": "false", "CATALOG_ENABLED": "false"}
COLUMNS = ("req/s", "p50 ms", "p99 ms", "calls per 1,000")


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one round, or the medians of some. `calls`: to partitions, per 1,000 decisions."""

    per_second: float
    p50_ms: float
    p99_ms: float
    calls: float
    errors: int

    @property
    def cells(self) -> list[str]:
        latencies = f"{self.p50_ms:.2f}", f"{self.p99_ms:.2f}"
        return [f"{self.per_second:,.0f}", *latencies, f"{self.calls:,.1f}"]


LoadOnce = Callable[[TollgateNode, int, int], Load]
"""Loads a node with so many calls, so many in flight."""


@click.command()
@click.option("--scenario", "scenarios", multiple=True, type=click.Choice(list(IN_FLIGHT)))
@click.option("--rounds", default=3, show_default=True, help="Of which the median is shown.")
@click.option("--share", default=1.0, help="Scales the number of calls; 0.1 for a quick look.")
@click.option("--setting", "settings", multiple=True, metavar="NAME=VALUE", help="Of both.")
def lending(
    scenarios: tuple[str, ...], rounds: int, share: float, settings: tuple[str, ...]
) -> None:
    """Requests per second and latency of lent counting beside direct counting, and their calls."""
    given = dict(each.split("=", 1) for each in settings)
    table = _table()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        nodes = {
            way: stack.enter_context(tollgate_node(COUNTING=way, **ALONE, **given)) for way in WAYS
        }
        for scenario in scenarios or IN_FLIGHT:
            for in_flight, figures in _measured(nodes, scenario, folder, rounds, share):
                table.add_row(scenario, str(in_flight), *_row(figures))
                Console().print(f"{scenario}, {in_flight} in flight: {' '.join(_row(figures))}")
    Console(width=160).print(table)


def _measured(
    nodes: dict[str, TollgateNode], scenario: str, folder: Path, rounds: int, share: float
) -> Iterator[tuple[int, dict[str, Figures]]]:
    load = _load_of(scenario, folder)
    for node in nodes.values():
        load(node, max(256, int(WARM_UP_CALLS * share)), 256)
    for in_flight in IN_FLIGHT[scenario]:
        calls = max(in_flight, int(CALLS[in_flight] * share))
        seen: dict[str, list[Figures]] = {way: [] for way in nodes}
        for _ in range(rounds):
            for way, node in nodes.items():
                seen[way].append(_round(node, partial(load, node, calls, in_flight)))
        yield in_flight, {way: _median(each) for way, each in seen.items()}


def _load_of(scenario: str, folder: Path) -> LoadOnce:
    if scenario == DISTINCT:
        messages = distinct_messages(DISTINCT_KEYS)
        return lambda node, calls, in_flight: run_load(
            node.grpc,
            METHOD_PATH,
            messages,
            calls=calls,
            in_flight=in_flight,
            connections=CONNECTIONS,
        )
    message = request_from_json(BODIES[scenario])
    body = folder / f"{scenario.replace(' ', '-')}.grpc"
    body.write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
    return lambda node, calls, in_flight: run_h2load(
        f"http://{node.grpc[0]}:{node.grpc[1]}{METHOD_PATH}",
        body,
        calls=calls,
        in_flight=in_flight,
        connections=CONNECTIONS,
    )


def _round(node: TollgateNode, load: Callable[[], Load]) -> Figures:
    calls, refused = node.counter(CALLS_TO_PARTITIONS), node.counter(BACKEND_ERROR)
    result = load()
    decided = max(1, len(result.latencies_s))
    sleep(2 * ASK_EVERY_S)  # until partitions have been asked for their counts
    return Figures(
        result.per_second,
        result.quantile_s(0.5) * 1e3,
        result.quantile_s(0.99) * 1e3,
        1_000 * (node.counter(CALLS_TO_PARTITIONS) - calls) / decided,
        result.errors + node.counter(BACKEND_ERROR) - refused,
    )


def _median(seen: Sequence[Figures]) -> Figures:
    return Figures(
        median(each.per_second for each in seen),
        median(each.p50_ms for each in seen),
        median(each.p99_ms for each in seen),
        median(each.calls for each in seen),
        sum(each.errors for each in seen),
    )


def _row(figures: dict[str, Figures]) -> list[str]:
    lent, direct = (figures[way] for way in WAYS)
    ratios = lent.per_second / direct.per_second, lent.p50_ms / direct.p50_ms
    errors = f"{lent.errors} / {direct.errors}"
    return [*lent.cells, *direct.cells, *(f"{ratio:.2f}" for ratio in ratios), errors]


def _table() -> Table:
    table = Table("scenario", title="Lent beside direct")
    columns = [f"{way} {column}" for way in WAYS for column in COLUMNS]
    for column in ("in flight", *columns, "x req/s", "x p50", "errors"):
        table.add_column(column, justify="right")
    return table
