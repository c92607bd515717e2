"""Statuses and bodies of everything that goes wrong (part A), on the wire."""

import asyncio
from typing import Any

import pytest

from tests.support.payments.api import ABSENT, App, PaymentsApi, basic, done, fields_of
from tollgate.actors.ledger.law.outcomes import Indefinite, TurnedAway
from tollgate.serve.payments.api.checkout.form_payments import PAYMENT_BODY_BYTES_MAX
from tollgate.serve.payments.api.routes.apps import APP_BODY_BYTES_MAX

Merchant = dict[str, Any]
JSON = "application/json"


def problem_of(response: Any, status: int, code: str) -> None:
    assert response.status_code == status
    assert response.headers["content-type"] == JSON
    body = response.json()
    assert body.keys() == {"code", "message", "requestId"}
    assert body["code"] == code
    assert body["requestId"] == response.headers["x-request-id"]


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Basic",
        "Basic Og==",  # an empty key
        basic("unknown"),
        "Basic dXNlcjprZXk=",  # a user name
        "Basic !!!!",
        "Bearer key",
        "Basic " + "A" * 5_000,
    ],
)
def test_bad_credentials_all_look_the_same(
    api: PaymentsApi, shop: App, authorization: str | None
) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    response = api.call("GET", "/me", headers=headers)
    problem_of(response, 401, "UNAUTHORIZED")
    assert response.headers["www-authenticate"].startswith("Basic ")
    assert response.json()["message"] == api.call("GET", "/me").json()["message"]


@pytest.mark.parametrize(
    "accept", ["", "*/*", "text/html", "application/*", "application/json;q=0"]
)
@pytest.mark.parametrize(
    ("path", "status"), [("/me", 401), ("/nope", 404), ("/merchants/x", 401), ("/apps", 405)]
)
def test_whoever_does_not_ask_for_json_gets_no_body(
    api: PaymentsApi, accept: str, path: str, status: int
) -> None:
    response = api.call("GET", path, headers={"accept": accept})
    assert (response.status_code, response.content) == (status, b"")
    assert "content-type" not in response.headers
    assert response.headers["x-request-id"]


@pytest.mark.parametrize(
    "accept",
    [JSON, "text/html, application/json;q=0.5", "application/problem+json", "Application/JSON"],
)
def test_whoever_asks_for_json_gets_a_body(api: PaymentsApi, accept: str) -> None:
    problem_of(api.call("GET", "/me", headers={"accept": accept}), 401, "UNAUTHORIZED")


@pytest.mark.parametrize("accept", ["", "text/html"])
def test_fields_are_named_whatever_is_accepted(api: PaymentsApi, shop: App, accept: str) -> None:
    response = api.call("POST", "/merchants", shop, headers={"accept": accept})
    assert "email" in fields_of(response)
    assert response.headers["content-type"] == JSON


CALLS = [
    ("GET", "/merchants/{}", None),
    ("PUT", "/merchants/{}", {"name": "x"}),
    ("POST", "/merchants/{}/users", {"email": "a@example.com"}),
    ("GET", "/merchants/{}/users?limit=0", None),
    ("DELETE", "/merchants/{}/users/" + ABSENT, None),
    ("POST", "/merchants/{}/apps", {"appId": ABSENT}),
    ("GET", "/merchants/{}/apps?limit=0", None),
    ("DELETE", "/merchants/{}/apps/" + ABSENT, None),
    ("GET", "/merchants/{}/lines?limit=0", None),
    ("GET", "/merchants/{}/lines.csv", None),
    ("GET", "/merchants/{}/lines.ndjson", None),
    ("GET", "/merchants/{}/balance", None),
    ("GET", "/merchants/{}/events?limit=0", None),
    ("GET", "/merchants/{}/audit?limit=0", None),
    ("POST", "/merchants/{}/transactions", {"amount": 1}),
    ("GET", "/merchants/{}/transactions?limit=0", None),
    ("POST", "/merchants/{}/cards", {"transactionId": ABSENT}),
    ("POST", "/merchants/{}/webhooks", {"url": "https://example.com"}),
    ("GET", "/merchants/{}/webhooks?limit=0", None),
    ("DELETE", "/merchants/{}/webhooks/" + ABSENT, None),
    ("GET", "/merchants/{}/webhooks/" + ABSENT + "/dead-letters?limit=0", None),
    ("POST", "/merchants/{}/webhooks/" + ABSENT + "/replays", None),
]


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_who_is_unknown_or_no_member_does_nothing(
    api: PaymentsApi, shop: App, merchant: Merchant, method: str, path: str, body: object
) -> None:
    """A1: 401 before 404 before 403 before 400."""
    stranger = api.new_app()
    options = {} if body is None else {"json": body}
    before = api.listed(f"/merchants/{merchant['id']}/events", shop)
    for entity in (merchant["id"], ABSENT, "x"):
        assert api.call(method, path.format(entity), **options).status_code == 401
    problem_of(api.call(method, path.format(merchant["id"]), stranger, **options), 403, "FORBIDDEN")
    for entity in (ABSENT, "x"):
        response = api.call(method, path.format(entity), stranger, **options)
        problem_of(response, 404, "NOT_FOUND")
    assert api.listed(f"/merchants/{merchant['id']}/events", shop) == before


def test_entities_are_for_members(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    stranger, paid = api.new_app(), api.pay(merchant)
    api.act(shop, paid, "captures", amount=100)
    (line,) = api.listed(f"/merchants/{merchant['id']}/lines", shop)
    body = {"transactionId": paid}
    card = done(api.call("POST", f"/merchants/{merchant['id']}/cards", shop, json=body))["card"]
    dispute = done(api.call("POST", "/sandbox/disputes", shop, json=body | {"amount": 1}))
    fraud = done(api.call("POST", "/sandbox/frauds", shop, json=body))
    paths = [
        f"/transactions/{paid}",
        f"/lines/{line['id']}",
        f"/cards/{card['id']}",
        f"/disputes/{dispute['dispute']['id']}",
        f"/frauds/{fraud['fraud']['id']}",
    ]
    for path in paths:
        done(api.call("GET", path, shop))
        assert api.call("GET", path).status_code == 401
        problem_of(api.call("GET", path, stranger), 403, "FORBIDDEN")
    for what in ("captures", "refunds", "voids"):
        path = f"/transactions/{paid}/{what}"
        for amount in (0, 1):
            response = api.call("POST", path, stranger, json={"amount": amount})
            problem_of(response, 403, "FORBIDDEN")


@pytest.mark.parametrize("path", ["/", "", "/nope", "/merchants/x/y/z/1/2/3/4/5", "//", "/me/x"])
def test_there_is_no_such_path(api: PaymentsApi, shop: App, path: str) -> None:
    problem_of(api.call("GET", path, shop), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/apps", "POST"),
        ("DELETE", "/me", "GET, HEAD"),
        ("PATCH", f"/merchants/{ABSENT}", "GET, HEAD, PUT"),
        ("POST", "/docs", "GET, HEAD"),
        ("PUT", "/openapi.json", "GET, HEAD"),
    ],
)
def test_a_method_that_a_path_does_not_take(
    api: PaymentsApi, shop: App, method: str, path: str, allowed: str
) -> None:
    response = api.call(method, path, shop)
    problem_of(response, 405, "METHOD_NOT_ALLOWED")
    assert response.headers["allow"] == allowed


def test_a_head_request_is_a_get_without_a_body(api: PaymentsApi, shop: App) -> None:
    response = api.call("HEAD", "/me", shop)
    assert response.status_code == 200
    assert response.headers["content-type"] == JSON


def test_every_reply_carries_the_request_id(api: PaymentsApi, shop: App) -> None:
    for path in ("/me", "/nope", "/docs"):
        response = api.call("GET", path, shop, headers={"X-Request-ID": "my-id"})
        assert response.headers.get_list("x-request-id") == ["my-id"]
    minted = {api.call("GET", "/me", shop).headers["x-request-id"] for _ in range(3)}
    assert len(minted) == 3
    unfit = api.call("GET", "/me", shop, headers={"X-Request-ID": "x" * 129})
    assert unfit.headers["x-request-id"] != "x" * 129


def test_a_busy_book_says_when_to_come_again(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    paid = api.pay(merchant)
    api.ledger.instead.append(TurnedAway(3))
    response = api.call("POST", f"/transactions/{paid}/captures", shop, json={"amount": 1})
    problem_of(response, 503, "UNAVAILABLE")
    assert response.headers["retry-after"] == "3"
    assert api.transaction(shop, paid)["capturedAmount"] == 0


@pytest.mark.parametrize(("headers", "word"), [({}, "look"), ({"Idempotency-Key": "k"}, "Key")])
def test_an_unknown_outcome_says_how_to_find_out(
    api: PaymentsApi, shop: App, merchant: Merchant, headers: dict[str, str], word: str
) -> None:
    paid = api.pay(merchant)
    api.ledger.instead.append(Indefinite("lost"))
    path = f"/transactions/{paid}/captures"
    response = api.call("POST", path, shop, json={"amount": 1}, headers=headers)
    problem_of(response, 503, "UNAVAILABLE")
    assert int(response.headers["retry-after"]) > 0
    assert word in response.json()["message"]


def test_what_nobody_foresaw_is_a_500_that_tells_nothing(
    api: PaymentsApi, shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(type(api.context.store), "entity", broken)
    response = api.call("GET", "/me", shop)
    problem_of(response, 500, "INTERNAL")
    assert "secret" not in response.text
    assert api.call("GET", "/me", shop, headers={"accept": ""}).content == b""


def test_a_caller_who_hangs_up_gets_no_reply(api: PaymentsApi, shop: App) -> None:
    sent: list[object] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    async def send(message: object) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/payments/merchants",
        "root_path": "/payments",
        "query_string": b"",
        "headers": [(b"authorization", basic(shop.key).encode())],
    }
    api.runner.run(asyncio.wait_for(api.app(scope, receive, send), 5))
    assert sent == []


@pytest.mark.parametrize(
    ("path", "bytes_max"),
    [("/apps", APP_BODY_BYTES_MAX), ("/sandbox/payments", PAYMENT_BODY_BYTES_MAX)],
)
def test_without_credentials_a_body_is_as_large_as_it_needs_to_be(
    api: PaymentsApi, path: str, bytes_max: int
) -> None:
    body = b'{"name":"%b"}' % (b"x" * bytes_max)
    headers = {"content-type": "application/json"}
    response = api.call("POST", path, content=body, headers=headers)
    assert response.status_code == 400
    assert response.json()[0]["message"] == f"the body is larger than {bytes_max} bytes"
