"""The simulated card network: each word of the `test` object, and what a server must obey."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.payments.api import REFERENCE
from tollgate.actors.ledger.law.values import CardBrand, CardSummary, Currency, ProcessingError
from tollgate.serve.net.guarded_client import TargetPolicy
from tollgate.serve.payments.api.bodies.model_reader import read_model
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.bodies.requests import SandboxPayment, behaviour_of
from tollgate.serve.payments.api.bodies.wire_types import Reading
from tollgate.serve.payments.api.rejections import BadRequest
from tollgate.serve.payments.network.card import PlainCard, read_card
from tollgate.serve.payments.network.card_network import (
    Authorisation,
    CardNetworks,
    Charge,
    PaymentRefused,
)
from tollgate.serve.payments.network.simulated_behaviour import CardBehaviour, TdsOptions
from tollgate.serve.payments.network.simulator import GOOD_CARDS, SimulatedNetwork
from tollgate.serve.payments.reference.processing_errors import ErrorEntry, ProcessingErrors

USUAL = {6, 7, 8, 9, 10, 11, 12, 25}
CODES = (*range(1, 23), *range(25, 32))
ERRORS = ProcessingErrors(
    1,
    {
        code: ErrorEntry(ProcessingError(code, f"error {code}", True, False), code in USUAL)
        for code in CODES
    },
)
NETWORK = SimulatedNetwork(ERRORS, ManualClock(0))
NOW_MS = 1_800_000_000_000
EUR_10 = Charge(Currency("EUR"), 2, 1_000, NOW_MS)
TEN = {"currency": "EUR", "exponent": 2, "value": 1_000}
NINE = {"currency": "EUR", "exponent": 2, "value": 999}


def options(value: Any, *, is_form: bool = False) -> CardBehaviour:
    """As a payment's `test` asks for it. Raises BadRequest."""
    body = Body({"test": value}, is_form)
    wanted = read_model(SandboxPayment, body, Reading(REFERENCE, TargetPolicy(), is_form))
    return behaviour_of(wanted.test)


def plain(number: str = "4100000000000000", year: int = 2066) -> PlainCard:
    found = read_card(number, 8, year, "123")
    assert isinstance(found, PlainCard)
    return found


def authorise(
    test: Any = None, card: PlainCard | None = None, charge: Charge = EUR_10
) -> Authorisation | PaymentRefused:
    asked = NETWORK.authorise(card or plain(), charge, options(test or {}))
    return asyncio.run(asked)


def verdict(test: Any = None, card: PlainCard | None = None, charge: Charge = EUR_10) -> int:
    """The code of the error, or 0."""
    found = authorise(test, card, charge)
    assert isinstance(found, Authorisation), found
    return found.error.code if found.error else 0


def again(card: CardSummary, amount: int, charge: Charge = EUR_10) -> int:
    found = asyncio.run(NETWORK.authorise_again(card, replace(charge, amount=amount)))
    assert found.card == card
    assert found.tds == ""
    return found.error.code if found.error else 0


def known(test: Any = None) -> CardSummary:
    """A card that the network has seen in a good payment of one cent."""
    found = authorise(test, charge=replace(EUR_10, amount=1))
    assert isinstance(found, Authorisation)
    assert found.error is None
    return found.card


@pytest.mark.parametrize(
    ("number", "scheme"),
    [
        ("4100000000000000", CardBrand.VISA),
        ("1000000000000000", CardBrand.VISA),
        ("5100000000000000", CardBrand.MASTERCARD),
    ],
)
def test_a_good_card_is_good(number: str, scheme: CardBrand) -> None:
    found = authorise(card=plain(number))
    assert isinstance(found, Authorisation)
    assert (found.error, found.tds) == (None, "")
    assert (found.card.bin, found.card.last4) == (number[:6], number[-4:])
    assert (found.card.scheme, found.card.has_code) == (scheme, True)
    assert number not in repr(found)


def test_the_bad_card_is_an_invalid_number() -> None:
    assert verdict(card=plain("4200000000000000")) == 3


@pytest.mark.parametrize("number", ["4242424242424242", "5555555555554444"])
def test_what_could_be_a_real_card_is_not_tried(number: str) -> None:
    found = authorise(card=plain(number))
    assert isinstance(found, PaymentRefused)
    assert found.field == "card.number"
    assert "could be a real card" in found.message
    assert number[-4:] not in repr(found)


def test_nor_is_any_other_number() -> None:
    found = authorise(card=plain("4300000000000000"))
    assert isinstance(found, PaymentRefused)
    assert "not one of the test cards" in found.message


def test_no_test_card_could_be_real() -> None:
    assert not any(plain(number).could_be_real for number in GOOD_CARDS)


@pytest.mark.parametrize(
    ("test", "code"),
    [
        ({"card": {"scheme": "unsupported"}}, 29),
        ({"card": {"scheme": "unknown"}}, 29),
        ({"card": {"code": "invalid"}}, 4),
        ({"card": {"status": "invalid"}}, 3),
        ({"card": {"status": "expired"}}, 6),
        ({"card": {"status": "disabled"}}, 9),
        ({"card": {"status": "lost"}}, 10),
        ({"card": {"limit": NINE}}, 25),
        ({"card": {"limit": TEN}}, 0),
        ({"card": {"balance": NINE}}, 7),
        ({"card": {"balance": TEN}}, 0),
        ({"card": {"limit": NINE, "balance": NINE}}, 25),
        ({"card": {"limit": {"currency": "EUR", "exponent": 0, "value": 9}}}, 25),
        ({"card": {"limit": {"currency": "EUR", "exponent": 0, "value": 10}}}, 0),
        ({"card": {"limit": {"currency": "EUR", "exponent": 4, "value": 99_999}}}, 25),
        ({"card": {"status": "lost", "code": "invalid", "scheme": "unknown"}}, 29),
        ({"card": {"status": "valid", "code": "valid", "scheme": "supported"}}, 0),
        ({"fingerprint": "timeout"}, 0),
        ({"tds": {"status": "rejected"}}, 31),
        ({"tds": {"status": "rejected"}, "card": {"status": "lost"}}, 10),
        (True, 0),
    ],
)
def test_the_test_object_is_obeyed(test: Any, code: int) -> None:
    assert verdict(test) == code


@pytest.mark.parametrize(
    ("tds", "kept"),
    [
        ({}, "full"),
        ({"status": "authenticated", "challenge": True}, "full"),
        ({"status": "attempted", "fingerprint": "unavailable"}, "attempt"),
        ({"status": "unavailable", "fingerprint": "timeout"}, ""),
    ],
)
def test_3d_secure_is_kept_with_the_payment(tds: Any, kept: str) -> None:
    found = authorise({"tds": tds})
    assert isinstance(found, Authorisation)
    assert (found.error, found.tds) == (None, kept)


def test_a_card_expires_after_its_month() -> None:
    card = plain(year=2026)
    last_ms = card.expiry_ms
    assert verdict(card=card, charge=replace(EUR_10, at_ms=last_ms)) == 0
    assert verdict(card=card, charge=replace(EUR_10, at_ms=last_ms + 1)) == 6


@pytest.mark.parametrize("name", ["limit", "balance"])
def test_money_in_another_currency_is_refused(name: str) -> None:
    found = authorise({"card": {name: {"currency": "DKK", "exponent": 2, "value": 1}}})
    assert found == PaymentRefused(f"test.card.{name}.currency", "must be that of the payment, EUR")


@pytest.mark.parametrize(
    ("test", "field"),
    [
        ([{}], "test"),
        ("yes", "test"),
        (1, "test"),
        ({"cards": {}}, "test.cards"),
        ({"card": [{}]}, "test.card"),
        ({"card": {"number": "4100000000000000"}}, "test.card.number"),
        ({"card": {"status": "gone"}}, "test.card.status"),
        ({"card": {"status": {}}}, "test.card.status"),
        ({"card": {"limit": {"currency": "EUR", "exponent": 2}}}, "test.card.limit.value"),
        ({"card": {"limit": TEN | {"value": -1}}}, "test.card.limit.value"),
        ({"card": {"limit": TEN | {"value": 1.5}}}, "test.card.limit.value"),
        ({"card": {"limit": TEN | {"exponent": 9}}}, "test.card.limit.exponent"),
        ({"card": {"limit": TEN | {"currency": "EURO"}}}, "test.card.limit.currency"),
        ({"card": {"limit": TEN | {"value": True}}}, "test.card.limit.value"),
        ({"fingerprint": True}, "test.fingerprint"),
        ({"tds": {"challenge": "yes"}}, "test.tds.challenge"),
        ({"tds": {"status": "declined"}}, "test.tds.status"),
    ],
)
def test_a_test_object_that_is_not_understood_is_refused(test: Any, field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        options(test)
    assert [each.field for each in refused.value.errors] == [field]


def test_a_form_has_texts() -> None:
    limit = {"currency": "EUR", "exponent": "2", "value": "999"}
    form = {"card": {"limit": limit}, "tds": {"challenge": "yes"}}
    expected = options({"card": {"limit": NINE}, "tds": {"challenge": True}})
    assert options(form, is_form=True) == expected
    with pytest.raises(BadRequest) as refused:
        options(form)
    assert {each.field for each in refused.value.errors} == {
        "test.card.limit.exponent",
        "test.card.limit.value",
        "test.tds.challenge",
    }


def test_what_is_true_or_left_out_is_good() -> None:
    for value in (True, None, "", {}, {"card": {}}, {"card": {"limit": None}, "tds": None}):
        assert options(value) == CardBehaviour()
    assert options({"tds": {}}) == CardBehaviour(tds=TdsOptions())


def test_a_misspelt_member_is_offered_the_nearest() -> None:
    with pytest.raises(BadRequest, match="is unknown; did you mean currency"):
        options({"card": {"limit": TEN | {"curency": "EUR"}}})


@pytest.mark.parametrize("code", sorted(USUAL))
def test_an_amount_fails_a_servers_payment(code: int) -> None:
    assert again(known(), 666_000 + code) == code
    assert again(known(), 77_666_000 + code) == code
    holders = verdict(charge=replace(EUR_10, amount=666_000 + code))
    assert holders == (code if code in (8, 11, 12) else 0), "what a word gives needs no amount"


@pytest.mark.parametrize("amount", [1, 200, 300, 995, 666_000, 666_001, 666_013, 666_100, 25])
def test_any_other_amount_does_not(amount: int) -> None:
    assert again(known(), amount) == 0


def test_a_known_card_keeps_its_limit_and_its_balance() -> None:
    assert again(known({"card": {"limit": TEN}}), 1_000) == 0
    assert again(known({"card": {"limit": TEN}}), 1_001) == 25
    assert again(known({"card": {"balance": TEN}}), 1_000) == 0
    assert again(known({"card": {"balance": TEN}}), 1_001) == 7
    in_crowns = Charge(Currency("DKK"), 2, 1, NOW_MS)
    assert again(known({"card": {"balance": TEN}}), 1_001, in_crowns) == 0


def test_a_known_card_expires() -> None:
    card = known()
    assert again(card, 1, replace(EUR_10, at_ms=card.expiry_ms)) == 0
    assert again(card, 1, replace(EUR_10, at_ms=card.expiry_ms + 1)) == 6


def test_a_card_of_an_import_has_no_token_and_is_good() -> None:
    assert again(replace(known(), network_token=""), 200) == 0


@pytest.mark.parametrize("token", ["other.abc", "simulated.", "simulated.%%", "simulated.bnVsbA"])
def test_a_token_of_another_network_fails_in_general(token: str) -> None:
    assert again(replace(known(), network_token=token), 200) == 12


def test_live_merchants_need_a_network_of_their_own() -> None:
    networks = CardNetworks(test=NETWORK)
    assert networks.of(is_test=True) is NETWORK
    refused = networks.of(is_test=False)
    assert isinstance(refused, PaymentRefused)
    assert "has no card network" in refused.message
    assert CardNetworks(test=NETWORK, live=NETWORK).of(is_test=False) is NETWORK
