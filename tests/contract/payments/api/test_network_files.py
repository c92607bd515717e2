"""Files of the card network over the API: what matches is booked once, what does not is told."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.ledger.books import DKK, authorise
from tests.support.payments.api import (
    ABSENT,
    OPERATOR_KEY,
    App,
    PaymentsApi,
    done,
    fields_of,
)
from tollgate.actors.ledger.law.commands import Command, Conclude, Intend, Order
from tollgate.actors.ledger.law.outcomes import Done
from tollgate.actors.ledger.law.values import OPERATOR, BookId, NetworkApproved, Origin

DAY = 86_400
Report = dict[str, Any]


def send(api: PaymentsApi, kind: str, text: str, **options: Any) -> Any:
    body = {"file": text} | options
    return api.call("POST", f"/operator/{kind}", OPERATOR_KEY, json=body)


def told(api: PaymentsApi, kind: str, *records: Mapping[str, object], **options: Any) -> Report:
    text = "\n".join(json.dumps(record) for record in records)
    report: Report = done(send(api, kind, text, **options))["report"]
    return report


def counts(report: Report) -> tuple[int, int, list[str]]:
    problems = [finding["problem"] for finding in report["findings"]]
    assert report["records"] == report["booked"] + report["unchanged"] + len(problems)
    return report["booked"], report["unchanged"], problems


@pytest.fixture
def captured(api: PaymentsApi, shop: App, merchant: dict[str, Any]) -> str:
    """A transaction of which 1000 are captured."""
    paid = api.pay(merchant, 1_000)
    api.act(shop, paid, "captures", amount=1_000)
    return paid


def events(api: PaymentsApi, shop: App, merchant: Mapping[str, Any]) -> list[dict[str, Any]]:
    return api.listed(f"/merchants/{merchant['id']}/events", shop)


def opened(transaction: str, amount: int = 300, **changes: object) -> dict[str, object]:
    record = {"reference": "CB-1", "transactionId": transaction, "amount": amount}
    return record | {"currency": "DKK", "reasonCode": 4853, "reasonTitle": "No goods"} | changes


def test_a_file_is_booked_once(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], captured: str
) -> None:
    file = (opened(captured), opened(captured, 200, reference="CB-2", due="2026-02-01"))
    assert counts(told(api, "disputes", *file)) == (2, 0, [])
    second, first = api.listed("/disputes", shop, **{"filter[merchantId]": merchant["id"]})
    assert (first["amount"], first["reason"]) == (300, {"code": 4853, "title": "No goods"})
    assert (second["amount"], second["due"]) == (200, "2026-02-01T00:00:00.000Z")
    assert api.transaction(shop, captured)["disputedAmount"] == 500
    before = events(api, shop, merchant)
    for _ in range(2):
        assert counts(told(api, "disputes", *file)) == (0, 2, [])
    assert events(api, shop, merchant) == before


def test_a_dispute_is_opened_and_decided_by_its_reference(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], captured: str
) -> None:
    assert counts(told(api, "disputes", opened(captured))) == (1, 0, [])
    won: dict[str, object] = {"reference": "CB-1", "status": "won"}
    assert counts(told(api, "disputes", won)) == (1, 0, [])
    assert counts(told(api, "disputes", won, opened(captured, status="won"))) == (0, 2, [])
    assert counts(told(api, "disputes", won | {"status": "lost"})) == (0, 0, ["decided otherwise"])
    (dispute,) = api.listed("/disputes", shop, **{"filter[merchantId]": merchant["id"]})
    assert dispute["won"] is True
    lost = opened(captured, 100, reference="CB-2", status="lost")
    assert counts(told(api, "disputes", lost)) == (1, 0, [])
    assert api.transaction(shop, captured)["disputedAmount"] == 100


def test_what_does_not_match_is_told_and_the_rest_is_booked(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], captured: str
) -> None:
    other = api.pay(api.new_merchant(shop), 500)
    records = (
        opened(captured),
        opened(captured, 301),
        opened(other, reference="CB-1"),
        opened(ABSENT, reference="CB-2"),
        opened(captured, reference="CB-3", currency="EUR"),
        opened(captured, 701, reference="CB-4"),
        {"reference": "CB-5", "status": "lost"},
        opened(captured, 700, reference="CB-6"),
    )
    report = told(api, "disputes", *records)
    expected = [
        "other content",
        "other content",
        "unknown transaction",
        "wrong currency",
        "amount too high",
        "unknown reference",
    ]
    assert counts(report) == (2, 0, expected)
    assert [finding["line"] for finding in report["findings"]] == [2, 3, 4, 5, 6, 7]
    assert report["findings"][4]["reference"] == "CB-4"
    assert "701 is more than the 700" in report["findings"][4]["message"]
    assert api.transaction(shop, captured)["disputedAmount"] == 1_000


def test_a_transaction_is_named_by_the_networks_reference_as_well(
    api: PaymentsApi, shop: App, merchant: dict[str, Any]
) -> None:
    def ordered(command: Command) -> Any:
        origin = Origin(OPERATOR, "ab12", "192.0.2.1", "request")
        asked = f"operation of {type(command).__name__}"
        order = Order(asked, BookId(merchant["id"]), command, origin, 10_000)
        (outcome,) = api.runner.run(api.ledger.execute([order]))
        assert isinstance(outcome, Done), outcome
        return json.loads(outcome.body)

    intent = ordered(Intend(authorise(1_000, DKK), "acquirer"))["intent"]["id"]
    paid = ordered(Conclude(intent, NetworkApproved("N-77")))["transaction"]["id"]
    record = {"reference": "F-1", "merchantId": merchant["id"], "transactionReference": "N-77"}
    unknown = told(api, "frauds", record, network="another")
    assert counts(unknown) == (0, 0, ["unknown transaction"])
    for dry in (True, False):
        report = told(api, "frauds", record, network="acquirer", dryRun=dry)
        assert counts(report) == (1, 0, [])
    assert counts(told(api, "frauds", record, network="acquirer")) == (0, 1, [])
    (fraud,) = api.listed("/frauds", shop, **{"filter[merchantId]": merchant["id"]})
    assert fraud["transactionId"] == paid
    for wrong in (record | {"transactionId": paid}, {**record, "merchantId": None}):
        assert fields_of(send(api, "frauds", json.dumps(wrong))) == ["file"]


def test_two_networks_may_use_the_same_reference(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], captured: str
) -> None:
    for network in ("", "acme"):
        report = told(api, "disputes", opened(captured), network=network)
        assert counts(report) == (1, 0, [])
    assert api.transaction(shop, captured)["disputedAmount"] == 600


def test_a_dry_run_foresees_and_books_nothing(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], captured: str
) -> None:
    before = events(api, shop, merchant)
    records = (
        opened(captured, 800),
        opened(captured, 800),
        opened(captured, 300, reference="CB-2"),
        {"reference": "CB-1", "status": "won"},
        opened(captured, 300, reference="CB-2"),
        {"reference": "CB-1", "status": "lost"},
    )
    foreseen = told(api, "disputes", *records, dryRun=True)
    assert foreseen["dryRun"] is True
    assert counts(foreseen) == (3, 1, ["amount too high", "decided otherwise"])
    assert events(api, shop, merchant) == before
    assert told(api, "disputes", *records) | {"dryRun": True} == foreseen


def test_frauds_are_booked_once(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], captured: str
) -> None:
    text = (
        "\ufeffreference,transactionId,amount,currency,reason,reported\r\n"
        f"F-1,{captured},1000,DKK,3,2025-12-30T10:00:00Z\r\n"
        f"F-2,{captured},,,,\r\n\r\n"
        f'"F-3",{captured},1001,DKK,,\r\n'
        f"F-4,{captured},1,EUR,,\r\n"
        f"F-2,{captured},,,7,\r\n"
    )
    report = done(send(api, "frauds", text))["report"]
    assert counts(report) == (2, 0, ["amount too high", "wrong currency", "other content"])
    assert [finding["line"] for finding in report["findings"]] == [5, 6, 7]
    second, first = api.listed("/frauds", shop, **{"filter[merchantId]": merchant["id"]})
    assert (first["reason"], first["reported"]) == (3, "2025-12-30T10:00:00.000Z")
    assert "reason" not in second
    assert counts(done(send(api, "frauds", text))["report"])[:2] == (0, 2)


def test_settlements_are_compared_with_the_books(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], captured: str
) -> None:
    api.act(shop, captured, "refunds", amount=100)
    done(
        api.call("POST", "/sandbox/disputes", shop, json={"transactionId": captured, "amount": 50})
    )
    record = {"reference": "S-1", "merchantId": merchant["id"], "day": "2026-01-01"}
    record |= {"currency": "DKK", "amount": 900}
    assert counts(told(api, "settlements", record)) == (0, 0, ["day not over"])
    api.clock.advance(DAY)
    balance = done(api.call("GET", f"/merchants/{merchant['id']}", shop))["merchant"]["balance"]
    report = told(api, "settlements", record)
    difference = {"merchantId": merchant["id"], "day": "2026-01-01", "currency": "DKK"}
    assert report["differences"] == [
        difference | {"settled": 900, "expected": 850, "difference": 50}
    ]
    assert counts(told(api, "settlements", record)) == (0, 1, [])
    taken_back = record | {"reference": "S-2", "amount": -50}
    foreign = record | {"reference": "S-3", "currency": "EUR", "amount": 0}
    strange = record | {"reference": "S-4", "merchantId": ABSENT}
    report = told(api, "settlements", taken_back, foreign, strange, record | {"amount": 1})
    assert counts(report) == (2, 0, ["unknown merchant", "other content"])
    assert report["differences"] == []
    path = f"/operator/merchants/{merchant['id']}/settlements"
    newest, second, first = api.listed(path, App("", OPERATOR_KEY))
    assert (first["amount"], first["settled"], first["difference"]) == (900, 900, 50)
    assert (second["amount"], second["settled"], second["difference"]) == (-50, 850, 0)
    assert (newest["currency"], newest["expected"], newest["difference"]) == ("EUR", 0, 0)
    found = done(api.call("GET", f"/merchants/{merchant['id']}", shop))["merchant"]
    assert found["balance"] == balance


def test_a_dry_run_of_settlements_adds_them_up(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], captured: str
) -> None:
    api.clock.advance(DAY)
    record = {"merchantId": merchant["id"], "day": "2026-01-01", "currency": "DKK"}
    file = [record | {"reference": f"S-{n}", "amount": 400} for n in range(2)]
    foreseen = told(api, "settlements", *file, dryRun=True)
    assert [each["settled"] for each in foreseen["differences"]] == [800]
    assert told(api, "settlements", *file) | {"dryRun": True} == foreseen


@pytest.mark.parametrize(
    ("kind", "text", "told_"),
    [
        ("disputes", "\n \n", "holds no record"),
        ("disputes", "reference,status\n", "holds no record"),
        ("disputes", "reference,reference\na,b", "line 1: the header has reference twice"),
        ("disputes", "reference,stauts\nCB-1,won", "stauts is unknown; did you mean status"),
        ("disputes", "reference,status\nCB-1", "line 2: has 1 values, and the header names 2"),
        ("disputes", 'reference,status\n"CB-1,won', "line 2: is not CSV"),
        ("disputes", '{"reference":"CB-1"}', "line 1: transactionId is required"),
        ("disputes", '{"reference":"CB-1","status":"won","amount":1}', "transactionId is required"),
        ("disputes", '\n{"reference":"CB-1",', "line 2: is not JSON"),
        ("disputes", '{"reference":" CB-1","status":"won"}', "line 1: reference must be"),
        ("frauds", "{}", "line 1: reference is required"),
        ("frauds", '{"reference":"' + "x" * 9_000, "line 1: has more than 8192 characters"),
        ("settlements", "reference,day\nS,2026-1-1", "line 2: day must be a day"),
    ],
)
def test_a_file_that_is_wrong_is_refused_as_a_whole(
    api: PaymentsApi, kind: str, text: str, told_: str
) -> None:
    response = send(api, kind, text)
    assert set(fields_of(response)) == {"file"}
    assert told_ in response.text


def test_a_wrong_line_keeps_the_good_ones_out(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], captured: str
) -> None:
    before = events(api, shop, merchant)
    lines = [json.dumps(opened(captured)), json.dumps(opened(captured, amount=0))]
    response = send(api, "disputes", "\n".join(lines))
    assert fields_of(response) == ["file"]
    assert "line 2: amount must be" in response.text
    assert events(api, shop, merchant) == before


def test_the_number_of_records_is_bounded(api: PaymentsApi) -> None:
    text = "reference,status\n" + "CB-1,won\n" * 5_001
    assert "line 5002: is one too many" in send(api, "disputes", text).text


def test_files_are_the_operators(api: PaymentsApi, shop: App, captured: str) -> None:
    body = {"file": json.dumps(opened(captured))}
    for kind in ("disputes", "frauds", "settlements"):
        assert api.call("POST", f"/operator/{kind}", shop, json=body).status_code == 401
        assert api.call("POST", f"/operator/{kind}", json=body).status_code == 401
