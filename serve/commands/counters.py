"""`tollgate counters`: what is counted now and who has it, and setting a counter to 0."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import click

from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.net.direct_calls import call_directly
from tollgate.serve.settings import Settings, process_environment

ANSWER_WITHIN_S = 60.0
ANSWER_BYTES_MAX = 16 * 1024 * 1024
LOOPBACKS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1", "[::]": "::1"}
"""Where whoever listens on every address of a family is found."""
ROWS_MAX = 10_000
TEXT_MAX = 60


@click.group()
def counters() -> None:
    """Show the counters of a running Tollgate, and set one of them to 0."""


@counters.command(name="list")
@click.option("--domain", default=None, help="Only counters of this domain.")
@click.option(
    "--key",
    "entries",
    multiple=True,
    metavar="KEY[=VALUE]",
    help="Only counters with this entry; repeat the option for more.",
)
@click.option(
    "--max",
    "rows_max",
    type=click.IntRange(1, ROWS_MAX),
    default=100,
    show_default=True,
    help="How many counters to show at most.",
)
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
def list_counters(
    domain: str | None, entries: tuple[str, ...], rows_max: int, *, is_json: bool
) -> None:
    """Show live counters: their hits, when their windows end, and who has them.

    What fronts have counted themselves is there as of their last report, 50 ms ago or less.
    """
    asked = [("max", str(rows_max)), *(("entry", entry) for entry in entries)]
    if domain is not None:
        asked.append(("domain", domain))
    reply = _ask("GET", "/counters", asked)
    if is_json:
        click.echo(json.dumps(reply))
        return
    for line in table(reply["counters"], SystemClock().now_s()):
        click.echo(line)
    for line in _warnings(reply):
        click.echo(line, err=True)
    if not reply["isComplete"] and not reply["silentPartitions"]:
        click.echo(f"There are more than {rows_max}: raise --max, or ask for less.", err=True)


@counters.command()
@click.argument("domain")
@click.argument("entries", nargs=-1, required=True, metavar="KEY=VALUE...")
@click.option("--yes", "is_confirmed", is_flag=True, help="Do it; without it, say what would be.")
def reset(domain: str, entries: tuple[str, ...], *, is_confirmed: bool) -> None:
    """Set the counter of DOMAIN with exactly these entries to 0, wherever it is.

    Nothing changes without --yes. The exit code is 0 when it was done, or could be, 1 otherwise.
    """
    asked = [("domain", domain), *(("entry", entry) for entry in entries)]
    if is_confirmed:
        asked.append(("confirmed", "true"))
    reply = _ask("POST", "/counters/reset", asked)
    found = reply["counters"]
    if not found and not reply["silentPartitions"]:
        click.echo("There is no such counter in a window that has not ended.", err=True)
        for near in reply.get("near", ()):
            click.echo(f"  there is: {near}", err=True)
        raise click.exceptions.Exit(1)
    for counter in found:
        click.echo(_outcome(counter))
    for line in _warnings(reply):
        click.echo(line, err=True)
    if found and not is_confirmed:
        click.echo("Nothing was changed: say --yes to do it.")
    has_failed = is_confirmed and not all(counter["isReset"] for counter in found)
    if has_failed or reply["silentPartitions"]:
        raise click.exceptions.Exit(1)


def _outcome(counter: Mapping[str, Any]) -> str:
    what = f"{_name(counter)} per {counter['unit']}: {counter['hits']} hits"
    match counter.get("isReset"):
        case None:
            return f"{what} would be 0"
        case True:
            return f"{what}, now 0"
        case _:
            return f"{what}, not reset: {counter['why']}"


def _warnings(document: Mapping[str, Any]) -> Iterator[str]:
    for name in document["silentPartitions"]:
        yield f"{name} does not answer; what it counts is not in this"


def _name(counter: Mapping[str, Any]) -> str:
    if counter["domain"] is None:
        return f"(a long name) {counter['digest']}"
    return " ".join([counter["domain"], *counter["entries"]])


def table(rows: Sequence[Mapping[str, Any]], now_s: float) -> Iterator[str]:
    """The counters for people, a line each."""
    yield f"{'hits':>10} {'limit':>10} {'per':<7} {'ends in':>10}  {'held by':<28} counter"
    for row in rows:
        limit = "" if row["limit"] is None else str(row["limit"])
        ends_s = max(0, round(row["windowEndsS"] - now_s))
        name = _name(row)
        if len(name) > TEXT_MAX * 4:
            name = f"{name[: TEXT_MAX * 4]}…"
        yield (
            f"{row['hits']:>10} {limit:>10} {row['unit']:<7} {ends_s:>8} s  "
            f"{_holder(row):<28} {name}"
        )


def _holder(row: Mapping[str, Any]) -> str:
    if row["front"]:
        return f"front {row['front'].partition('-')[0]}"
    return f"{row['partition']}, {row['loans']} loans" if row["loans"] else str(row["partition"])


def _ask(method: str, path: str, asked: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
    """The debug port's answer. Ends the command where there is none."""
    settings = Settings.from_environment(process_environment()).debug
    if not settings.tracing_key:
        raise click.ClickException(
            "the debug port shows and resets counters only with DEBUG_TRACING_KEY: set it for "
            "Tollgate and for this command, and start Tollgate again"
        )
    if not settings.port:
        raise click.ClickException("DEBUG_PORT is 0, so nobody knows the port: choose one")
    host = LOOPBACKS.get(settings.host, settings.host)
    address = f"[{host}]:{settings.port}" if ":" in host else f"{host}:{settings.port}"
    request = urllib.request.Request(
        f"http://{address}{path}?{urlencode(asked)}",
        method=method,
        headers={"Authorization": f"Bearer {settings.tracing_key}"},
    )
    try:
        with call_directly(request, ANSWER_WITHIN_S) as answer:
            return _document(answer.read(ANSWER_BYTES_MAX))
    except urllib.error.HTTPError as error:
        return _refusal(error)
    except OSError as error:
        raise click.ClickException(f"nobody answers at {address}: {error}") from None


def _refusal(error: urllib.error.HTTPError) -> Mapping[str, Any]:
    said = error.read(ANSWER_BYTES_MAX)
    if error.headers.get_content_type() == "application/json":
        return _document(said)
    text = said.decode(errors="replace").strip() or f"HTTP status {error.code}"
    raise click.ClickException(text)


def _document(said: bytes) -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(said)
    return document
