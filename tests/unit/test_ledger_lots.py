"""Takings from capture lots, first in first out."""

import pytest

from tests.ledger_books import EUR, USD, rate
from tollgate.actors.ledger.law.lots import Lot, Taking, given_back, take, total, without

HALF = rate(USD, EUR, 1, 2)


def test_the_oldest_lot_goes_first() -> None:
    lots = (Lot(100, 100, None), Lot(50, 50, None), Lot(70, 70, None))
    takings = take(lots, 130)
    assert takings == (Taking(0, 100, 100), Taking(1, 30, 30))
    rest = without(lots, takings)
    assert rest == (Lot(0, 0, None), Lot(20, 20, None), Lot(70, 70, None))
    assert take(rest, 21) == (Taking(1, 20, 20), Taking(2, 1, 1))


def test_each_lot_has_its_own_rate() -> None:
    lots = (Lot(10, 5, HALF), Lot(10, 20, rate(USD, EUR, 2, 1)))
    assert total(take(lots, 12)) == 5 + 4


def test_parts_round_as_they_go_and_the_last_one_settles() -> None:
    lots: tuple[Lot, ...] = (Lot(7, 4, HALF),)  # 3.5, to the even 4
    worths = []
    for _ in range(7):
        takings = take(lots, 1)
        lots = without(lots, takings)
        worths.append(total(takings))
    assert worths == [1, 1, 0, 0, 1, 1, 0]
    assert sum(worths) == 4
    assert lots == (Lot(0, 0, HALF),)


def test_what_a_won_dispute_took_is_there_again() -> None:
    lots = (Lot(7, 4, HALF), Lot(3, 3, None))
    disputed = take(lots, 8)
    assert given_back(without(lots, disputed), disputed) == lots


def test_a_unit_too_many_or_too_few_is_settled_by_the_next_taking() -> None:
    lots: tuple[Lot, ...] = (Lot(7, 4, HALF),)
    disputed = take(lots, 2)  # worth 2: five are left, worth 2
    lots = without(lots, disputed)
    lots = without(lots, take(lots, 2))  # three are left, worth 2
    lots = given_back(lots, disputed)
    assert lots == (Lot(5, 4, HALF),)  # by the rate it would be 2
    takings = take(lots, 1)
    assert total(takings) == 2
    assert without(lots, takings) == (Lot(4, 2, HALF),)


def test_nothing_is_ever_worth_less_than_nothing() -> None:
    assert take((Lot(5, 1, HALF),), 1) == (Taking(0, 1, 0),)


def test_lots_do_not_give_what_they_have_not() -> None:
    with pytest.raises(AssertionError, match="may be refunded"):
        take((Lot(5, 5, None),), 6)
