"""`tollgate payments …` as people type it, against the API on a real socket."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import uvicorn

from tests.support.payments.api import ABSENT, PaymentsApi, done, lines_of
from tests.support.processes.forked_command import run_forked
from tests.support.waiting import until
from tollgate.serve.payments.api.asgi import Dispatcher, OperatorKey
from tollgate.serve.payments.secrets.key_files import load_operator_key, make_operator_key
from tollgate.serve.payments.secrets.keys import KeyDigests

FIXTURES = Path(__file__).parents[2] / "e2e/payments/paylike/fixtures.yaml"
ROOT = Path(__file__).parents[3]
KEY_FILE = "operator.key"
Result = CompletedProcess[str]


def tollgate(data: Path, *arguments: str) -> Result:
    environment = {
        "PATH": "/usr/bin:/bin",
        "TOLLGATE_DATA": str(data),
        "PAYMENTS_OPERATOR_KEY_FILE": str(data / KEY_FILE),
    }
    return run_forked(("payments", *arguments), environment, ROOT)


def served(api: PaymentsApi, data: Path, use: Callable[[str], Awaitable[None]]) -> None:
    """Uses the API and the operator's calls, with his key of this data folder, on a free port of
    loopback."""
    file = data / KEY_FILE
    if not file.exists():
        make_operator_key(file)
    stored = KeyDigests(api.secret).stored(load_operator_key(file))
    door, operators = (
        Dispatcher(api.context),
        Dispatcher(api.context, OperatorKey(stored.digest, stored.last4)),
    )

    async def mounted(scope: Any, receive: Any, send: Any) -> None:
        answer = operators if "/operator/" in scope["path"] else door
        await answer({**scope, "root_path": "/payments"}, receive, send)

    async def run() -> None:
        config = uvicorn.Config(mounted, "127.0.0.1", 0, lifespan="off", log_level="warning")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        try:
            await asyncio.to_thread(until, lambda: server.started or serving.done(), "it serves")
            port = server.servers[0].sockets[0].getsockname()[1]
            await use(f"http://127.0.0.1:{port}/payments")
        finally:
            server.should_exit = True
            await serving

    api.runner.run(run())


def ran(api: PaymentsApi, data: Path, *arguments: str) -> Result:
    """A command against the API; its `--url` is added."""
    results: list[Result] = []

    async def use(url: str) -> None:
        command = asyncio.to_thread(tollgate, data, *arguments, "--url", f"{url}/")
        results.append(await command)

    served(api, data, use)
    return results[0]


def one_line(result: Result) -> str:
    assert result.returncode == 1, result
    assert result.stderr.startswith("tollgate: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_the_demo_shows_every_call(api: PaymentsApi, tmp_path: Path) -> None:
    result = ran(api, tmp_path, "demo")
    assert result.returncode == 0, result
    lines = result.stdout.splitlines()
    calls = [line for line in lines if line.startswith(("> POST", "> GET"))]
    assert [call.split("/")[0] for call in calls] == ["> POST "] * 5 + ["> GET "]
    answers = [line for line in lines if line.startswith("< 2")]
    assert answers == ["< 201 Created"] * 5 + ["< 200 OK"]
    assert '"refundedAmount": 300' in result.stdout
    assert '"capture": true' in result.stdout
    assert result.stdout.rstrip().splitlines()[-1].startswith("Go on with: curl -u :sk_")


def test_the_demo_ends_with_a_call_that_does_not_work(api: PaymentsApi, tmp_path: Path) -> None:
    api.clock.advance(41 * 366 * 86_400)  # (after which the card of the demo has expired)
    result = ran(api, tmp_path, "demo")
    assert "/sandbox/payments: answered 400" in one_line(result)
    assert "< 400 Bad Request" in result.stdout
    assert '"code": 6' in result.stdout


def test_the_demo_needs_a_tollgate(tmp_path: Path) -> None:
    assert "is not running with the data folder" in one_line(tollgate(tmp_path, "demo"))
    nobody = one_line(tollgate(tmp_path, "demo", "--url", "http://127.0.0.1:9/payments"))
    assert "http://127.0.0.1:9/payments/apps: " in nobody


def test_an_import_is_there_and_can_be_repeated(api: PaymentsApi, tmp_path: Path) -> None:
    for _ in range(2):
        result = ran(api, tmp_path, "import", str(FIXTURES))
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout == (
            "imported: 1 apps, 2 merchants, 3 transactions, 5 lines, 1 cards\n"
        )
    key = "4ff7de37-dddf-4e51-8cc9-48b61a102923"
    path = "/merchants/55006bdfe0308c4cbfdbd0e1/lines"
    assert len(lines_of(api.call("GET", path, key, params={"limit": 10}))) == 5


def test_a_file_is_checked_before_anybody_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text("version: 1\napps:\n  - {id: x, key: k}\n")
    said = one_line(tollgate(tmp_path, "import", str(file), "--url", "http://127.0.0.1:9"))
    assert said == (f"tollgate: {file}:3: apps[0].id: must be an id: 24 digits of 0-9 and a-f\n")
    missing = one_line(tollgate(tmp_path, "import", str(tmp_path / "none.yaml")))
    assert "none.yaml: cannot be read: No such file" in missing


def test_what_the_books_refuse_is_said(api: PaymentsApi, tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(FIXTURES.read_text(encoding="utf-8").replace("refund: 200", "refund: 2000"))
    assert "tollgate: amount: 2000 is more than" in one_line(
        ran(api, tmp_path, "import", str(file))
    )


def test_an_import_takes_the_operator_s_key(api: PaymentsApi, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()
        make_operator_key(folder / KEY_FILE)
    results: list[Result] = []

    async def use(url: str) -> None:
        command = ("import", str(FIXTURES), "--url", url)
        results.append(await asyncio.to_thread(tollgate, theirs, *command))

    served(api, ours, use)
    assert "/operator/imports: 401" in one_line(results[0])


def test_a_key_is_not_made_up(tmp_path: Path) -> None:
    said = one_line(tollgate(tmp_path, "import", str(FIXTURES), "--url", "http://127.0.0.1:9"))
    assert "there is no operator's key: make it with" in said
    assert list(tmp_path.iterdir()) == []


def test_a_new_key_takes_no_other_file_s_place(tmp_path: Path) -> None:
    file = tmp_path / KEY_FILE
    made = tollgate(tmp_path, "make-operator-key", str(file))
    assert (made.returncode, made.stderr) == (0, "")
    assert f"PAYMENTS_OPERATOR_KEY_FILE={file}" in made.stdout
    assert (file.stat().st_mode & 0o777) == 0o600
    key = load_operator_key(file)
    assert key.startswith("sk_")
    assert "is there already" in one_line(tollgate(tmp_path, "make-operator-key", str(file)))
    assert load_operator_key(file) == key


@pytest.mark.parametrize(
    ("mode", "text", "why"),
    [
        (0o644, None, "others may read it: chmod 600"),
        (0o600, "sk_short\n", "does not hold an operator's key"),
        (0o600, "", "does not hold an operator's key"),
    ],
)
def test_a_key_file_that_cannot_be_used_is_said(
    tmp_path: Path, mode: int, text: str | None, why: str
) -> None:
    file = tmp_path / KEY_FILE
    make_operator_key(file)
    if text is not None:
        file.write_text(text)
    file.chmod(mode)
    said = one_line(tollgate(tmp_path, "import", str(FIXTURES), "--url", "http://127.0.0.1:9"))
    assert why in said


@pytest.mark.parametrize("command", ["demo", "import", "make-operator-key"])
def test_every_command_has_a_help_text(tmp_path: Path, command: str) -> None:
    result = tollgate(tmp_path, command, "--help")
    assert result.returncode == 0
    assert "Usage:" in result.stdout


def test_live_merchants_are_listed_and_approved(api: PaymentsApi, tmp_path: Path) -> None:
    shop = api.new_app()
    first = api.new_merchant(shop, test=False)["id"]
    second = api.new_merchant(shop, test=False, name="Tea")["id"]
    listed = ran(api, tmp_path, "waiting").stdout
    read = {each["id"]: each["version"] for each in api.waiting().values()}
    told = {
        "opened": "2026-01-01T00:00:00.000Z",
        "name": "Tea",
        "email": "shop@example.com",
        "descriptor": "Coffee & Cake",
        "website": "https://example.com",
        "currency": "DKK",
        "company": "DK",
        "approve": f"tollgate payments approve {second} {read[second]}",
    }
    lines = [second, *(f"  {name:10}  {value}" for name, value in told.items()), first]
    assert listed.splitlines()[: len(lines)] == lines
    done(api.call("PUT", f"/merchants/{first}", shop, json={"descriptor": "Tea"}))
    said = one_line(ran(api, tmp_path, "approve", first, read[first]))
    assert 'the descriptor was "Coffee & Cake" and is now "Tea"; look at the merchant again' in said
    approved = ran(api, tmp_path, "approve", first, api.waiting()[first]["version"])
    assert (approved.returncode, approved.stdout) == (0, f"{first}: approved\n")
    assert list(api.waiting()) == [second]
    rejected = ran(api, tmp_path, "reject", second)
    assert (rejected.returncode, rejected.stdout) == (0, f"{second}: rejected\n")
    assert api.waiting() == {}
    changed = ran(api, tmp_path, "change-merchant", first, "--name", "Tea", "--email", "t@tea.dk")
    assert (changed.returncode, changed.stdout) == (0, f"{first}: changed\n")
    found = done(api.call("GET", f"/merchants/{first}", shop))["merchant"]
    assert (found["name"], found["email"], found["descriptor"]) == ("Tea", "t@tea.dk", "Tea")


def test_a_change_says_what_is_to_change(tmp_path: Path) -> None:
    result = tollgate(tmp_path, "change-merchant", ABSENT)
    assert result.returncode == 2
    assert "say what is to change: --name, --email, --descriptor" in result.stderr


def test_an_app_is_recovered(api: PaymentsApi, tmp_path: Path) -> None:
    shop = api.new_app()
    result = ran(api, tmp_path, "recover-app", shop.id)
    assert result.returncode == 0, result
    said = dict(line.rsplit(maxsplit=1) for line in result.stdout.splitlines())
    assert api.call("GET", "/me", said["key"]).status_code == 200
    assert api.call("GET", "/me", shop).status_code == 401
    path = f"/apps/{shop.id}/recoveries"
    response = api.call("POST", path, json={"recoveryCode": said["recovery code"]})
    assert response.status_code == 201
    assert "404 there is no app" in one_line(ran(api, tmp_path, "recover-app", "f" * 24))


def test_a_file_of_the_network_is_told_line_by_line(api: PaymentsApi, tmp_path: Path) -> None:
    shop = api.new_app()
    merchant = api.new_merchant(shop)
    paid = api.pay(merchant, 1_000)
    api.act(shop, paid, "captures", amount=1_000)
    file = tmp_path / "disputes.csv"
    header = "reference,transactionId,amount,currency\n"
    file.write_text(f"{header}CB-1,{paid},400,DKK\nCB-2,{ABSENT},1,DKK\n")
    arguments = ("disputes", "import", str(file), "--network", "acme")
    for counts in ("dry run, nothing was booked: 2 records, 1 booked, 0 unchanged", "1 booked"):
        dry = ("--dry-run",) if counts.startswith("dry") else ()
        result = ran(api, tmp_path, *arguments, *dry)
        assert (result.returncode, result.stderr) == (1, ""), result
        finding, last = result.stdout.splitlines()
        told = f"{file}:3: CB-2: unknown transaction: there is no transaction {ABSENT}"
        assert finding == told
        assert counts in last
    file.write_text(f"{header}CB-1,{paid},400,DKK\n")
    result = ran(api, tmp_path, *arguments)
    assert (result.returncode, result.stdout) == (
        0,
        "1 records, 0 booked, 1 unchanged, 0 not matched\n",
    )
    file.write_text("reference;status\nCB-1;won\n")
    assert f"{file}" not in one_line(ran(api, tmp_path, *arguments))
    assert "cannot be read" in one_line(ran(api, tmp_path, "frauds", "import", "/no/such/file"))


def test_settlements_are_shown_with_what_the_books_expect(api: PaymentsApi, tmp_path: Path) -> None:
    merchant = api.new_merchant(api.new_app())
    api.clock.advance(86_400)
    file = tmp_path / "paid.jsonl"
    file.write_text(
        f'{{"reference":"S-1","merchantId":"{merchant["id"]}","day":"2026-01-01",'
        '"currency":"DKK","amount":700}\n'
    )
    result = ran(api, tmp_path, "settlements", "import", str(file))
    compared = "2026-01-01 DKK: settled 700, expected 0, difference 700"
    assert result.returncode == 0, result
    assert result.stdout.splitlines()[0] == f"{merchant['id']} {compared}"
    result = ran(api, tmp_path, "settlements", "list", merchant["id"])
    assert result.stdout == f"{compared}, with 700 by S-1\n"


def test_the_operator_prices_a_merchant(api: PaymentsApi, tmp_path: Path) -> None:
    shop = api.new_app()
    merchant = api.new_merchant(shop)
    here = merchant["id"]
    fees = ("--rate-ppm", "20000", "--flat", "7", "--dispute", "99")
    result = ran(api, tmp_path, "price", here, *fees)
    assert (result.returncode, result.stdout) == (0, f"{here}: priced\n")
    paid = api.pay(merchant, 10_000)
    assert api.act(shop, paid, "captures", amount=10_000)["trail"][0]["fee"] == {
        "flat": 7,
        "rate": 200,
    }
    (priced,) = [
        each
        for each in api.listed(f"/merchants/{here}/audit", shop)
        if each["type"] == "merchant.priced"
    ]
    assert priced["appId"] == "operator"
    assert f"/{ABSENT}/pricing: 404" in one_line(ran(api, tmp_path, "price", ABSENT, *fees))


def test_a_payment_link_is_printed_with_its_code(tmp_path: Path) -> None:
    words = ("link", "key-1", "--url", "https://pay.example/pay/")
    flags = ("--test", "--recurring", "--svg", str(tmp_path / "code.svg"))
    made = tollgate(tmp_path, *words, "--currency", "EUR", "--value", "12.5", *flags)
    link = "https://pay.example/pay/?key=key-1&test=1&recurring=y&currency=EUR&value=12.5"
    assert (made.returncode, made.stdout) == (0, f"{link}\n"), made.stderr
    assert link.replace("&", "&amp;") in (tmp_path / "code.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("k", "--currency", "EUR", "--value", "12,5"), "“value” is “12,5”"),
        (("k", "--redirect", "ftp://shop.example"), "“redirect” is “ftp://shop.example”"),
        (("",), "“key” is missing"),
        (
            ("k", "--redirect", "https://x.example/" + "é" * 900, "--svg", "code.svg"),
            "too long for a QR code",
        ),
    ],
)
def test_a_link_that_would_not_work_is_not_made(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    made = tollgate(tmp_path, "link", *arguments, "--url", "https://pay.example/pay")
    assert (made.returncode, made.stderr.count("\n")) == (1, 1)
    assert told in made.stderr


def test_without_a_node_a_link_needs_its_address(tmp_path: Path) -> None:
    made = tollgate(tmp_path, "link", "k", "--value", "1")
    assert made.returncode == 1
    assert "say where it is with --url" in made.stderr
