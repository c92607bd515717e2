"""Card data in: what is read, and that nothing of it comes out again."""

import copy
import pickle
from dataclasses import astuple

import pytest

from tollgate.actors.ledger.law.values import CardBrand
from tollgate.serve.payments.network.card import CardProblem, PlainCard, end_of_month_ms, read_card

NUMBER = "4100000000000000"
CODE = "739"
AUGUST_2066_MS = 3_050_524_799_999  # 2066-08-31T23:59:59.999Z


def card(number: object = NUMBER, code: object = CODE) -> PlainCard:
    found = read_card(number, 8, 2066, code)
    assert isinstance(found, PlainCard), found
    return found


@pytest.mark.parametrize(
    "number", [NUMBER, "4100 0000 0000 0000", "4100-0000-0000-0000", 41 * 10**14]
)
def test_a_number_may_stand_in_groups(number: object) -> None:
    assert card(number).find_in({NUMBER: "found"}) == "found"
    assert card(number).find_in({"4200000000000000": "found"}) is None


@pytest.mark.parametrize(("month", "year"), [(8, 2066), ("08", "66"), ("8", "2066"), (8, 66)])
def test_an_expiry_is_the_end_of_its_month(month: object, year: object) -> None:
    found = read_card(NUMBER, month, year, CODE)
    assert isinstance(found, PlainCard)
    assert found.expiry_ms == AUGUST_2066_MS


def test_a_month_ends_a_millisecond_before_the_next() -> None:
    assert end_of_month_ms(1999, 12) == 946_684_799_999
    assert end_of_month_ms(2028, 2) - end_of_month_ms(2028, 1) == 29 * 86_400_000


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        (("", 8, 2066, CODE), 17, "card.number"),
        ((None, None, None, None), 17, "card.number"),
        ((NUMBER, None, 2066, CODE), 18, "card.expiry.month"),
        ((NUMBER, 8, " ", CODE), 19, "card.expiry.year"),
        ((NUMBER, 8, 2066, None), 20, "card.code"),
        (("41000000000", 8, 2066, CODE), 3, "card.number"),
        (("4" * 20, 8, 2066, CODE), 3, "card.number"),
        (("41OO000000000000", 8, 2066, CODE), 3, "card.number"),
        (("٤١٠٠٠٠٠٠٠٠٠٠٠٠٠٠", 8, 2066, CODE), 3, "card.number"),
        ((["4100000000000000"], 8, 2066, CODE), 3, "card.number"),
        ((True, 8, 2066, CODE), 3, "card.number"),
        ((10**30, 8, 2066, CODE), 3, "card.number"),
        ((NUMBER, 13, 2066, CODE), 5, "card.expiry"),
        ((NUMBER, 0, 2066, CODE), 5, "card.expiry"),
        ((NUMBER, 8, 1999, CODE), 5, "card.expiry"),
        ((NUMBER, 8, 2100, CODE), 5, "card.expiry"),
        ((NUMBER, "aug", 2066, CODE), 5, "card.expiry"),
        ((NUMBER, 8.0, 2066, CODE), 5, "card.expiry"),
        ((NUMBER, 8, 2066, "12"), 4, "card.code"),
        ((NUMBER, 8, 2066, "12345"), 4, "card.code"),
        ((NUMBER, 8, 2066, "12x"), 4, "card.code"),
    ],
)
def test_a_problem_has_its_code(fields: tuple[object, ...], code: int, field: str) -> None:
    assert read_card(*fields) == CardProblem(code, field)


def test_a_card_without_a_code_is_read_where_none_is_needed() -> None:
    found = read_card(NUMBER, 8, 2066, None, needs_code=False)
    assert isinstance(found, PlainCard)
    assert not found.summary(CardBrand.VISA, "").has_code


def test_a_summary_keeps_what_may_be_kept() -> None:
    summary = card().summary(CardBrand.VISA, "token")
    assert astuple(summary) == ("410000", "0000", AUGUST_2066_MS, CardBrand.VISA, True, "token")
    assert NUMBER not in repr(summary)
    assert CODE not in repr(summary)


@pytest.mark.parametrize("show", [repr, str, "{!r}".format, lambda each: f"{[each]} {each}"])
def test_a_card_does_not_show_itself(show: object) -> None:
    assert callable(show)
    shown = show(card())
    assert "PlainCard(…)" in shown
    assert "4100" not in shown
    assert CODE not in shown


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_card_stays_in_its_process(take: object) -> None:
    assert callable(take)
    with pytest.raises(TypeError, match="stays in the process") as caught:
        take(card())
    assert "4100" not in str(caught.value)


def test_a_card_has_no_attribute_with_the_number_or_the_code() -> None:
    public = [name for name in dir(PlainCard) if not name.startswith("_")]
    assert sorted(public) == [
        *("brand", "could_be_real", "disclosed", "expiry_ms", "find_in", "summary"),
    ]
    shown = [getattr(card(), name) for name in public]
    assert not [each for each in shown if NUMBER in repr(each)]
    with pytest.raises(TypeError, match="vars"):
        vars(card())


@pytest.mark.parametrize(
    ("number", "could_be_real"),
    [
        (NUMBER, False),
        ("1000000000000000", False),
        ("4242424242424242", True),
        ("5555555555554444", True),
        ("378282246310005", True),
        ("4242424242424241", False),
    ],
)
def test_the_check_digit(number: str, could_be_real: bool) -> None:
    assert card(number).could_be_real is could_be_real
