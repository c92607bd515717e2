"""`tollgate payments …` on the machine of a Tollgate: it finds the API, and works with webhooks and
merchants that wait."""

from pathlib import Path

import httpx

from tests.e2e.payments.tills import CARD, MERCHANT
from tests.support.processes.tollgate import TollgateProcess

# Nobody is there, whatever the network that the tests run in.
TARGET = "https://receiver.invalid/hook"
PAYMENT = {"currency": MERCHANT["currency"], "amount": 1_000, "card": CARD}


def test_webhooks_are_worked_with(tollgate: TollgateProcess, tmp_path: Path) -> None:
    with httpx.Client(base_url=tollgate.url("PORT", "/payments"), timeout=20) as client:
        key = client.post("/apps").raise_for_status().json()["app"]["key"]
        client.auth = httpx.BasicAuth("", key)
        merchant = client.post("/merchants", json=MERCHANT).raise_for_status().json()["merchant"]
    file = tmp_path / "app.key"
    file.touch(mode=0o600)
    file.write_text(key)

    def typed(command: str, *words: str, code: int = 0) -> str:
        arguments = (command, merchant["id"], *words, "--key-file", str(file))
        result = tollgate.command("payments", "webhooks", *arguments)
        assert result.returncode == code, result
        return result.stdout

    webhook = typed("add", TARGET).split()[1]
    said = typed("test", webhook, code=1)
    assert "  webhook.test  failed: " in said
    assert said in typed("log", webhook)
    assert "whsec_" in typed("rotate", webhook)
    typed("edit", webhook, "--type", "transaction.captured", "--disable")
    assert "  enabled        no: its events wait" in typed("list")
    assert typed("retry", webhook).endswith(" queued\n")
    typed("remove", webhook)


def test_a_live_merchant_is_approved_as_it_was_read(tollgate: TollgateProcess) -> None:
    with httpx.Client(base_url=tollgate.url("PORT", "/payments"), timeout=20) as client:
        key = client.post("/apps").raise_for_status().json()["app"]["key"]
        client.auth = httpx.BasicAuth("", key)
        live = client.post("/merchants", json=MERCHANT | {"test": False}).raise_for_status()
        path = f"/merchants/{live.json()['merchant']['id']}"
        listed = tollgate.command("payments", "waiting").stdout.splitlines()
        approve = listed[listed.index(path.rpartition("/")[2]) :]
        words = next(line for line in approve if line.startswith("  approve")).split()[2:]
        client.put(path, json={"descriptor": "Bank"}).raise_for_status()
        refused = tollgate.command(*words)
        assert refused.returncode == 1
        assert 'and is now "Bank"; look at the merchant again' in refused.stderr
        client.put(path, json={"descriptor": MERCHANT["descriptor"]}).raise_for_status()
        assert tollgate.command(*words).returncode == 0
        assert client.get(path).json()["merchant"]["claim"]["canChargeCard"]


def test_a_file_of_the_network_is_booked_once(tollgate: TollgateProcess, tmp_path: Path) -> None:
    with httpx.Client(base_url=tollgate.url("PORT", "/payments"), timeout=20) as client:
        key = client.post("/apps").raise_for_status().json()["app"]["key"]
        client.auth = httpx.BasicAuth("", key)
        merchant = client.post("/merchants", json=MERCHANT).raise_for_status().json()["merchant"]
        paid = client.post("/sandbox/payments", json=PAYMENT | {"key": merchant["key"]})
        transaction = paid.raise_for_status().json()["transaction"]["id"]
        path = f"/transactions/{transaction}"
        client.post(f"{path}/captures", json={"amount": 1_000}).raise_for_status()
        file = tmp_path / "disputes.csv"
        rows = [f"CB-{number},{transaction},10,{MERCHANT['currency']}\n" for number in range(100)]
        file.write_text("reference,transactionId,amount,currency\n" + "".join(rows))
        told = [tollgate.command("payments", "disputes", "import", str(file)) for _ in range(2)]
        assert [each.stdout for each in told] == [
            "100 records, 100 booked, 0 unchanged, 0 not matched\n",
            "100 records, 0 booked, 100 unchanged, 0 not matched\n",
        ]
        found = client.get(path).raise_for_status().json()["transaction"]
        assert found["disputedAmount"] == 1_000
