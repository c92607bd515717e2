"""Ids rise, whatever the clock does, and tell nothing of each other."""

import pytest

from tollgate.actors.ledger.law.ids import (
    GAP_MAX,
    NUMBER_MAX,
    START_MAX,
    is_id,
    is_merchant_id,
    next_ids,
)
from tollgate.actors.ledger.law.values import DIRECTORY, BookId

SECOND = 0x695DB080
OLD = "695db080000000002a000000"
FULL = f"{SECOND:08x}{NUMBER_MAX:016x}"


def parts(entity: str) -> tuple[int, int]:
    return int(entity[:8], 16), int(entity[8:], 16)


@pytest.mark.parametrize(
    ("last", "at_s"),
    [
        # within the second of the last one, when the clock went back, and after an id of before
        (f"{SECOND:08x}{2**40:016x}", SECOND),
        (f"{SECOND:08x}{2**40:016x}", SECOND - 1),
        (OLD, SECOND),
        (OLD, 0),
    ],
)
def test_within_a_second_ids_grow_by_gaps(last: str, at_s: int) -> None:
    for entity in next_ids(last, at_s * 1000 + 999, "operation", 100):
        second, number = parts(entity)
        assert second == SECOND
        assert 1 <= number - parts(last)[1] <= GAP_MAX
        last = entity


@pytest.mark.parametrize(
    ("last", "at_s", "expected"),
    [
        (OLD, SECOND + 1, SECOND + 1),
        (FULL, SECOND + 9, SECOND + 9),
        (DIRECTORY, SECOND, SECOND),
        # no room is left: the ids run ahead
        (FULL, SECOND, SECOND + 1),
        (FULL, 0, SECOND + 1),
    ],
)
def test_a_new_second_begins_anywhere_in_the_lower_half(
    last: str, at_s: int, expected: int
) -> None:
    numbers = []
    for operation in range(100):
        (entity,) = next_ids(last, at_s * 1000, f"operation-{operation}", 1)
        second, number = parts(entity)
        assert second == expected
        assert entity > last
        numbers.append(number)
    assert max(numbers) <= START_MAX
    assert min(numbers) < START_MAX // 4
    assert max(numbers) > START_MAX // 4 * 3


def test_the_same_order_on_the_same_book_gets_the_same_ids() -> None:
    three = next_ids(OLD, SECOND * 1000, "operation", 3)
    assert next_ids(OLD, SECOND * 1000, "operation", 3) == three
    assert next_ids(OLD, SECOND * 1000, "operation", 1) == three[:1]
    assert next_ids(three[0], SECOND * 1000, "operation", 2) == three[1:]
    assert not set(next_ids(OLD, SECOND * 1000, "another", 3)) & set(three)


def test_a_second_has_room_for_more_than_a_writer_can_allocate() -> None:
    assert (NUMBER_MAX - START_MAX) // GAP_MAX >= 131_071


@pytest.mark.parametrize(
    ("text", "is_one", "is_merchants"),
    [
        (OLD, True, True),
        (DIRECTORY, True, False),
        ("695db0800000000000000001", True, True),
        (OLD.upper(), False, False),
        (OLD[:-1], False, False),
        (OLD + "0", False, False),
        (OLD + "\n", False, False),
        ("", False, False),
        ("operator", False, False),
    ],
)
def test_the_form_of_ids(text: str, is_one: bool, is_merchants: bool) -> None:
    assert is_id(text) is is_one
    assert is_merchant_id(BookId(text)) is is_merchants
