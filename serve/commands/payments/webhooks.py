"""`tollgate payments webhooks`: a merchant's webhooks, with the key of one of its apps.

The key is in a file, or comes by the standard input: what stands on a command line is seen by
everybody on the machine.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from tollgate.serve.commands.payments.api_calls import (
    answer,
    api_base,
    api_url,
    fail,
    read_settings,
)
from tollgate.serve.payments.secrets.keys import KEY_LENGTH_MAX, is_key
from tollgate.serve.payments.secrets.master_secret import SecretFileError, read_secret

PAGE = 1_000
STDIN = "-"

_key_file = click.option(
    "--key-file",
    required=True,
    metavar="FILE",
    help="A file with the key of one of the merchant's apps; - for the standard input.",
)
_merchant = click.argument("merchant", metavar="MERCHANT")
_webhook = click.argument("webhook", metavar="WEBHOOK")
_types = click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    help="A type of the events it gets, such as transaction.captured; may be repeated.",
)


@dataclass(frozen=True, slots=True)
class _Calls:
    """Calls about the webhooks of a merchant. `path`: theirs. `key`: an app's."""

    base: str
    path: str
    key: str

    def make(self, method: str, path: str = "", body: dict[str, Any] | None = None) -> Any:
        """The answer to a call; `path` goes on behind theirs."""
        return answer(self.base, method, f"{self.path}{path}", self.key, body)


def _calls(merchant: str, key_file: str, url: str, webhook: str = "") -> _Calls:
    path = f"/merchants/{quote(merchant, safe='')}/webhooks"
    if webhook:
        path = f"{path}/{quote(webhook, safe='')}"
    return _Calls(api_base(url, read_settings()), path, _key(key_file))


def _key(file: str) -> str:
    name = "the standard input" if file == STDIN else file
    try:
        text = sys.stdin.readline(KEY_LENGTH_MAX + 1) if file == STDIN else read_secret(Path(file))
    except SecretFileError as error:
        fail(str(error))
    if not is_key(key := text.strip()):
        fail(f"{name}: does not hold an app's key")
    return key


@click.group()
def webhooks() -> None:
    """Webhooks of a merchant: add, edit, test, see what was sent, send it again."""


@webhooks.command("list")
@_merchant
@_key_file
@api_url
def list_(merchant: str, key_file: str, url: str) -> None:
    """List the webhooks of the merchant with the id MERCHANT, and how their deliveries fare."""
    calls = _calls(merchant, key_file, url)
    for each in calls.make("GET", f"?limit={PAGE}"):
        status = calls.make("GET", f"/{each['id']}/status")["status"]
        told = {
            "url": each["url"],
            "types": ", ".join(each.get("types", ["all"])),
            "enabled": "yes" if each["enabled"] else "no: its events wait",
            "waiting": f"{status['waiting']} events that failed" if status["waiting"] else "",
            "failing since": status.get("failingSince", ""),
            "next attempt": status.get("nextAttempt", ""),
            "dead letters": str(status["deadLetters"] or ""),
        }
        click.echo(each["id"])
        for name, value in told.items():
            if value:
                click.echo(f"  {name:13}  {value}")


@webhooks.command()
@_merchant
@click.argument("target", metavar="TARGET")
@_types
@_key_file
@api_url
def add(merchant: str, target: str, types: tuple[str, ...], key_file: str, url: str) -> None:
    """Send the events of the merchant with the id MERCHANT to TARGET, an https address.

    The secret that calls are signed with is shown this once.
    """
    body: dict[str, Any] = {"url": target}
    if types:
        body["types"] = list(types)
    _show_secret(_calls(merchant, key_file, url).make("POST", body=body))


@webhooks.command()
@_merchant
@_webhook
@click.option("--target", metavar="TARGET", help="The https address that it goes to.")
@_types
@click.option("--all-types", is_flag=True, help="It gets events of all types.")
@click.option("--enable/--disable", "enabled", default=None, help="While disabled, events wait.")
@_key_file
@api_url
def edit(
    merchant: str,
    webhook: str,
    target: str | None,
    types: tuple[str, ...],
    all_types: bool,
    enabled: bool | None,
    key_file: str,
    url: str,
) -> None:
    """Change the webhook with the id WEBHOOK: what is not named stays."""
    if types and all_types:
        raise click.UsageError("--type and --all-types contradict each other")
    wanted = {
        "url": target,
        "types": list(types) if types or all_types else None,
        "enabled": enabled,
    }
    body = {name: value for name, value in wanted.items() if value is not None}
    if not body:
        raise click.UsageError(
            "say what is to change: --target, --type, --all-types, --enable, --disable"
        )
    _calls(merchant, key_file, url, webhook).make("PUT", body=body)
    click.echo(f"{webhook}: changed")


@webhooks.command()
@_merchant
@_webhook
@_key_file
@api_url
def remove(merchant: str, webhook: str, key_file: str, url: str) -> None:
    """Remove the webhook with the id WEBHOOK, with what waits for it."""
    _calls(merchant, key_file, url, webhook).make("DELETE")
    click.echo(f"{webhook}: removed")


@webhooks.command()
@_merchant
@_webhook
@_key_file
@api_url
def rotate(merchant: str, webhook: str, key_file: str, url: str) -> None:
    """Show a new secret of the webhook with the id WEBHOOK, this once.

    For 24 hours calls are signed with both, the new one and the one before.
    """
    _show_secret(_calls(merchant, key_file, url, webhook).make("POST", "/secrets"))


@webhooks.command()
@_merchant
@_webhook
@_key_file
@api_url
def test(merchant: str, webhook: str, key_file: str, url: str) -> None:
    """Call the webhook with the id WEBHOOK with an event of type webhook.test, now.

    The exit code is 1 when the receiver did not take it.
    """
    delivery = _calls(merchant, key_file, url, webhook).make("POST", "/tests")["delivery"]
    click.echo(_attempt(delivery))
    if not delivery["delivered"]:
        raise click.exceptions.Exit(1)


@webhooks.command()
@_merchant
@_webhook
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, PAGE))
@_key_file
@api_url
def log(merchant: str, webhook: str, limit: int, key_file: str, url: str) -> None:
    """List the last calls of the webhook with the id WEBHOOK, the newest first."""
    calls = _calls(merchant, key_file, url, webhook)
    for each in calls.make("GET", f"/deliveries?limit={limit}"):
        click.echo(_attempt(each))


@webhooks.command()
@_merchant
@_webhook
@click.argument("events", nargs=-1, metavar="[EVENT]...")
@click.option("--dead-letters", is_flag=True, help="What was given up, in place of what waits.")
@_key_file
@api_url
def retry(
    merchant: str,
    webhook: str,
    events: tuple[str, ...],
    dead_letters: bool,
    key_file: str,
    url: str,
) -> None:
    """Try again now what the webhook with the id WEBHOOK has not taken: all, or these events."""
    path = "/replays" if dead_letters else "/retries"
    body = {"events": list(events)} if events else {}
    queued = _calls(merchant, key_file, url, webhook).make("POST", path, body)["queued"]
    click.echo(f"{queued} queued")


def _show_secret(made: dict[str, dict[str, str]]) -> None:
    click.echo(f"webhook  {made['webhook']['id']}")
    click.echo(f"secret   {made['webhook']['secret']}")


def _attempt(delivery: dict[str, Any]) -> str:
    """A line: when, which event, what came of it, and when it is tried again."""
    if delivery["delivered"]:
        result = f"delivered, HTTP status {delivery['status']}"
    else:
        result = f"failed: {delivery['error']}"
    parts = (delivery["created"], delivery["eventId"], delivery["type"], result)
    again = delivery.get("nextAttempt")
    line = "  ".join((*parts, f"{delivery['durationMs']} ms"))
    return f"{line}; again at {again}" if again else line
