"""`tollgate payments webhooks …` against the API on a real socket, in the test's own process."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from click.testing import CliRunner, Result

from tests.contract.payments.test_commands import served
from tests.support.payments.api import ABSENT, PaymentsApi
from tollgate.serve.commands.payments.command import payments

TARGET = "https://example.com/broken"


def ran(api: PaymentsApi, data: Path, words: Sequence[str], said: str = "") -> Result:
    """A command of webhooks; `said`: what comes by its standard input."""
    results: list[Result] = []

    async def use(url: str) -> None:
        arguments = ["webhooks", *words, "--url", url]
        results.append(await asyncio.to_thread(CliRunner().invoke, payments, arguments, said))

    served(api, data, use)
    return results[0]


def test_a_webhook_is_worked_with(api: PaymentsApi, tmp_path: Path) -> None:
    shop = api.new_app()
    merchant = api.new_merchant(shop)["id"]

    def typed(command: str, *words: str, code: int = 0) -> str:
        arguments = (command, merchant, *words, "--key-file", "-")
        result = ran(api, tmp_path, arguments, f"{shop.key}\n")
        assert (result.exit_code, result.stderr) == (code, ""), result.output
        return result.stdout

    first = typed("add", TARGET, "--type", "transaction.captured", "--type", "app.added").split()
    assert first[0::2] == ["webhook", "secret"]
    webhook = first[1]
    second = typed("rotate", webhook).split()
    assert second[1] == webhook
    assert second[3].startswith("whsec_")
    assert second[3] != first[3]
    assert typed("list").splitlines() == [
        webhook,
        f"  url            {TARGET}",
        "  types          app.added, transaction.captured",
        "  enabled        yes",
    ]
    (line,) = typed("test", webhook, code=1).splitlines()
    assert "  webhook.test  failed: HTTP status 500  " in line
    typed("edit", webhook, "--target", "https://example.com/hook", "--all-types", "--disable")
    assert typed("list").splitlines()[1:] == [
        "  url            https://example.com/hook",
        "  types          all",
        "  enabled        no: its events wait",
    ]
    api.clock.advance(1)
    assert "  webhook.test  delivered, HTTP status 200  " in typed("test", webhook)
    log = typed("log", webhook).splitlines()
    assert ["delivered" in each for each in log] == [True, False]
    assert typed("log", webhook, "--limit", "1").splitlines() == log[:1]
    assert typed("retry", webhook) == typed("retry", webhook, "--dead-letters") == "0 queued\n"
    assert typed("retry", webhook, ABSENT) == "0 queued\n"
    assert typed("remove", webhook) == f"{webhook}: removed\n"
    assert typed("list") == ""


def test_it_takes_the_key_of_an_app(api: PaymentsApi, tmp_path: Path) -> None:
    shop = api.new_app()
    merchant = api.new_merchant(shop)["id"]
    file = tmp_path / "app.key"

    def said(command: str, *words: str) -> str:
        result = ran(api, tmp_path, (command, merchant, *words, "--key-file", str(file)))
        assert result.exit_code != 0
        return result.stderr

    assert "No such file" in said("list")
    file.write_text("two words\n")
    assert "others may read it: chmod 600" in said("list")
    file.chmod(0o600)
    assert "does not hold an app's key" in said("list")
    file.write_text(f"{api.new_app().key}\n")
    assert ": 403 your app has no access" in said("list")
    file.write_text(f"{shop.key}\n")
    assert "404 there is no webhook" in said("test", ABSENT)
    assert "types: must hold types of events" in said("edit", ABSENT, "--type", "app.add")
    assert "say what is to change" in said("edit", ABSENT)
    assert "contradict each other" in said("edit", ABSENT, "--type", "app.added", "--all-types")
