"""`tollgate payments`: a demo, test data to start from, what the operator decides, webhooks."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from tollgate.serve.commands.payments.api_calls import (
    answer,
    api_base,
    api_url,
    fail,
    operator_base,
    operator_key,
    read_settings,
)
from tollgate.serve.commands.payments.demo import Demo, DemoFailed
from tollgate.serve.commands.payments.link import link
from tollgate.serve.commands.payments.network_files import disputes, frauds, settlements
from tollgate.serve.commands.payments.webhooks import webhooks
from tollgate.serve.payments.reference.data_file import DataFileError, read_data_file
from tollgate.serve.payments.reference.tables import load_reference
from tollgate.serve.payments.secrets.key_files import make_operator_key
from tollgate.serve.payments.secrets.master_secret import SecretFileError
from tollgate.serve.payments.secrets.vault_keys import rotate_vault_key

PAGE = 1_000

_operator_url = click.option(
    "--url",
    default="",
    metavar="URL",
    help="Where the operator's calls are; without it, where PAYMENTS_OPERATOR_HOST and _PORT say.",
)


@click.group()
def payments() -> None:
    """Payments: a demo, links, test data, approvals, files of the network, recovery, webhooks."""


payments.add_command(link)
payments.add_command(webhooks)
payments.add_command(disputes)
payments.add_command(frauds)
payments.add_command(settlements)


@payments.command()
@api_url
def demo(url: str) -> None:
    """Open a test merchant, take a payment, capture and refund, and show every call.

    The exit code is 1 when Tollgate is not running, or a call does not work.
    """
    try:
        Demo(api_base(url, read_settings()), click.echo).run()
    except DemoFailed as error:
        fail(str(error))


@payments.command("import")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@_operator_url
def import_(file: Path, url: str) -> None:
    """Load apps and test merchants with ids and keys of their own from FILE (YAML or JSON).

    serve/payments/imports/files.py describes the format. Importing the same file again changes
    nothing. It takes the key in PAYMENTS_OPERATOR_KEY_FILE. The exit code is 1 when the file is
    refused.
    """
    # Imported here: it knows the API's bodies, which no other command needs.
    from tollgate.serve.payments.imports.files import read_import

    settings = read_settings()
    try:
        root = read_data_file(file)
        read_import(root, load_reference(settings.payments.tables))
    except DataFileError as error:
        fail(str(error))
    body = {"name": str(file), "file": file.read_text(encoding="utf-8")}
    key, base = operator_key(settings), operator_base(url, settings)
    made = answer(base, "POST", "/operator/imports", key, body)
    counts = ", ".join(f"{count} {kind}" for kind, count in made["imported"].items())
    click.echo(f"imported: {counts}")


@payments.command()
@_operator_url
def waiting(url: str) -> None:
    """List the live merchants that wait for approval, the newest first.

    The last line of each is the command that approves it as it is shown. It takes the key in
    PAYMENTS_OPERATOR_KEY_FILE.
    """
    settings = read_settings()
    key, base = operator_key(settings), operator_base(url, settings)
    before = ""
    while True:
        path = f"/operator/waiting-merchants?limit={PAGE}&before={before}"
        found = answer(base, "GET", path, key)
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
    settings = read_settings()
    key, base = operator_key(settings), operator_base(url, settings)
    path = f"/operator/merchants/{quote(merchant, safe='')}/approval"
    answer(base, "PUT", path, key, {"version": version})
    click.echo(f"{merchant}: approved")


@payments.command()
@click.argument("merchant", metavar="MERCHANT")
@_operator_url
def reject(merchant: str, url: str) -> None:
    """Take the live merchant with the id MERCHANT off the list of those that wait.

    It does not trade, unless it is approved after all. It takes the key in
    PAYMENTS_OPERATOR_KEY_FILE. The exit code is 1 when it was approved already, or is not there.
    """
    settings = read_settings()
    key, base = operator_key(settings), operator_base(url, settings)
    answer(base, "PUT", f"/operator/merchants/{quote(merchant, safe='')}/rejection", key)
    click.echo(f"{merchant}: rejected")


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
    settings = read_settings()
    key, base = operator_key(settings), operator_base(url, settings)
    answer(base, "PUT", f"/operator/merchants/{quote(merchant, safe='')}", key, body)
    click.echo(f"{merchant}: changed")


@payments.command()
@click.argument("merchant", metavar="MERCHANT")
@click.option("--rate-ppm", required=True, type=int, metavar="N", help="Of what is captured.")
@click.option("--flat", required=True, type=int, metavar="AMOUNT", help="Of each capture.")
@click.option("--dispute", required=True, type=int, metavar="AMOUNT", help="Of each dispute.")
@_operator_url
def price(merchant: str, rate_ppm: int, flat: int, dispute: int, url: str) -> None:
    """Set the fees of the merchant with the id MERCHANT, from the next capture on.

    The rate is in parts per million (13500 is 1.35 %), amounts in minor units of the funding
    currency. It takes the key in PAYMENTS_OPERATOR_KEY_FILE. The exit code is 1 when nothing was
    changed.
    """
    settings = read_settings()
    key, base = operator_key(settings), operator_base(url, settings)
    path = f"/operator/merchants/{quote(merchant, safe='')}/pricing"
    answer(base, "PUT", path, key, {"ratePpm": rate_ppm, "flat": flat, "dispute": dispute})
    click.echo(f"{merchant}: priced")


@payments.command("recover-app")
@click.argument("app", metavar="APP")
@_operator_url
def recover_app(app: str, url: str) -> None:
    """End all keys of the app with the id APP, and show a new key and a new recovery code.

    For an owner who has neither a key nor the recovery code any more: make sure that it is the
    owner who asks. It takes the key in PAYMENTS_OPERATOR_KEY_FILE.
    """
    settings = read_settings()
    key, base = operator_key(settings), operator_base(url, settings)
    made = answer(base, "POST", f"/operator/apps/{quote(app, safe='')}/keys", key)["app"]
    click.echo(f"key            {made['key']}")
    click.echo(f"recovery code  {made['recoveryCode']}")


@payments.command("rotate-vault-key")
def rotate_key() -> None:
    """Put a new key in the file that PAYMENTS_VAULT_KEY_FILE names, or the data folder has.

    Cards are sealed with it from now on; tokens of the older two keys still open. Running processes
    take it up within seconds. Every node needs the same file.
    """
    settings = read_settings()
    file = settings.payments.vault_path(settings.process.data)
    try:
        count = rotate_vault_key(file)
    except SecretFileError as error:
        fail(str(error))
    click.echo(f"{file}: holds {count} keys, the newest of now")


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
        fail(str(error))
    click.echo(f"{file}: made; set PAYMENTS_OPERATOR_KEY_FILE={file.absolute()} and start Tollgate")
