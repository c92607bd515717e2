"""`scripts/bench scale`: what lending costs when many fronts share their keys, from the simulation.

The machines of fronts and partitions run here as they do in processes, with faked time: nothing
goes wrong and messages take no time, so the tables are the same on every machine. They are those of
docs/scale.md.
"""

from collections.abc import Sequence

import click
from rich.console import Console
from rich.markup import escape

from tests.simulation.ratelimit.scale import PARTITIONS, WINDOW_S, Load, Price, measure

KIB = 1024
COLUMNS = (
    "fronts",
    "decisions",
    "calls",
    "pushes",
    "direct calls",
    "KiB per front",
    "KiB per partition",
    "refused",
    "wrongly refused",
    "wrongly admitted",
)


@click.command()
@click.option("--fronts", multiple=True, type=int, default=(1, 10, 100), show_default=True)
@click.option("--keys", default=10_000, show_default=True, help="Distinct keys.")
@click.option("--zipf", default=1.0, show_default=True, help="The exponent of their popularity.")
@click.option("--limit", default=100, show_default=True, help=f"Hits per key in {WINDOW_S} s.")
@click.option("--rate", default=100, show_default=True, help="Decisions a second of each front.")
@click.option("--batch", default=1, show_default=True, help="Decisions in one call of a front.")
@click.option("--seconds", default=5.0, show_default=True, help="Of faked time.")
def scale(
    fronts: Sequence[int],
    keys: int,
    zipf: float,
    limit: int,
    rate: int,
    batch: int,
    seconds: float,
) -> None:
    """Messages per 1,000 decisions, memory and wrong answers of lending, by the number of fronts.

    A table in Markdown: `calls` go from a front to a partition and bring an answer, `pushes` the
    other way.
    """
    console = Console(width=160, highlight=False)
    console.print(
        f"{PARTITIONS} partitions, {keys:,} keys by Zipf {zipf:g}, limit {limit:,} per "
        f"{WINDOW_S} s, {rate:,} decisions a second of each front, by {batch}, for {seconds:g} s"
    )
    console.print(_line(COLUMNS))
    console.print(_line(["---"] * len(COLUMNS)))
    for number in fronts:
        load = Load(number, keys, rate, batch, zipf, limit, seconds)
        console.print(_line(_cells(number, measure(load))))


def _line(cells: Sequence[str]) -> str:
    return escape(f"| {' | '.join(cells)} |")


def _cells(fronts: int, price: Price) -> list[str]:
    assert not price.failed, "nothing goes wrong here"
    return [
        f"{fronts:,}",
        f"{price.decisions:,}",
        *(
            f"{price.per_thousand(number):,.0f}"
            for number in (price.calls, price.pushes, price.direct_calls)
        ),
        f"{price.front_bytes / KIB:,.0f}",
        f"{price.partition_bytes / KIB:,.0f}",
        f"{price.refused:,}",
        f"{price.false_refused:,}",
        f"{price.false_admitted:,}",
    ]
