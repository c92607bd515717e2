"""Parameters of queries that a call does not have are refused, with the nearest name (A)."""

import re
from typing import Any

import pytest

from tests.support.payments.api import ABSENT, OPERATOR_KEY, App, PaymentsApi, fields_of

Operation = tuple[str, str, list[str]]


def operations(api: PaymentsApi) -> list[Operation]:
    """All calls of both doors: method, a path, and the names that the document gives its query."""
    documents = [
        api.runner.run(client.get(f"http://test{api.prefix}/openapi.json")).json()
        for client in (api.client, api.operator_client)
    ]
    return [
        (
            method.upper(),
            re.sub(r"{\w+}", ABSENT, path),
            [each["name"] for each in operation["parameters"] if each["in"] == "query"],
        )
        for document in documents
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def answered(api: PaymentsApi, key: App, method: str, path: str, query: dict[str, str]) -> Any:
    credentials = OPERATOR_KEY if path.startswith("/operator") else key
    return api.call(method, path, credentials, params=query)


def test_every_call_refuses_what_its_document_does_not_name(api: PaymentsApi, shop: App) -> None:
    for method, path, names in operations(api):
        response = answered(api, shop, method, path, {"zzz": "1"})
        if isinstance(refused := response.json(), dict):
            # (calls of browsers have one shape of errors)
            assert refused["message"] == "zzz is unknown: this call has no parameters", path
            continue
        assert fields_of(response) == ["zzz"], (method, path)
        assert refused[0]["message"].endswith(", ".join(names) or "no parameters"), path
        for name in names:
            near = f"{name[:-2]}]" if name.endswith("]") else name[:-1]
            (error,) = answered(api, shop, method, path, {near: "1"}).json()
            assert error["field"] == near.replace("[", ".").replace("]", ""), (path, name)
            assert error["message"] == f"is unknown; did you mean {name}?", path


def test_every_call_takes_what_its_document_names(api: PaymentsApi, shop: App) -> None:
    for method, path, names in operations(api):
        response = answered(api, shop, method, path, dict.fromkeys(names, ""))
        assert "is unknown" not in response.text, (method, path)


def test_nothing_is_done_by_a_call_that_is_refused(
    api: PaymentsApi, shop: App, merchant: dict[str, Any]
) -> None:
    paid = api.pay(merchant)
    api.act(shop, paid, "captures", amount=100)
    before = api.transaction(shop, paid)
    path = f"/transactions/{paid}/refunds?amount=5"
    assert fields_of(api.call("POST", path, shop, json={"amount": 1})) == ["amount"]
    assert api.transaction(shop, paid) == before


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("balance?att=0001-01-01T00:00:00Z", "att"),
        ("balance?at=2026-01-01&_=1", "_"),
        ("audit?limit=1&frm=x", "frm"),
        ("audit?limit=1&sort=id", "sort"),
        ("lines.csv?limit=1", "limit"),
        ("users?limit=1&filter[test]=no", "filter.test"),
    ],
)
def test_reports_keep_to_their_parameters(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], query: str, field: str
) -> None:
    path = f"/merchants/{merchant['id']}/{query}"
    assert fields_of(api.call("GET", path, shop)) == [field]
    assert api.call("HEAD", path, shop).status_code == 400


def test_who_calls_is_looked_at_before_the_query(api: PaymentsApi) -> None:
    assert api.call("GET", "/me?zzz=1").status_code == 401
    assert api.call("GET", "/operator/trial-balance?zzz=1", "wrong").status_code == 401
