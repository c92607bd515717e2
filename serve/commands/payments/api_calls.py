"""Calls of the payments API from a command line: where it is, with which key, and what is said when
one does not work."""

import json
from pathlib import Path
from typing import Any, NoReturn

import click
import httpx

from tollgate.serve.node.run_record import OPERATOR, running
from tollgate.serve.payments.secrets.key_files import load_operator_key
from tollgate.serve.payments.secrets.master_secret import SecretFileError
from tollgate.serve.settings import Settings, process_environment

ANSWER_WITHIN_S = 120.0
PREFIX = "/payments"
PAGE = "/pay"

api_url = click.option(
    "--url",
    default="",
    metavar="URL",
    help="Where the payments API is; without it, the one that runs here.",
)


def read_settings() -> Settings:
    """Of the environment, as for `tollgate up`."""
    return Settings.from_environment(process_environment())


def operator_key(settings: Settings) -> str:
    """The operator's key; without one the command ends."""
    path = settings.payments.operator_key_file
    if not path:
        fail("the operator's calls are off: set PAYMENTS_OPERATOR_KEY_FILE, as for `tollgate up`")
    try:
        return load_operator_key(Path(path))
    except SecretFileError as error:
        fail(str(error))


def operator_base(url: str, settings: Settings) -> str:
    """The address of the operator's calls, without a slash at the end."""
    if url:
        return url.rstrip("/")
    record = running(settings.process.data)
    if record is not None and OPERATOR in record.addresses:
        return record.addresses[OPERATOR]
    return f"http://{settings.payments.operator_host}:{settings.payments.operator_port}"


def api_base(url: str, settings: Settings) -> str:
    """The address of the API, without a slash at the end; with none the command ends."""
    return url.rstrip("/") if url else f"{_running_here(settings)}{PREFIX}"


def page_base(url: str, settings: Settings) -> str:
    """The address of the payment page, without a slash at the end; with none the command ends."""
    return url.rstrip("/") if url else f"{_running_here(settings)}{PAGE}"


def _running_here(settings: Settings) -> str:
    record = running(settings.process.data)
    if record is None or "HTTP" not in record.addresses:
        fail(
            f"Tollgate is not running with the data folder {settings.process.data}: start it with "
            "`tollgate up`, or say where it is with --url"
        )
    port = record.addresses["HTTP"].rpartition(":")[2]
    return f"http://127.0.0.1:{port}"


def answer(base: str, method: str, path: str, key: str, body: dict[str, Any] | None = None) -> Any:
    """The answer to a call; None when it gives nothing. One that is refused ends the command."""
    try:
        response = httpx.request(
            method,
            f"{base}{path}",
            json=body,
            headers={"Accept": "application/json"},
            auth=httpx.BasicAuth("", key),
            timeout=ANSWER_WITHIN_S,
        )
        found = response.json() if response.content else None
    except httpx.HTTPError as error:
        fail(f"{base}{path}: {' '.join(str(error).split())}")
    except json.JSONDecodeError:
        fail(f"{base}{path}: is not the payments API: its answer is no JSON")
    if isinstance(found, list) and not response.is_success:
        fail("; ".join(f"{each['field']}: {each['message']}" for each in found))
    if not response.is_success:
        why = found.get("message", "") if isinstance(found, dict) else response.reason_phrase
        fail(f"{base}{path}: {response.status_code} {why}")
    return found


def fail(line: str) -> NoReturn:
    """Ends the command with a line on the standard error, and 1."""
    click.echo(f"tollgate: {line}", err=True)
    raise click.exceptions.Exit(1)
