"""`tollgate payments`: a demo, test data to start from, and what the operator decides."""

import json
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

import click
import httpx

from tollgate.serve.commands.payments.demo import Demo, DemoFailed
from tollgate.serve.node.run_record import OPERATOR, running
from tollgate.serve.payments.imports.files import read_import
from tollgate.serve.payments.reference.data_file import DataFileError, read_data_file
from tollgate.serve.payments.reference.tables import load_reference
from tollgate.serve.payments.secrets.key_files import load_operator_key, make_operator_key
from tollgate.serve.payments.secrets.master_secret import SecretFileError
from tollgate.serve.settings import Settings, process_environment

IMPORT_TIMEOUT_S = 120.0
PAGE = 1_000
PREFIX = "/payments"

_url = click.option(
    "--url",
    default="",
    metavar="URL",
    help="Where the payments API is; without it, the one that runs here.",
)


_operator_url = click.option(
    "--url",
    default="",
    metavar="URL",
    help="Where the operator's calls are; without it, where PAYMENTS_OPERATOR_HOST and _PORT say.",
)


@click.group()
def payments() -> None:
    """Payments: a demo, test data, live merchants' approval, apps' recovery."""


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
@_operator_url
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
    made = _answer(base, "POST", "/operator/imports", key, body)
    counts = ", ".join(f"{count} {kind}" for kind, count in made["imported"].items())
    click.echo(f"imported: {counts}")


@payments.command()
@_operator_url
def waiting(url: str) -> None:
    """List the live merchants that wait for approval, the newest first.

    The last line of each is the command that approves it as it is shown. It takes the key in
    PAYMENTS_OPERATOR_KEY_FILE.
    """
    settings = _settings()
    key, base = _operator_key(settings), _operator_base(url, settings)
    before = ""
    while True:
        path = f"/operator/waiting-merchants?limit={PAGE}&before={before}"
        found = _answer(base, "GET", path, key)
        for each in found:
            click.echo(_waiting_merchant(each))
        if len(found) < PAGE:
            return
        before = found[-1]["id"]


def _waiting_merchant(merchant: dict[str, Any]) -> str:
    company, bank = merchant["company"], merchant["bank"]
    told = {
        "opened": merchant["created"],
        "name": merchant.get("name", ""),
        "email": merchant["email"],
        "descriptor": merchant["descriptor"],
        "website": merchant["website"],
        "currency": merchant["currency"],
        "company": f"{company['country']} {company.get('number', '')}".rstrip(),
        "iban": bank.get("iban", ""),
        "approve": f"tollgate payments approve {merchant['id']} {merchant['version']}",
    }
    lines = [f"  {name:10}  {value}" for name, value in told.items() if value]
    return "\n".join((merchant["id"], *lines))


@payments.command()
@click.argument("merchant", metavar="MERCHANT")
@click.argument("version", metavar="VERSION")
@_operator_url
def approve(merchant: str, version: str, url: str) -> None:
    """Let the live merchant with the id MERCHANT trade, for good.

    VERSION is the one that `tollgate payments waiting` shows: of what you have read. If the
    merchant has been changed since, nothing is approved. It takes the key in
    PAYMENTS_OPERATOR_KEY_FILE. The exit code is 1 when nothing was approved.
    """
    settings = _settings()
    key, base = _operator_key(settings), _operator_base(url, settings)
    path = f"/operator/merchants/{quote(merchant, safe='')}/approval"
    _answer(base, "PUT", path, key, {"version": version})
    click.echo(f"{merchant}: approved")


@payments.command("change-merchant")
@click.argument("merchant", metavar="MERCHANT")
@click.option("--name", metavar="TEXT", help="The new name; empty: none.")
@click.option("--email", metavar="ADDRESS", help="The new address.")
@click.option("--descriptor", metavar="TEXT", help="What cardholders read on their statements.")
@_operator_url
def change_merchant(merchant: str, url: str, **changes: str | None) -> None:
    """Change the name, email or descriptor of the merchant with the id MERCHANT.

    Once a live merchant is approved, only this changes them. It takes the key in
    PAYMENTS_OPERATOR_KEY_FILE. The exit code is 1 when nothing was changed.
    """
    body = {name: value for name, value in changes.items() if value is not None}
    if not body:
        raise click.UsageError("say what is to change: --name, --email, --descriptor")
    settings = _settings()
    key, base = _operator_key(settings), _operator_base(url, settings)
    _answer(base, "PUT", f"/operator/merchants/{quote(merchant, safe='')}", key, body)
    click.echo(f"{merchant}: changed")


@payments.command("recover-app")
@click.argument("app", metavar="APP")
@_operator_url
def recover_app(app: str, url: str) -> None:
    """End all keys of the app with the id APP, and show a new key and a new recovery code.

    For an owner who has neither a key nor the recovery code any more: make sure that it is the
    owner who asks. It takes the key in PAYMENTS_OPERATOR_KEY_FILE.
    """
    settings = _settings()
    key, base = _operator_key(settings), _operator_base(url, settings)
    made = _answer(base, "POST", f"/operator/apps/{quote(app, safe='')}/keys", key)["app"]
    click.echo(f"key            {made['key']}")
    click.echo(f"recovery code  {made['recoveryCode']}")


@payments.command("make-operator-key")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
def make_key(file: Path) -> None:
    """Write a new key for the operator's calls (approvals, payouts, imports and more) to FILE.

    With PAYMENTS_OPERATOR_KEY_FILE set to it, Tollgate answers these calls, on
    PAYMENTS_OPERATOR_HOST and PAYMENTS_OPERATOR_PORT; without, they are nowhere.
    """
    try:
        make_operator_key(file)
    except SecretFileError as error:
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
    except SecretFileError as error:
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


def _answer(base: str, method: str, path: str, key: str, body: dict[str, Any] | None = None) -> Any:
    """The answer to a call of the operator's; None when it gives nothing."""
    try:
        response = httpx.request(
            method,
            f"{base}{path}",
            json=body,
            headers={"Accept": "application/json"},
            auth=httpx.BasicAuth("", key),
            timeout=IMPORT_TIMEOUT_S,
        )
        answer = response.json() if response.content else None
    except httpx.HTTPError as error:
        _fail(f"{base}{path}: {' '.join(str(error).split())}")
    except json.JSONDecodeError:
        _fail(f"{base}{path}: is not the payments API: its answer is no JSON")
    if isinstance(answer, list) and not response.is_success:
        _fail("; ".join(f"{each['field']}: {each['message']}" for each in answer))
    if not response.is_success:
        why = answer.get("message", "") if isinstance(answer, dict) else response.reason_phrase
        _fail(f"{base}{path}: {response.status_code} {why}")
    return answer


def _fail(line: str) -> NoReturn:
    click.echo(f"tollgate: {line}", err=True)
    raise click.exceptions.Exit(1)
