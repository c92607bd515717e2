"""`scripts/bench recovery`: how long it takes until what was killed is back, under light load.

Every process that a start makes is killed, one after another. A row tells, for each service, the
time from the kill until calls were answered right again (nothing: no caller noticed), the longest
that a caller was kept, and what the callers heard who were not answered right.
"""

import signal
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console
from rich.table import Table

from tests.support.processes.killing import Recovery, kill, processes
from tests.support.processes.service_load import (
    CAPTURES,
    DECISIONS,
    JSON_DECISIONS,
    VERDICTS,
    ServiceLoad,
)
from tests.support.processes.tollgate import TollgateProcess

SERVICES = (CAPTURES, DECISIONS, JSON_DECISIONS, VERDICTS)
WIDTH = 150


@click.command()
@click.argument("victims", nargs=-1)
@click.option("--rounds", default=2, show_default=True, help="How often each of them is killed.")
@click.option("--hanging", is_flag=True, help="Stop them instead (SIGSTOP), as one that hangs.")
@click.option("--setting", "settings", multiple=True, metavar="NAME=VALUE", help="Of the Tollgate.")
def recovery(
    victims: tuple[str, ...], rounds: int, hanging: bool, settings: tuple[str, ...]
) -> None:
    """Kill each process of a Tollgate, or those whose names hold one of VICTIMS, under load."""
    console = Console(width=WIDTH)
    with TemporaryDirectory(prefix="tollgate-bench-") as folder:
        given = dict(each.split("=", 1) for each in settings)
        tollgate = TollgateProcess(Path(folder), {"DRAIN_GRACE": "1s", **given})
        try:
            tollgate.up()
            load = ServiceLoad(tollgate)
            with load.flowing():
                found = list(dict.fromkeys(name for name, _ in processes(tollgate)))
                names = [n for n in found if not victims or any(v in n for v in victims)]
                seen = []
                with_signal = signal.SIGSTOP if hanging else signal.SIGKILL
                for victim in names * rounds:
                    seen.append(kill(tollgate, load, victim, with_signal))
                    console.print(_line(seen[-1]))
            console.print(_table(seen))
            console.print(f"captured {load.taken():,}, told {load.captured:,}")
            tollgate.down()
            left = ", ".join(tollgate.living() + tollgate.taken_ports())
            console.print(f"left after the end: {left or 'nothing'}")
        finally:
            tollgate.end()


def _line(seen: Recovery) -> str:
    return f"{seen.victim}: " + ", ".join(_cells(seen))


def _cells(seen: Recovery) -> list[str]:
    each = [seen.services[service] for service in SERVICES]
    heard: Counter[str] = sum((service.heard for service in each), Counter())
    return [
        f"{seen.replaced_s:.1f}",
        *(f"{service.back_s:.1f}" if service.back_s else "–" for service in each),
        f"{seen.longest_s:.1f}",
        ", ".join(f"{count} {said}" for said, count in heard.most_common()),
    ]


def _table(seen: list[Recovery]) -> Table:
    columns = ("killed", "replaced s", *(f"{each} s" for each in SERVICES), "longest s", "heard")
    table = Table(*columns, title="Recovery")
    for each in seen:
        table.add_row(each.victim, *_cells(each))
    return table
