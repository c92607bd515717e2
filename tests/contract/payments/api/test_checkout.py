"""A customer's payment in a browser, step by step, as its client sees it (part H)."""

from random import Random
from typing import Any

import httpx
import pytest

from tests.support.payments.api import App, PaymentsApi, done
from tests.support.payments.checkout_client import VERSION, CheckoutClient, hints_in
from tollgate.serve.payments.checkout.steps import TYPES_OF, Step

Merchant = dict[str, Any]
JSON = {"Content-Type": "application/json"}


def test_a_payment_takes_seven_steps_and_ten_hints(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    client = CheckoutClient(api, merchant, custom={"order": 7})
    response = client.pay()
    assert client.seen == [
        (0, "authorize-integration", "fetch"),
        (1, "tds-enrolled", "fetch"),
        (2, "tds-fingerprint", "background-iframe"),
        (6, "tds-pre-challenge", "fetch"),
        (7, "tds-challenge", "iframe"),
        (8, "tds-post-challenge", "fetch"),
        (9, "authorize", "fetch"),
    ]
    assert len(client.hints) == 10
    paid = response.json()["authorizationId"]
    transaction = api.transaction(shop, paid)
    assert (transaction["amount"], transaction["currency"]) == (1_000, "EUR")
    assert (transaction["tds"], transaction["custom"]) == ("full", {"order": 7})
    assert [client.post().json() for _ in range(10)] == [{"authorizationId": paid}] * 10
    assert len(api.listed(f"/merchants/{merchant['id']}/transactions", shop)) == 1


def money(value: int, exponent: int = 2, currency: str = "EUR") -> dict[str, object]:
    return {"currency": currency, "exponent": exponent, "value": value}


def refused(response: httpx.Response, status: int = 400) -> str:
    """The word of a refusal."""
    assert response.status_code == status, (response.status_code, response.text)
    assert response.text.endswith("\n")
    error = response.json()
    assert error.keys() == {"code", "message"}, error
    assert error["message"]
    return str(error["code"])


@pytest.mark.parametrize("wanted", ["redirect", "poll"])
def test_a_holder_can_be_asked_without_a_frame(
    api: PaymentsApi, shop: App, merchant: Merchant, wanted: str
) -> None:
    client = CheckoutClient(api, merchant)
    paid = client.pay(wanted=wanted).json()["authorizationId"]
    assert (7, "tds-challenge", wanted) in client.seen
    assert api.transaction(shop, paid)["tds"] == "full"


def test_while_a_bank_s_app_has_no_answer_the_client_polls(
    api: PaymentsApi, merchant: Merchant
) -> None:
    client = CheckoutClient(api, merchant)
    path = "/payments/challenges/tds-challenge/poll"
    while len(client.hints) < 7:
        client.step()
    first = client.post(path).json()
    assert (len(first["hints"]), first["interval"]) == (1, 1_000)
    client.hints += first["hints"]
    assert client.post().json()["challenges"] == [
        {"name": "tds-challenge", "type": "poll", "path": path}
    ]
    assert client.post(path).json()["hints"] == []
    api.clock.advance(2)
    assert client.post().json()["challenges"][0]["name"] == "tds-post-challenge"
    assert "authorizationId" in client.pay().json()


def test_a_bank_that_does_not_recognise_the_browser_stops_nobody(
    api: PaymentsApi, merchant: Merchant
) -> None:
    client = CheckoutClient(api, merchant, test={"fingerprint": "timeout"})
    while len(client.hints) < 2:
        client.step()
    best, other = client.post().json()["challenges"]
    assert (best["type"], other["type"]) == ("background-iframe", "fetch")
    frame = client.post(best["path"]).json()
    assert frame["timeout"] == 5_000
    assert hints_in(client.frame("browser", frame["fields"])) == []
    client.hints += client.post(other["path"]).json()["hints"]
    assert len(client.hints) == 6
    assert "authorizationId" in client.pay().json()


@pytest.mark.parametrize(
    ("tds", "kept", "steps"),
    [
        ({"challenge": False}, "full", 5),
        ({"challenge": False, "status": "attempted"}, "attempt", 5),
        ({"challenge": True, "status": "attempted"}, "attempt", 7),
        ({"status": "unavailable"}, None, 3),
        ({"challenge": False, "fingerprint": "unavailable"}, "full", 5),
    ],
)
def test_steps_that_are_not_needed_are_left_out(
    api: PaymentsApi,
    shop: App,
    merchant: Merchant,
    tds: dict[str, object],
    kept: str | None,
    steps: int,
) -> None:
    client = CheckoutClient(api, merchant, test={"tds": tds})
    transaction = api.transaction(shop, client.pay().json()["authorizationId"])
    assert transaction.get("tds") == kept
    assert (len(client.seen), len(client.hints)) == (steps, 10)


@pytest.mark.parametrize("later", ["plan", "unplanned"])
def test_who_is_to_be_charged_again_is_asked(
    api: PaymentsApi, merchant: Merchant, later: str
) -> None:
    changes = {later: {"merchant": True}}
    client = CheckoutClient(api, merchant, test={"tds": {"challenge": False}}, **changes)
    client.pay()
    assert (7, "tds-challenge", "iframe") in client.seen


@pytest.mark.parametrize(
    ("test", "value", "word"),
    [
        ({"card": {"scheme": "unknown"}}, 1, "PAYMENT_CARD_SCHEME_UNKNOWN"),
        ({"card": {"scheme": "unsupported"}}, 1, "PAYMENT_CARD_SCHEME_UNSUPPORTED"),
        ({"card": {"status": "invalid"}}, 1, "PAYMENT_CARD_NUMBER_INVALID"),
        ({"card": {"status": "expired"}}, 1, "PAYMENT_CARD_EXPIRED"),
        ({"card": {"status": "disabled"}}, 1, "PAYMENT_CARD_DISABLED"),
        ({"card": {"status": "lost"}}, 1, "PAYMENT_CARD_LOST"),
        ({"card": {"code": "invalid"}}, 1, "PAYMENT_CARD_SECURITY_CODE_INVALID"),
        ({"card": {"limit": money(99)}}, 100, "PAYMENT_AMOUNT_LIMIT"),
        ({"card": {"balance": money(99)}}, 100, "PAYMENT_INSUFFICIENT_FUNDS"),
        ({"card": {"limit": money(99, 2, "DKK")}}, 100, "REQUEST_INVALID"),
        ({}, 666_008, "PAYMENT_REJECTED_BY_ISSUER"),
        ({}, 666_011, "PAYMENT_REJECTED"),
        ({}, 666_012, "PAYMENT_METHOD_ERROR"),
        ({}, 666_027, "PAYMENT_RECEIVER_BLOCKED"),
        ({"tds": {"status": "rejected"}}, 1, "TDSECURE_FAILED"),
        ({"tds": {"status": "unavailable", "challenge": True}}, 1, "TDSECURE_REQUIRED"),
    ],
)
def test_a_payment_fails_as_it_is_told(
    api: PaymentsApi,
    shop: App,
    merchant: Merchant,
    test: dict[str, object],
    value: int,
    word: str,
) -> None:
    quick = test if "tds" in test else test | {"tds": {"challenge": False}}
    client = CheckoutClient(api, merchant, test=quick, amount=money(value))
    assert [refused(client.pay()) for _ in range(2)] == [word, word]
    stored = api.listed(f"/merchants/{merchant['id']}/transactions", shop)
    assert [each["successful"] for each in stored] == [False] * (word != "REQUEST_INVALID")


def test_a_holder_who_refuses_does_not_pay(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    client = CheckoutClient(api, merchant)
    assert refused(client.pay("refused")) == "TDSECURE_FAILED"
    (stored,) = api.listed(f"/merchants/{merchant['id']}/transactions", shop)
    assert (stored["successful"], stored["error"]["code"]) == (False, 31)


def test_a_bank_is_answered_once(api: PaymentsApi, merchant: Merchant) -> None:
    client = CheckoutClient(api, merchant)
    while len(client.hints) < 7:
        client.step()
    frame = client.post("/payments/challenges/tds-challenge/iframe").json()
    assert (frame["width"], frame["method"]) == (390, "POST")
    assert frame["action"] == "http://test/payments/payments/frames/bank"
    page = client.frame("bank", frame["fields"])
    assert len(hints_in(client.answer(page, "refused"))) == 1
    assert hints_in(client.answer(page, "confirmed")) == []


@pytest.mark.parametrize(
    ("part", "value", "word"),
    [
        ("pcn", "41000000000", "PAYMENT_CARD_NUMBER_INVALID"),
        ("pcsc", "12", "PAYMENT_CARD_SECURITY_CODE_INVALID"),
        ("pan", "4100000000000000", "REQUEST_INVALID"),
        ("pcn", 4100000000000000, "REQUEST_INVALID"),
    ],
)
def test_the_vault_takes_cards_alone(api: PaymentsApi, part: str, value: object, word: str) -> None:
    body = {"type": part, "value": value}
    assert refused(api.call("POST", "/vault", json=body, headers=VERSION)) == word


@pytest.mark.parametrize("path", ["/vault", "/payments", "/payments/challenges/authorize/fetch"])
def test_a_client_says_its_version(api: PaymentsApi, path: str) -> None:
    assert refused(api.call("POST", path, json={})) == "VERSION_MISSING"
    other = {"Accept-Version": "2"}
    assert refused(api.call("POST", path, json={}, headers=other)) == "VERSION_UNSUPPORTED"
    options: dict[str, Any] = {"content": b"{", "headers": VERSION | JSON}
    assert refused(api.call("POST", path, **options)) == "BODY_INVALID"
    assert refused(api.call("POST", path, json={}, headers=VERSION)) == "REQUEST_INVALID"


def test_what_is_wrong_is_said_at_once(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    client = CheckoutClient(api, merchant)
    card = client.body["card"]
    live = api.new_merchant(shop, test=False)
    real = client.token("pcn", "4242424242424242")
    swapped = card | {"number": card["code"], "code": card["number"]}
    for changes, word in (
        ({"integration": {"key": "nobody's"}}, "PAYMENT_INTEGRATION_KEY_UNKNOWN"),
        ({"test": None}, "TEST_MODE_MIXED"),
        ({"integration": {"key": live["key"]}}, "TEST_MODE_MIXED"),
        ({"integration": {"key": live["key"]}, "test": None}, "PAYMENT_INTEGRATION_DISABLED"),
        ({"card": swapped}, "TOKEN_TYPE_UNEXPECTED"),
        ({"card": card | {"number": card["number"][:-4] + "AAAA"}}, "TOKEN_INVALID"),
        ({"card": card | {"number": real}}, "PAYMENT_CARD_NUMBER_INVALID"),
        ({"card": card | {"expiry": {"month": 0, "year": 2066}}}, "REQUEST_INVALID"),
        ({"amount": money(0)}, "REQUEST_INVALID"),
        ({"amount": money(2**53 - 1, 0)}, "REQUEST_INVALID"),
        ({"hints": ["no hint"]}, "PAYMENT_CHALLENGE_UNAVAILABLE"),
    ):
        assert refused(client.post(**changes)) == word, changes
    api.clock.advance(15 * 60)
    assert refused(client.post()) == "TOKEN_INVALID"


@pytest.mark.parametrize(
    ("amount", "minor"),
    [
        (money(12_345, 3), 1_235),
        (money(12_340, 3), 1_234),
        (money(1, 15), 1),
        (money(7, 0), 700),
        (money(1_001, 1, "JPY"), 101),
    ],
)
def test_an_amount_that_is_finer_than_the_currency_is_rounded_up(
    api: PaymentsApi, shop: App, merchant: Merchant, amount: dict[str, object], minor: int
) -> None:
    client = CheckoutClient(api, merchant, test={"tds": {}}, amount=amount)
    paid = client.pay().json()["authorizationId"]
    assert api.transaction(shop, paid)["amount"] == minor


def test_a_token_is_for_one_payment_of_one_merchant(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    client = CheckoutClient(api, merchant, test={"tds": {}})
    client.step()
    other = api.new_merchant(shop)
    for changes in ({"integration": {"key": other["key"]}}, {"amount": money(5)}):
        again = CheckoutClient(api, merchant, card=client.body["card"], **changes)
        again.body["test"] = {"tds": {}}
        assert refused(again.pay()) == "TOKEN_INVALID"
    assert "authorizationId" in client.pay().json()


def test_scripts_of_any_origin_may_call(api: PaymentsApi, merchant: Merchant) -> None:
    for path in ("/vault", "/payments", "/payments/challenges/authorize/fetch"):
        asked = api.call("OPTIONS", path, headers={"Origin": "https://shop.example"})
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == "*"
        assert "Accept-Version" in asked.headers["access-control-allow-headers"]
        refusal = api.call("POST", path, json={})
        assert refusal.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in api.call("POST", "/merchants", json={}).headers


FORM = {
    "currency": "EUR",
    "amount": "1250",
    "card[number]": "4100 0000 0000 0000",
    "card[expiry][month]": "8",
    "card[expiry][year]": "66",
    "card[code]": "123",
}


def test_a_plain_form_pays(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    form = FORM | {"key": merchant["key"]}
    made = done(api.call("POST", "/transactions", data=form))["transaction"]["id"]
    transaction = api.transaction(shop, made)
    assert (transaction["amount"], transaction["card"]["last4"]) == (1_250, "0000")
    asked = api.call("POST", "/transactions", data=form | {"test[tds][challenge]": "yes"})
    assert (asked.status_code, asked.json()["code"]) == (400, 30)
    body = {"transactionId": made, "notes": "from the till"}
    card = done(api.call("POST", "/cards", shop, json=body))["card"]["id"]
    assert done(api.call("GET", f"/cards/{card}", shop))["card"]["last4"] == "0000"
    assert api.call("POST", "/cards", api.new_app(), json=body).status_code == 403
    live = FORM | {"key": api.new_merchant(shop, test=False)["key"]}
    assert api.call("POST", "/transactions", data=live).status_code == 400


@pytest.mark.parametrize("seed", range(3))
def test_whatever_a_client_does_with_hints_it_pays_once(
    api: PaymentsApi, shop: App, merchant: Merchant, seed: int
) -> None:
    """Repeats, reorders, mixes, loses and ages them, several calls at a time."""
    chance = Random(seed)
    client = CheckoutClient(api, merchant)
    paths = [f"/payments/challenges/{step}/{kind}" for step in Step for kind in TYPES_OF[step]] + [
        "/payments"
    ] * 4
    known: list[str] = []
    for _ in range(3):
        client.hints, ended = [], client.pay()
        known += client.hints
        assert "authorizationId" in ended.json()
        for _ in range(8):
            drawn = chance.sample(known, chance.randint(0, min(14, len(known))))
            if chance.random() < 0.6:
                drawn = chance.sample(client.hints, len(client.hints))[chance.choice((0, 0, 1)) :]
            body = client.body | {"hints": drawn}
            calls = [("POST", chance.choice(paths), None, body) for _ in range(3)]
            for response in api.together(*calls, headers=VERSION):
                assert response.status_code in (200, 400), response.text
        api.clock.advance(chance.choice((1, 60)))
    (paid,) = api.listed(f"/merchants/{merchant['id']}/transactions", shop)
    assert ended.json() == {"authorizationId": paid["id"]}


def test_ten_authorisations_at_once_are_one(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    client = CheckoutClient(api, merchant, test={"tds": {}})
    while len(client.hints) < 9:
        client.step()
    path = "/payments/challenges/authorize/fetch"
    call = ("POST", path, None, client.body | {"hints": client.hints})
    answers = api.together(*[call] * 10, headers=VERSION)
    made = {
        client.post(hints=[*client.hints, *answer.json()["hints"]]).json()["authorizationId"]
        for answer in answers
    }
    assert [made] == [{each["id"]} for each in api.listed(_paid(merchant), shop)]


def _paid(merchant: Merchant) -> str:
    return f"/merchants/{merchant['id']}/transactions"


def test_hints_expire_and_are_for_one_payment(api: PaymentsApi, merchant: Merchant) -> None:
    client = CheckoutClient(api, merchant)
    client.step()
    other = CheckoutClient(api, merchant)
    assert refused(other.post(hints=client.hints)) == "PAYMENT_CHALLENGE_UNAVAILABLE"
    dearer = client.post(amount=money(1))
    assert refused(dearer) == "PAYMENT_CHALLENGE_UNAVAILABLE"
    wrong = client.post("/payments/challenges/authorize/fetch")
    assert refused(wrong) == "PAYMENT_CHALLENGE_UNAVAILABLE"
    assert client.post("/payments/challenges/authorize/poll").status_code == 400
    assert client.post("/payments/challenges/tds/fetch").status_code == 404
    api.clock.advance(15 * 60)
    assert refused(client.post()) == "PAYMENT_CHALLENGE_UNAVAILABLE"
