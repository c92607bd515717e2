"""Takings from capture lots, first in first out."""

import pytest

from tests.support.ledger.books import EUR, USD, rate
from tollgate.actors.ledger.law.lots import (
    Lot,
    Taking,
    lots_with,
    lots_without,
    take_from_lots,
    worth_of,
)

HALF = rate(USD, EUR, 1, 2)


def test_the_oldest_lot_goes_first() -> None:
    lots = (Lot(100, 100, None), Lot(50, 50, None), Lot(70, 70, None))
    takings = take_from_lots(lots, 130)
    assert takings == (Taking(0, 100, 100), Taking(1, 30, 30))
    rest = lots_without(lots, takings)
    assert rest == (Lot(0, 0, None), Lot(20, 20, None), Lot(70, 70, None))
    assert take_from_lots(rest, 21) == (Taking(1, 20, 20), Taking(2, 1, 1))


def test_each_lot_has_its_own_rate() -> None:
    lots = (Lot(10, 5, HALF), Lot(10, 20, rate(USD, EUR, 2, 1)))
    assert worth_of(take_from_lots(lots, 12)) == 5 + 4


def test_parts_round_as_they_go_and_the_last_one_settles() -> None:
    lots: tuple[Lot, ...] = (Lot(7, 4, HALF),)  # 3.5, to the even 4
    worths = []
    for _ in range(7):
        takings = take_from_lots(lots, 1)
        lots = lots_without(lots, takings)
        worths.append(worth_of(takings))
    assert worths == [1, 1, 0, 0, 1, 1, 0]
    assert sum(worths) == 4
    assert lots == (Lot(0, 0, HALF),)


def test_what_a_won_dispute_took_is_there_again() -> None:
    lots = (Lot(7, 4, HALF), Lot(3, 3, None))
    disputed = take_from_lots(lots, 8)
    assert lots_with(lots_without(lots, disputed), disputed) == lots


def test_a_unit_too_many_or_too_few_is_settled_by_the_next_taking() -> None:
    lots: tuple[Lot, ...] = (Lot(7, 4, HALF),)
    disputed = take_from_lots(lots, 2)  # worth 2: five are left, worth 2
    lots = lots_without(lots, disputed)
    lots = lots_without(lots, take_from_lots(lots, 2))  # three are left, worth 2
    lots = lots_with(lots, disputed)
    assert lots == (Lot(5, 4, HALF),)  # by the rate it would be 2
    takings = take_from_lots(lots, 1)
    assert worth_of(takings) == 2
    assert lots_without(lots, takings) == (Lot(4, 2, HALF),)


def test_nothing_is_ever_worth_less_than_nothing() -> None:
    assert take_from_lots((Lot(5, 1, HALF),), 1) == (Taking(0, 1, 0),)


def test_lots_do_not_give_what_they_have_not() -> None:
    with pytest.raises(AssertionError, match="may be refunded"):
        take_from_lots((Lot(5, 5, None),), 6)
