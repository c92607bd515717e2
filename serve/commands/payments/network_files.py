"""`tollgate payments disputes`, `frauds` and `settlements`: files of the card network."""

from pathlib import Path
from typing import Any

import click

from tollgate.serve.commands.payments.api_calls import (
    answer,
    fail,
    operator_base,
    operator_key,
    read_settings,
)

# Whoever reads the file says more exactly what is too long.
FILE_BYTES_MAX = 8 * 1024 * 1024
SETTLEMENTS_SHOWN_MAX = 1_000

_file = click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
_network = click.option(
    "--network",
    default="",
    metavar="NAME",
    help="Whose file it is: the same reference of two networks is two.",
)
_dry_run = click.option("--dry-run", is_flag=True, help="Tell what would be booked, and book none.")
_url = click.option(
    "--url",
    default="",
    metavar="URL",
    help="Where the operator's calls are; without it, where PAYMENTS_OPERATOR_HOST and _PORT say.",
)


@click.group()
def disputes() -> None:
    """Disputes of the card network."""


@click.group()
def frauds() -> None:
    """Fraud reports of the card network."""


@click.group()
def settlements() -> None:
    """Settlements of the card network, beside what the books expect."""


@disputes.command("import")
@_file
@_network
@_dry_run
@_url
def import_disputes(file: Path, network: str, dry_run: bool, url: str) -> None:
    """Book the disputes of FILE: CSV with a header, or lines of JSON.

    docs/payments.md, part D (Files of the network), has the columns. The same file again changes
    nothing. It takes the key in PAYMENTS_OPERATOR_KEY_FILE. The exit code is 1 when the file is
    refused, and when a record was not booked.
    """
    _import("disputes", file, network, url, is_dry=dry_run)


@frauds.command("import")
@_file
@_network
@_dry_run
@_url
def import_frauds(file: Path, network: str, dry_run: bool, url: str) -> None:
    """Book the fraud reports of FILE: CSV with a header, or lines of JSON.

    docs/payments.md, part D (Files of the network), has the columns. The same file again changes
    nothing. It takes the key in PAYMENTS_OPERATOR_KEY_FILE. The exit code is 1 when the file is
    refused, and when a record was not booked.
    """
    _import("frauds", file, network, url, is_dry=dry_run)


@settlements.command("import")
@_file
@_network
@_dry_run
@_url
def import_settlements(file: Path, network: str, dry_run: bool, url: str) -> None:
    """Keep the settlements of FILE, and show where they differ from what the books expect.

    CSV with a header, or lines of JSON: docs/payments.md, part D (Files of the network), has the
    columns. No money is moved, and the same file again changes nothing. It takes the key in
    PAYMENTS_OPERATOR_KEY_FILE. The exit code is 1 when the file is refused, and when a record was
    not kept.
    """
    _import("settlements", file, network, url, is_dry=dry_run)


@settlements.command("list")
@click.argument("merchant", metavar="MERCHANT")
@_url
def list_settlements(merchant: str, url: str) -> None:
    """List the newest settlements of the merchant with the id MERCHANT, the newest first.

    It takes the key in PAYMENTS_OPERATOR_KEY_FILE.
    """
    settings = read_settings()
    key, base = operator_key(settings), operator_base(url, settings)
    path = f"/operator/merchants/{merchant}/settlements?limit={SETTLEMENTS_SHOWN_MAX}"
    for each in answer(base, "GET", path, key):
        click.echo(f"{_compared(each)}, with {each['amount']} by {each['reference']}")


def _import(kind: str, file: Path, network: str, url: str, *, is_dry: bool) -> None:
    settings = read_settings()
    body = {"file": _text_of(file), "network": network, "dryRun": is_dry}
    key, base = operator_key(settings), operator_base(url, settings)
    report = answer(base, "POST", f"/operator/{kind}", key, body)["report"]
    for each in report["findings"]:
        told = f"{each['reference']}: {each['problem']}: {each['message']}"
        click.echo(f"{file}:{each['line']}: {told}")
    for each in report["differences"]:
        click.echo(f"{each['merchantId']} {_compared(each)}")
    counts = ", ".join(f"{report[name]} {name}" for name in ("records", "booked", "unchanged"))
    dry = "dry run, nothing was booked: " if is_dry else ""
    click.echo(f"{dry}{counts}, {len(report['findings'])} not matched")
    if report["findings"]:
        raise click.exceptions.Exit(1)


def _compared(day: dict[str, Any]) -> str:
    return (
        f"{day['day']} {day['currency']}: settled {day['settled']}, expected {day['expected']}, "
        f"difference {day['difference']}"
    )


def _text_of(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            raw = opened.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        fail(f"{file}: cannot be read: {error.strerror}")
    if len(raw) > FILE_BYTES_MAX:
        fail(f"{file}: is larger than {FILE_BYTES_MAX} bytes")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        fail(f"{file}: is not UTF-8 at byte {error.start}")
