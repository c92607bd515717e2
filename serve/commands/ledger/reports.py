"""The output of the ledger's commands: progress, reports, totals."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tollgate.actors.ledger.proof.findings import AccountTotal, VerificationReport

# Done so far, and of how many when that is known.
ReportStep = Callable[[int, int | None], None]
WHAT_TO_DO = (
    "Stop Tollgate and keep these books as they are; then restore a backup beside them and verify "
    "that: docs/operations.md, When books are not sound"
)


@contextmanager
def progress_bar(what: str) -> Iterator[ReportStep]:
    """A bar while something takes its time, for people only."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not _is_terminal()) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _is_terminal() -> bool:
    return sys.stderr.isatty()


def print_report(report: VerificationReport, *, as_json: bool = False) -> None:
    """Findings to the error output, a line each."""
    if as_json:
        click.echo(json.dumps(_report_document(report)))
        return
    for finding in report.findings:
        click.echo(finding, err=True)
    size = f"{report.books} books, {report.entries} entries"
    if report.anchored:
        size += ", anchors of {} to {}".format(*report.anchored)
    if report.is_sound:
        click.echo(f"sound: {size}")
    else:
        click.echo(f"NOT sound: {report.findings_count} findings in {size}", err=True)
        click.echo(WHAT_TO_DO, err=True)


def _report_document(report: VerificationReport) -> dict[str, object]:
    return {
        "sound": report.is_sound,
        "books": report.books,
        "entries": report.entries,
        "totals": [_total_document(total) for total in report.totals],
        "findings": report.findings,
        "findingsCount": report.findings_count,
        "anchored": report.anchored,
    }


def _total_document(total: AccountTotal) -> dict[str, object]:
    account, currency, amount = total
    return {"account": account, "currency": currency, "amount": amount}


def print_totals(totals: tuple[AccountTotal, ...], *, as_json: bool = False) -> None:
    """Sums by account, in minor units."""
    if as_json:
        click.echo(json.dumps([_total_document(total) for total in totals]))
        return
    table = Table("account", "currency")
    table.add_column("minor units", justify="right")
    for account, currency, amount in totals:
        table.add_row(account, currency, str(amount))
    Console().print(table)
