"""`docs/payments.md` is true: its examples are run as one story, and its tables are the code's."""

import re
import subprocess
from collections.abc import Callable
from json import dumps
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from click.testing import CliRunner

from tests.support.console_blocks import Answer, Story, curl_call, examples
from tests.support.payments.api import OPERATOR_KEY, REFERENCE, PaymentsApi, done
from tests.support.payments.deliveries import deliver_due
from tests.support.payments.enquiries import enquire
from tollgate.actors.ledger.delivery.schedule import PAUSE_DIVISOR, PAUSE_MAX_MS, PAUSE_MIN_MS
from tollgate.actors.ledger.law.events import Event
from tollgate.serve.commands.ledger.command import ledger
from tollgate.serve.payments.api import rejections
from tollgate.serve.payments.api.rejections import AttemptFailed, BadRequest, Rejection
from tollgate.serve.payments.checkout.refusals import CheckoutCode
from tollgate.serve.payments.webhooks.signature import signature

DOCUMENT = (Path(__file__).parents[3] / "docs" / "payments.md").read_text(encoding="utf-8")
# Where the examples say that the API is, and the operator's calls.
BASES = ("http://localhost:8080/payments", "http://localhost:8082")
# Events of the directory, which is no merchant's.
OF_NO_MERCHANT = {
    "app.created",
    "app.key_rotated",
    "app.recovered",
    "app.recovery_code_replaced",
    "merchant.reserved",
}


def section(heading: str) -> str:
    """The text under a heading, up to the next one of its depth or above."""
    depth = heading.index(" ")
    found = re.search(
        rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{depth}}} |\Z)", DOCUMENT, re.DOTALL | re.MULTILINE
    )
    assert found, f"no section {heading}"
    return found[1]


def rows(heading: str) -> list[list[str]]:
    """The cells of the rows of a section's table."""
    lines = [line for line in section(heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(text: str) -> list[str]:
    """What stands in a text as code."""
    return re.findall(r"`([^`]+)`", text)


def test_the_examples_are_what_is_answered(
    api: PaymentsApi, books_url: str, tmp_path: Path
) -> None:
    environment = {"TOLLGATE_STORAGE_URL": books_url, "TOLLGATE_DATA": str(tmp_path / "data")}

    def run(arguments: list[str]) -> Answer:
        program, *arguments = arguments
        if program == "curl":
            return curl(api, arguments)
        assert program == "tollgate", program
        assert arguments.pop(0) == "ledger", arguments
        return Answer(CliRunner().invoke(ledger, arguments, env=environment).output)

    story = Story(run, {"OPERATOR": OPERATOR_KEY})
    found = list(examples(DOCUMENT))
    assert len(found) > 40
    for example in found:
        try:
            story.tell(example)
        except (AssertionError, LookupError, TypeError, ValueError) as error:
            raise AssertionError(f"docs/payments.md:{example.line}: {example.command}") from error


def curl(api: PaymentsApi, arguments: list[str]) -> Answer:
    """What curl would print; a second passes."""
    call = curl_call(arguments)
    base = next(base for base in BASES if call.url.startswith(base))
    path = call.url.removeprefix(base)
    response = api.call(call.method, path, headers=call.headers, content=call.body)
    deliver(api)
    api.clock.advance(1.0)
    told = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.text, response.status_code, response.reason_phrase, told)


def deliver(api: PaymentsApi) -> None:
    """What a worker would deliver beside the calls: all but one receiver take it."""
    deliveries, caller = api.context.deliveries, api.context.webhook_caller
    api.runner.run(deliver_due(deliveries, caller, api.clock))


def test_the_events_are_those_of_the_books() -> None:
    told = {name for types, *_ in rows("### Event types") for name in words(types)}
    tags = {str(kind.__struct_config__.tag) for kind in get_args(Event)}
    assert told == {tag.partition("/")[0] for tag in tags} - OF_NO_MERCHANT
    others = set(words(section("### Event types").rpartition("|")[2]))
    assert others >= OF_NO_MERCHANT


def test_an_event_has_the_data_that_is_told(api: PaymentsApi) -> None:
    app, other = api.new_app(), api.new_app()
    merchant = api.new_merchant(app)
    here = f"/merchants/{merchant['id']}"

    def post(path: str, **body: object) -> Any:
        return done(api.call("POST", path, app, json=body))

    done(api.call("PUT", here, app, json={"name": "Tea"}))
    post(f"{here}/apps", appId=other.id, role="read-only")
    done(api.call("PUT", f"{here}/apps/{other.id}", app, json={"role": "refunds"}))
    done(api.call("DELETE", f"{here}/apps/{other.id}", app))
    post(f"{here}/users", email="anna@example.com", role="read-only")
    (user,) = api.listed(f"{here}/users", app)
    done(api.call("PUT", f"{here}/users/{user['id']}", app, json={"role": "owner"}))
    done(api.call("DELETE", f"{here}/users/{user['id']}", app))
    transaction = api.pay(merchant, 1_000)
    for what, amount in (("captures", 400), ("captures", 400), ("refunds", 100), ("voids", 200)):
        api.act(app, transaction, what, amount=amount)
    never = 667_003
    unknown = api.pay(merchant, 1_000_000)
    path = f"/transactions/{unknown}/captures"
    assert api.call("POST", path, app, json={"amount": never}).status_code == 503
    enquire(api)
    post(f"{here}/cards", transactionId=transaction)
    for end in ("won", "lost"):
        made = post("/sandbox/disputes", transactionId=transaction, amount=50)["dispute"]
        post(f"/sandbox/disputes/{made['id']}/{end}")
    post("/sandbox/frauds", transactionId=transaction, reason=1)
    api.act(app, api.pay(merchant, 100_000), "captures", amount=100_000)
    post("/sandbox/payouts", merchantId=merchant["id"], amount=10)
    webhook = post(f"{here}/webhooks", url="https://example.com/hook")["webhook"]["id"]
    post(f"{here}/webhooks/{webhook}/secrets")
    changes = {"url": "https://example.com/", "types": ["app.added"], "enabled": False}
    done(api.call("PUT", f"{here}/webhooks/{webhook}", app, json=changes))
    done(api.call("DELETE", f"{here}/webhooks/{webhook}", app))

    told = {
        name: set(words(data)) for types, data in rows("### Event types") for name in words(types)
    }
    api.clock.advance(86_400)
    settled = {"reference": "S-1", "merchantId": merchant["id"], "day": "2026-01-01"}
    file = dumps(settled | {"currency": "DKK", "amount": 1})
    done(api.call("POST", "/operator/settlements", OPERATOR_KEY, json={"file": file}))
    live, rejected = (api.new_merchant(app, test=False) for _ in range(2))
    api.approve(live)
    fees = {"ratePpm": 1, "flat": 1, "dispute": 1}
    path = f"/operator/merchants/{live['id']}/pricing"
    done(api.call("PUT", path, OPERATOR_KEY, json=fees))
    path = f"/operator/merchants/{rejected['id']}/rejection"
    done(api.call("PUT", path, OPERATOR_KEY))
    events = [
        event
        for book in (merchant, live, rejected)
        for event in api.listed(f"/merchants/{book['id']}/events", app)
    ]
    found = {event["type"]: event["data"].keys() for event in events}
    assert found.pop("merchant.changed") <= told.pop("merchant.changed")
    assert found == told


def test_the_error_codes_are_those_of_the_rejections() -> None:
    found = {
        each.code: each.status
        for each in vars(rejections).values()
        if isinstance(each, type) and issubclass(each, Rejection)
    }
    for has_a_shape_of_its_own in (BadRequest, AttemptFailed):
        del found[has_a_shape_of_its_own.code]
    told = {words(code)[0]: int(status) for code, status in rows("### Error codes")}
    assert told == found


def test_the_words_of_browsers_refusals_are_those_of_the_code() -> None:
    told = [word for codes, _ in rows("## Errors in words") for word in words(codes)]
    assert told == [code.value for code in CheckoutCode]


def test_the_processing_errors_are_those_of_the_table() -> None:
    told = [tuple(row) for row in rows("## Processing errors")]
    expected = [
        (
            str(code),
            facts.error.message,
            "C" * facts.error.is_client + "M" * facts.error.is_merchant,
            "R" * facts.is_usual_for_recurring,
            "later" if facts.error.advice and facts.error.advice.attempts_max else "never",
        )
        for code, facts in REFERENCE.errors.by_code.items()
    ]
    assert told == expected


def test_the_currencies_are_those_of_the_table() -> None:
    found = REFERENCE.currencies.by_code.values()
    _, zero, three, deprecated = rows("## Currencies")
    assert rows("## Currencies")[0][1].split() == list(REFERENCE.currencies.fundable)
    assert zero[1].split() == sorted(each.code for each in found if each.exponent == 0)
    assert three[1].split() == sorted(each.code for each in found if each.exponent == 3)
    assert deprecated[1].split() == sorted(each.code for each in found if each.is_deprecated)


@pytest.fixture
def is_from_tollgate() -> Callable[..., bool]:
    """The function that the document gives to receivers."""
    source = re.search(r"^```python\n(.*?)^```$", section("## Webhooks"), re.DOTALL | re.MULTILINE)
    assert source
    names: dict[str, Any] = {}
    exec(source[1], names)
    found: Callable[..., bool] = names["is_from_tollgate"]
    return found


def test_receivers_take_what_is_signed_and_nothing_else(
    is_from_tollgate: Callable[..., bool],
) -> None:
    body, now_s = '{"type":"transaction.captured","note":"é"}'.encode(), 1_767_225_600
    header = signature(body, ["whsec_new", "whsec_old"], now_s)
    assert is_from_tollgate(header, body, "whsec_new", now_s + 300)
    assert is_from_tollgate(header, body, "whsec_old", now_s - 300)
    assert not is_from_tollgate(header, body, "whsec_new", now_s + 301)
    assert not is_from_tollgate(header, body + b" ", "whsec_new", now_s)
    assert not is_from_tollgate(header, body, "whsec_other", now_s)
    for broken in ("", "t=,v1=", "v1=00", f"t={now_s}", f"{header},t={now_s}", "t=x,v1=é"):
        assert not is_from_tollgate(broken, body, "whsec_new", now_s)


def test_receivers_in_node_take_the_same() -> None:
    source = re.search(r"^```js\n(.*?)^```$", section("## Webhooks"), re.DOTALL | re.MULTILINE)
    assert source
    body, now_s = '{"note":"é"}'.encode(), 1_767_225_600
    header = signature(body, ["whsec_new", "whsec_old"], now_s)
    questions = [
        (header, body, "whsec_old", now_s + 300),
        (header, body, "whsec_new", now_s + 301),
        (header, body + b" ", "whsec_new", now_s),
        (header, body, "whsec_other", now_s),
        ("t=x,v1=é", body, "whsec_new", now_s),
    ]
    calls = [
        f"isFromTollgate({dumps(h)}, Buffer.from({dumps(b.decode())}), {dumps(k)}, {at})"
        for h, b, k, at in questions
    ]
    script = source[1] + f"console.log(JSON.stringify([{', '.join(calls)}]));"
    told = subprocess.run(["node", "-e", script], capture_output=True, check=True, text=True)
    assert told.stdout.strip() == "[true,false,false,false,false]"


def test_the_call_in_the_document_is_signed_with_the_secret_beside_it(
    is_from_tollgate: Callable[..., bool],
) -> None:
    text = section("## Webhooks")
    secret = re.search(r"`(whsec_[\w-]+)`", text)
    call = re.search(r"^```http\n(.*?)\n\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)
    assert secret
    assert call
    headers = dict(line.split(": ", 1) for line in call[1].splitlines()[1:])
    body = call[2].encode()
    header = headers["Tollgate-Signature"]
    at_s = int(header.removeprefix("t=").partition(",")[0])
    assert is_from_tollgate(header, body, secret[1], at_s)
    assert msgspec.json.decode(body)["id"] == headers["Tollgate-Event"]


def test_the_pauses_between_attempts_are_those_of_the_schedule() -> None:
    table = section("## Webhooks").partition("| failing for |")[2]
    told = re.findall(r"^\| (\d+) (s|min|h) \| (\d+) s \|$", table, re.MULTILINE)
    assert len(told) == 5
    for count, unit, pause_s in told:
        failing_ms = int(count) * {"s": 1_000, "min": 60_000, "h": 3_600_000}[unit]
        longest_ms = min(max(failing_ms // PAUSE_DIVISOR, PAUSE_MIN_MS), PAUSE_MAX_MS)
        assert longest_ms == int(pause_s) * 1_000
