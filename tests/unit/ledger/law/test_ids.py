"""Ids rise, whatever the clock does."""

import pytest

from tollgate.actors.ledger.law.ids import is_id, is_merchant_id, merchant_id, next_id
from tollgate.actors.ledger.law.values import DIRECTORY, BookId

BOOK = "695db080000000002a000000"


@pytest.mark.parametrize(
    ("last", "at_ms", "expected"),
    [
        # within the second of the last one, in a later one, and when the clock went back
        (BOOK, 0x695DB080 * 1000 + 999, "695db080000000002a000001"),
        (BOOK, 0x695DB081 * 1000, "695db081000000002a000000"),
        (BOOK, 0x695DB07F * 1000, "695db080000000002a000001"),
        ("695db080000000002a00000f", 0x695DB080 * 1000, "695db080000000002a000010"),
        # the counter is nearly used up, and then it is
        ("695db080000000002afffffe", 0x695DB080 * 1000, "695db080000000002affffff"),
        ("695db080000000002affffff", 0x695DB080 * 1000, "695db081000000002a000000"),
        ("695db081000000002a000000", 0x695DB080 * 1000, "695db081000000002a000001"),
        (DIRECTORY, 0x695DB080 * 1000, "695db0800000000000000000"),
    ],
)
def test_the_next_id_is_above_the_last(last: str, at_ms: int, expected: str) -> None:
    assert next_id(last, at_ms) == expected
    assert expected > last


def test_a_merchant_has_the_number_of_its_book() -> None:
    assert merchant_id(42, 0x695DB080 * 1000 + 1) == BOOK
    assert merchant_id(43, 0x695DB080 * 1000) > merchant_id(42, 0x695DB080 * 1000)


@pytest.mark.parametrize("number", [0, -1, 2**40])
def test_the_directory_numbers_from_one_to_the_end(number: int) -> None:
    with pytest.raises(AssertionError, match="numbers"):
        merchant_id(number, 0)


@pytest.mark.parametrize(
    ("text", "is_one", "is_merchants"),
    [
        (BOOK, True, True),
        (DIRECTORY, True, False),
        ("695db0800000000000000001", True, False),
        (BOOK.upper(), False, False),
        (BOOK[:-1], False, False),
        (BOOK + "0", False, False),
        (BOOK + "\n", False, False),
        ("", False, False),
        ("operator", False, False),
    ],
)
def test_the_form_of_ids(text: str, is_one: bool, is_merchants: bool) -> None:
    assert is_id(text) is is_one
    assert is_merchant_id(BookId(text)) is is_merchants
