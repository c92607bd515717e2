"""What a field may hold, one by one: the value that is kept, or the field that is named."""

from collections.abc import Callable

import pytest

from tollgate.actors.ledger.law.ids import is_id
from tollgate.actors.ledger.law.values import AMOUNT_MAX
from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.bodies.constraints import iban_problem
from tollgate.serve.payments.api.rejections import FieldError
from tollgate.serve.payments.reference.currencies import Currencies, CurrencyEntry

LENGTHS = {"DK": 18, "GB": 22, "NO": 15}
COUNTRIES = frozenset({"DK", "NO"})


def currencies() -> Currencies:
    table = {
        "DKK": CurrencyEntry(code("DKK"), 2, is_fundable=True),
        "EUR": CurrencyEntry(code("EUR"), 2, is_fundable=True),
        "JPY": CurrencyEntry(code("JPY"), 0),
        "HRK": CurrencyEntry(code("HRK"), 2, is_deprecated=True),
    }
    return Currencies(1, table)


def code(text: str) -> constraints.Currency:
    return constraints.Currency(text)


def field_of(result: object) -> str:
    assert isinstance(result, FieldError), f"{result!r} was accepted"
    assert result.message
    return result.field


@pytest.mark.parametrize(
    ("value", "is_form", "expected"),
    [
        (1, False, 1),
        (995, False, 995),
        (AMOUNT_MAX, False, AMOUNT_MAX),
        (100.0, False, 100),
        (float(2**53 - 1), False, AMOUNT_MAX),
        ("100", True, 100),
        ("007", True, 7),
    ],
)
def test_an_amount_is_taken(value: object, is_form: bool, expected: int) -> None:
    found = constraints.amount(value, is_form=is_form)
    assert found == expected
    assert isinstance(found, int)


@pytest.mark.parametrize("is_form", [True, False])
@pytest.mark.parametrize(
    "value",
    [0, -1, 0.0, -5.0, 1.5, True, False, None, [], {}, AMOUNT_MAX + 1, 2.0**53, float("nan")],
)
def test_an_amount_is_refused(value: object, is_form: bool) -> None:
    assert field_of(constraints.amount(value, "amount.value", is_form=is_form)) == "amount.value"


@pytest.mark.parametrize("value", ["", "0", "-1", "+1", "1.0", "1e3", "١", "9" * 17, " 1", "0x1"])
def test_digits_of_a_form_are_refused(value: str) -> None:
    assert field_of(constraints.amount(value, is_form=True)) == "amount"


def test_digits_are_for_forms_alone() -> None:
    assert field_of(constraints.amount("100")) == "amount"


def test_an_amount_beyond_every_float_is_refused() -> None:
    assert field_of(constraints.amount(float("inf"))) == "amount"
    assert field_of(constraints.amount(10**400)) == "amount"


@pytest.mark.parametrize(("value", "is_meant"), [("yes", True), ("no", False), ("1", True)])
def test_a_boolean_of_a_form(value: str, is_meant: bool) -> None:
    assert constraints.flag(value, "test", is_form=True) is is_meant
    assert field_of(constraints.flag(value, "test")) == "test"


@pytest.mark.parametrize("value", [True, False])
def test_a_boolean_of_json(value: bool) -> None:
    assert constraints.flag(value, "test") is value
    assert field_of(constraints.flag(int(value), "test")) == "test"


@pytest.mark.parametrize("value", ["Coffee & Cake", "", "x" * 22, "~ !\"#'"])
def test_a_descriptor_is_taken(value: str) -> None:
    assert constraints.descriptor(value) == value


@pytest.mark.parametrize("value", ["x" * 23, "Café", "a\tb", "a\nb", "\x7f", 5, None, "\x00"])
def test_a_descriptor_is_refused(value: object) -> None:
    assert field_of(constraints.descriptor(value)) == "descriptor"


@pytest.mark.parametrize(
    "value", ["shop@example.com", "a+b@shop.example.org", "ü@exämple.de", "x@shop.test"]
)
def test_an_email_is_taken(value: str) -> None:
    assert constraints.email(value) == value


@pytest.mark.parametrize(
    "value",
    [
        *("", "john", "john@", "@example.com", "a@b@example.com", "a b@example.com", 1, None),
        *("Cake <shop@example.com>", "shop@example.com\r\nBcc: all@example.com", "a@localhost"),
        *("a" * 65 + "@example.com", "a@" + "b" * 250 + ".com", "a,b@example.com"),
    ],
)
def test_an_email_is_refused(value: object) -> None:
    assert field_of(constraints.email(value)) == "email"


@pytest.mark.parametrize(
    "value",
    [
        *("https://example.com", "http://example.com/shop?x=1#top", "example.com", "localhost"),
        *("example.com:8080/shop", "exämple.de", "shop_1.example.com", "https://example.com."),
    ],
)
def test_a_website_is_taken(value: str) -> None:
    assert constraints.website(value) == value


@pytest.mark.parametrize(
    "value",
    [
        *("", "ftp://example.com", "javascript://example.com", "https://", "https:///x", "a b.com"),
        *("http://[::1", "example.com:99999", "example.com:x", "-a.com", "a..b", None, 5),
        *("https://example.com/\r\nX: y", "x" * 2_049),
    ],
)
def test_a_website_is_refused(value: object) -> None:
    assert field_of(constraints.website(value)) == "website"


def test_names_lose_what_nobody_sees() -> None:
    assert constraints.name(" Coffee\x00 \u202e& Cake\r\n\u2028 ") == "Coffee & Cake"
    assert constraints.name("Ærø 🙂 \u0627\u200c\u0628") == "Ærø 🙂 \u0627\u200c\u0628"
    assert field_of(constraints.name("x" * 257)) == "name"
    assert field_of(constraints.name(5, "app.name")) == "app.name"


@pytest.mark.parametrize(
    ("check", "good", "bad", "field"),
    [
        (lambda v: constraints.country(v, COUNTRIES), "DK", ["dk", "XX", "", 1], "company.country"),
        (constraints.company_number, "12 34-56.A/B", ["", "x" * 65, "a;b", 7], "company.number"),
        (lambda v: constraints.funding_currency(v, currencies()), "DKK", ["JPY"], "currency"),
        (lambda v: constraints.funding_currency(v, currencies()), "EUR", ["HRK", "?"], "currency"),
    ],
)
def test_a_code_of_a_list(
    check: Callable[[object], object], good: str, bad: list[object], field: str
) -> None:
    assert check(good) == good
    assert {field_of(check(each)) for each in bad} == {field}


def test_a_currency_for_something_new() -> None:
    found = constraints.currency("JPY", currencies())
    assert isinstance(found, CurrencyEntry)
    assert found.exponent == 0
    for bad in ("HRK", "XXX", "jpy", "", None, ["JPY"]):
        assert field_of(constraints.currency(bad, currencies(), "amount.currency"))


@pytest.mark.parametrize(
    "value",
    ["DK5000400440116243", "dk50 0040 0440 1162 43", "GB29NWBK60161331926819", "NO9386011117947"],
)
def test_an_iban_is_taken(value: str) -> None:
    assert constraints.iban(value, LENGTHS) == value.replace(" ", "").upper()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("DK5000400440116244", "wrong check digits"),
        ("DK0500400440116243", "wrong check digits"),
        ("DK500040044011624", "must have 18 characters in DK, not 17"),
        ("US64SVBKUS6S3300958879", "where there are no IBANs"),
        ("D15000400440116243", "two letters, two digits"),
        ("DK50-0400440116243", "two letters, two digits"),
        ("DK٥٠00400440116243", "two letters, two digits"),
        ("", "two letters, two digits"),
    ],
)
def test_an_iban_is_refused(value: str, why: str) -> None:
    assert why in (iban_problem(value, LENGTHS) or "")
    assert field_of(constraints.iban(value, LENGTHS)) == "bank.iban"
    assert field_of(constraints.iban(5, LENGTHS)) == "bank.iban"


def test_custom_data_is_kept_as_canonical_json() -> None:
    assert constraints.custom({"b": [1, 2.5, None], "a": "é"}) == '{"a":"é","b":[1,2.5,null]}'


def nested(levels: int) -> object:
    return {"x": nested(levels - 1)} if levels else 1


def test_custom_data_has_bounds() -> None:
    assert constraints.custom(nested(32)) == '{"x":' * 32 + "1" + "}" * 32
    assert field_of(constraints.custom(nested(33))) == "custom"
    room = 50 * 1024 - len('{"x":""}')
    assert isinstance(constraints.custom({"x": "y" * room}), str)
    assert field_of(constraints.custom({"x": "y" * (room + 1)})) == "custom"
    assert field_of(constraints.custom({"x": "é" * (room // 2 + 1)})) == "custom"
    for bad in ([{}], "text", 5, None, True):
        assert field_of(constraints.custom(bad)) == "custom"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("55006bdfe0308c4cbfdbd0e1", True),
        ("55006BDFE0308C4CBFDBD0E1", False),
        ("55006bdfe0308c4cbfdbd0e", False),
        ("55006bdfe0308c4cbfdbd0e1\n", False),
    ],
)
def test_the_shape_of_an_id(text: str, is_one: bool) -> None:
    assert is_id(text) is is_one
