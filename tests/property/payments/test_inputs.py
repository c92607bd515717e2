"""Whatever comes in: readers give a value that holds their promise, or an error; never anything
else, and never a card number."""

import json
from base64 import b64encode
from fractions import Fraction
from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from tests.support.payments.api import REFERENCE
from tollgate.actors.ledger.law.values import AMOUNT_MAX, Currency
from tollgate.serve.net.guarded_client import TargetPolicy
from tollgate.serve.net.public_addresses import is_public
from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.bodies.constraints import iban_problem
from tollgate.serve.payments.api.bodies.model_reader import read_model
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.bodies.requests import SandboxPayment, behaviour_of
from tollgate.serve.payments.api.bodies.strict_json import JsonError, canonical_json, read_json
from tollgate.serve.payments.api.bodies.wire_types import Reading
from tollgate.serve.payments.api.rejections import BadRequest, FieldError
from tollgate.serve.payments.network.card import PlainCard, read_card
from tollgate.serve.payments.network.simulated_behaviour import CardBehaviour
from tollgate.serve.payments.reference.currencies import Currencies, CurrencyEntry
from tollgate.serve.payments.reference.exchange_rates import DatedRates, TableOfRates
from tollgate.serve.payments.secrets.keys import (
    KeyDigests,
    has_checksum,
    is_key,
    new_app_key,
    read_basic,
)
from tollgate.serve.payments.secrets.master_secret import MasterSecret, SealBroken
from tollgate.serve.payments.webhooks.calls import webhook_url
from tollgate.serve.payments.webhooks.signature import is_signed, signature

SECRET = MasterSecret(b"s" * 32)
CODES = [Currency(code) for code in ("EUR", "DKK", "JPY", "BHD")]
EXPONENTS = dict(zip(CODES, (2, 2, 0, 3), strict=True))
TABLE = Currencies(1, {code: CurrencyEntry(code, EXPONENTS[code]) for code in CODES})

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
anything = scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(), scalars, max_size=3)
digits = st.text("0123456789", min_size=12, max_size=19)


@given(anything, st.booleans())
def test_an_amount_is_one_or_an_error(value: object, is_form: bool) -> None:
    found = constraints.amount(value, is_form=is_form)
    assert isinstance(found, FieldError) or (type(found) is int and 1 <= found <= AMOUNT_MAX)


@given(st.integers(1, AMOUNT_MAX))
def test_every_amount_is_taken_however_it_is_written(amount: int) -> None:
    assert constraints.amount(amount) == amount
    assert constraints.amount(str(amount), is_form=True) == amount
    if amount < 2**52:
        assert constraints.amount(float(amount)) == amount


@given(anything)
def test_texts_are_harmless_or_an_error(value: object) -> None:
    for check in (constraints.name, constraints.descriptor, constraints.email, constraints.website):
        found = check(value)
        assert isinstance(found, FieldError | str)
        if isinstance(found, str):
            assert not set(found) & set("\r\n\0\u2028\u202e")
    found = constraints.descriptor(value)
    assert isinstance(found, FieldError) or (found.isascii() and len(found) <= 22)


@given(st.binary(max_size=200))
def test_bytes_are_json_or_refused(text: bytes) -> None:
    try:
        value = read_json(text)
    except JsonError:
        return
    assert json.loads(canonical_json(value)) == value


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), json_values, max_size=4))
def test_custom_data_comes_back_as_it_was(value: dict[str, object]) -> None:
    try:
        sent = json.dumps(value).encode()
        found = constraints.custom(read_json(sent))
    except JsonError:  # (half a surrogate pair, somewhere)
        return
    assert isinstance(found, str | FieldError)
    if isinstance(found, str):
        assert json.loads(found) == value
        assert constraints.custom(json.loads(found)) == found, "the same again"


@given(
    digits,
    st.integers(1, 12),
    st.integers(2000, 2099),
    st.text("0123456789", min_size=3, max_size=4),
)
def test_a_card_shows_neither_number_nor_code(
    number: str, month: int, year: int, code: str
) -> None:
    card = read_card(number, month, year, code)
    assert isinstance(card, PlainCard)
    shown = f"{card!r} {card} {[card]!r} {card.expiry_ms}"
    assert number not in shown
    assert number[6:-4] not in repr(card)


@given(anything, anything, anything, anything)
def test_a_card_of_anything_is_a_card_or_a_problem(
    number: object, month: object, year: object, code: object
) -> None:
    read_card(number, month, year, code)


@given(anything | st.dictionaries(st.sampled_from(["card", "tds", "fingerprint"]), anything))
def test_a_test_object_of_anything_is_one_or_an_error(value: object) -> None:
    body, reading = Body({"test": value}), Reading(REFERENCE, TargetPolicy(), is_form=False)
    try:
        wanted = read_model(SandboxPayment, body, reading)
    except BadRequest as refused:
        fields = [each.field for each in refused.errors]
    else:
        fields = []
        assert isinstance(behaviour_of(wanted.test), CardBehaviour)
    assert all(field.startswith("test") for field in fields)


@given(st.text("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=14, max_size=14), st.data())
def test_an_iban_knows_a_slip(account: str, data: st.DataObject) -> None:
    check = 98 - int("".join(str(int(each, 36)) for each in account + "DK00")) % 97
    iban = f"DK{check:02d}{account}"
    assert iban_problem(iban, {"DK": 18}) is None
    place = data.draw(st.integers(4, 17))
    other = data.draw(st.sampled_from("0123456789").filter(lambda each: each != iban[place]))
    if iban[place].isdecimal():
        assert iban_problem(iban[:place] + other + iban[place + 1 :], {"DK": 18}) is not None


@given(
    st.text(max_size=100) | st.binary(max_size=100).map(lambda b: f"Basic {b64encode(b).decode()}")
)
def test_a_header_of_anything_is_a_key_or_none(header: str) -> None:
    key = read_basic(header)
    assert key is None or is_key(key)
    assert len(KeyDigests(SECRET).presented(header)) == 64


@given(st.integers(0, 38), st.sampled_from("0aZ_-"))
def test_a_key_with_a_slip_has_no_checksum(place: int, other: str) -> None:
    key = new_app_key()
    slipped = key[:place] + other + key[place + 1 :]
    assert has_checksum(slipped) is (slipped == key)


@given(st.text(st.characters(codec="utf-8"), max_size=200), st.text(max_size=20))
def test_what_is_sealed_is_opened_for_its_context_alone(text: str, context: str) -> None:
    context = context.encode("utf-8", "ignore").decode()
    sealed = SECRET.sealer("x").seal(text, context)
    assert SECRET.sealer("x").open(sealed, context) == text
    try:
        SECRET.sealer("x").open(sealed, f"{context}.")
    except SealBroken:
        return
    raise AssertionError("another context opened it")


@given(anything | st.text().map(lambda rest: f"https://{rest}"))
def test_an_address_of_anything_is_one_or_an_error(value: object) -> None:
    found = webhook_url(value, TargetPolicy())
    assert isinstance(found, FieldError) or found.lower().startswith("https://")


@given(st.integers(0, 2**32 - 1))
def test_a_private_address_stays_one_in_every_dress(number: int) -> None:
    plain = ip_address(number)
    for dress in (f"::ffff:{plain}", f"64:ff9b::{number >> 16:x}:{number & 0xFFFF:x}"):
        assert is_public(ip_address(dress)) == is_public(plain)


@given(st.binary(max_size=50), st.binary(max_size=50), st.integers(0, 2**40))
def test_a_signature_is_of_one_body(body: bytes, other: bytes, at_s: int) -> None:
    header = signature(body, ["secret"], at_s)
    assert is_signed(header, body, "secret", at_s)
    assert is_signed(header, other, "secret", at_s) is (body == other)


rates = st.decimals("0.0001", "99999999", places=6).map(str)


@given(st.fixed_dictionaries(dict.fromkeys(CODES[1:], rates)))
def test_rates_are_exact_both_ways_and_across(texts: dict[Currency, str]) -> None:
    per_base = {CODES[0]: Fraction(1)} | {code: Fraction(text) for code, text in texts.items()}
    table = TableOfRates(TABLE, [DatedRates("2025-01-01", 0, per_base)])

    def worth(source: Currency, target: Currency) -> Fraction:
        found = table.rate(source, target, 1)
        assert found is not None
        assert 0 < found.numerator <= AMOUNT_MAX
        assert 0 < found.denominator <= AMOUNT_MAX
        return Fraction(found.numerator, found.denominator)

    for source in CODES:
        for target in CODES:
            exact = (
                per_base[target]
                / per_base[source]
                * Fraction(10) ** (EXPONENTS[target] - EXPONENTS[source])
            )
            error = abs(worth(source, target) / exact - 1)
            assert error < Fraction(1, 10**12)
            assert abs(worth(source, target) * worth(target, source) - 1) < Fraction(1, 10**11)
