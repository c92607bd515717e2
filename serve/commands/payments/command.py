"""`tollgate payments`: a demo, test data to start from, and the operator's key."""

import json
from pathlib import Path
from typing import Any, NoReturn

import click
import httpx

from tollgate.serve.commands.payments.demo import Demo, DemoFailed
from tollgate.serve.node.run_record import OPERATOR, running
from tollgate.serve.payments.imports.files import read_import
from tollgate.serve.payments.reference.data_file import DataFileError, read_data_file
from tollgate.serve.payments.reference.tables import load_reference
from tollgate.serve.payments.secrets.operator_key import (
    OperatorKeyError,
    load_operator_key,
    make_operator_key,
)
from tollgate.serve.settings import Settings, process_environment

IMPORT_TIMEOUT_S = 120.0
PREFIX = "/payments"

_url = click.option(
    "--url",
    default="",
    metavar="URL",
    help="Where the payments API is; without it, the one that runs here.",
)


@click.group()
def payments() -> None:
    """Payments: a demo, test data, the operator's key."""


@payments.command()
@_url
def demo(url: str) -> None:
    """Open a test merchant, take a payment, capture and refund, and show every call.

    The exit code is 1 when Tollgate is not running, or a call does not work.
    """
    try:
        Demo(_base(url, _settings()), click.echo).run()
    except DemoFailed as error:
        _fail(str(error))


@payments.command("import")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "--url",
    default="",
    metavar="URL",
    help="Where the operator's calls are; without it, where PAYMENTS_OPERATOR_HOST and _PORT say.",
)
def import_(file: Path, url: str) -> None:
    """Load apps and test merchants with ids and keys of their own from FILE (YAML or JSON).

    serve/payments/imports/files.py describes the format. Importing the same file again changes
    nothing. It takes the key in PAYMENTS_OPERATOR_KEY_FILE. The exit code is 1 when the file is
    refused.
    """
    settings = _settings()
    try:
        root = read_data_file(file)
        read_import(root, load_reference(settings.payments.tables))
    except DataFileError as error:
        _fail(str(error))
    body = {"name": str(file), "file": file.read_text(encoding="utf-8")}
    key, base = _operator_key(settings), _operator_base(url, settings)
    made = _post(base, "/operator/imports", body, key)
    counts = ", ".join(f"{count} {kind}" for kind, count in made["imported"].items())
    click.echo(f"imported: {counts}")


@payments.command("make-operator-key")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
def make_key(file: Path) -> None:
    """Write a new key for the operator's calls (payouts, trial balance, imports) to FILE.

    With PAYMENTS_OPERATOR_KEY_FILE set to it, Tollgate answers these calls, on
    PAYMENTS_OPERATOR_HOST and PAYMENTS_OPERATOR_PORT; without, they are nowhere.
    """
    try:
        make_operator_key(file)
    except OperatorKeyError as error:
        _fail(str(error))
    click.echo(f"{file}: made; set PAYMENTS_OPERATOR_KEY_FILE={file.absolute()} and start Tollgate")


def _settings() -> Settings:
    return Settings.from_environment(process_environment())


def _operator_key(settings: Settings) -> str:
    path = settings.payments.operator_key_file
    if not path:
        _fail("the operator's calls are off: set PAYMENTS_OPERATOR_KEY_FILE, as for `tollgate up`")
    try:
        return load_operator_key(Path(path))
    except OperatorKeyError as error:
        _fail(str(error))


def _operator_base(url: str, settings: Settings) -> str:
    if url:
        return url.rstrip("/")
    record = running(settings.process.data)
    if record is not None and OPERATOR in record.addresses:
        return record.addresses[OPERATOR]
    return f"http://{settings.payments.operator_host}:{settings.payments.operator_port}"


def _base(url: str, settings: Settings) -> str:
    if url:
        return url.rstrip("/")
    record = running(settings.process.data)
    if record is None or "HTTP" not in record.addresses:
        _fail(
            f"Tollgate is not running with the data folder {settings.process.data}: start it with "
            "`tollgate up`, or say where it is with --url"
        )
    port = record.addresses["HTTP"].rpartition(":")[2]
    return f"http://127.0.0.1:{port}{PREFIX}"


def _post(base: str, path: str, body: dict[str, Any], key: str) -> Any:
    try:
        response = httpx.post(
            f"{base}{path}",
            json=body,
            headers={"Accept": "application/json"},
            auth=httpx.BasicAuth("", key),
            timeout=IMPORT_TIMEOUT_S,
        )
        answer = response.json()
    except httpx.HTTPError as error:
        _fail(f"{base}{path}: {' '.join(str(error).split())}")
    except json.JSONDecodeError:
        _fail(f"{base}{path}: is not the payments API: its answer is no JSON")
    if isinstance(answer, list) and not response.is_success:
        _fail("; ".join(f"{each['field']}: {each['message']}" for each in answer))
    if not response.is_success:
        _fail(f"{base}{path}: {response.status_code} {answer.get('message', '')}")
    return answer


def _fail(line: str) -> NoReturn:
    click.echo(f"tollgate: {line}", err=True)
    raise click.exceptions.Exit(1)
