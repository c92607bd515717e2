"""Where money is rounded: conversions, proportional fees, and refunds of what was converted."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tests.support.ledger.books import EUR, PRICING, USD, rate
from tollgate.actors.ledger.law.lots import (
    Lot,
    Taking,
    lots_with,
    lots_without,
    take_from_lots,
    worth_of,
)
from tollgate.actors.ledger.law.money import convert, converted, rate_fee
from tollgate.actors.ledger.law.values import AMOUNT_MAX, Pricing, Rate

AMOUNTS = st.integers(1, 200) | st.integers(1, AMOUNT_MAX)
RATES = st.builds(
    lambda numerator, denominator: rate(USD, EUR, numerator, denominator),
    st.integers(1, 20) | st.integers(1, 10**15),
    st.integers(1, 20) | st.integers(1, 10**15),
)
# Which part of what is left, and what becomes of it; a win gives back the latest dispute.
SHARES = st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(1, 9), Fraction(1)])
MOVES = st.lists(st.tuples(SHARES, st.sampled_from(["refund", "dispute", "win"])), max_size=20)


def exactly(amount: int, of: Rate) -> Fraction:
    return Fraction(amount * of.numerator, of.denominator)


@given(AMOUNTS, RATES)
def test_a_conversion_is_the_nearest_whole_number_and_tells_the_rest(amount: int, of: Rate) -> None:
    """M5."""
    how = convert(amount, of)
    assert abs(how.amount - exactly(amount, of)) <= Fraction(1, 2)
    assert how.amount + Fraction(how.remainder, of.denominator) == exactly(amount, of)
    assert how.amount == converted(amount, of) == round(exactly(amount, of))


@given(AMOUNTS, RATES)
def test_there_and_back_loses_at_most_a_unit_per_leg(amount: int, of: Rate) -> None:
    """M5: a unit of the currency that a leg arrives in."""
    back = rate(EUR, USD, of.denominator, of.numerator)
    there = converted(amount, of)
    again = converted(there, back)
    assert abs(exactly(amount, of) - there) <= 1
    assert abs(exactly(there, back) - again) <= 1
    assert abs(again - amount) <= 1 + exactly(1, back)


@given(st.lists(AMOUNTS, min_size=1, max_size=12), RATES, st.integers(0, 1_000_000))
def test_splitting_a_capture_changes_at_most_a_unit_per_part(
    parts: list[int], of: Rate, ppm: int
) -> None:
    """M6."""
    pricing = Pricing(ppm, PRICING.flat, PRICING.dispute)
    worths = [converted(part, of) for part in parts]
    assert abs(sum(worths) - converted(sum(parts), of)) <= len(parts)
    fees = [rate_fee(part, pricing) for part in parts]
    assert abs(sum(fees) - rate_fee(sum(parts), pricing)) <= len(parts)


LOTS = st.lists(
    st.builds(
        lambda amount, of: Lot(amount, converted(amount, of), of), AMOUNTS, st.none() | RATES
    ),
    min_size=1,
    max_size=4,
)


@given(LOTS, MOVES)
def test_what_is_taken_in_parts_is_worth_the_whole(
    captured: list[Lot], moves: list[tuple[Fraction, str]]
) -> None:
    """M7: in whatever parts, and whatever came back in between."""
    lots = tuple(captured)
    disputes: list[tuple[Taking, ...]] = []
    balance = sum(lot.left_worth for lot in lots)
    for share, move in moves:
        if move == "win":
            if disputes:
                back = disputes.pop()
                lots = lots_with(lots, back)
                balance += worth_of(back)
            continue
        takings = take_from_lots(lots, int(sum(lot.left for lot in lots) * share))
        lots = lots_without(lots, takings)
        balance -= worth_of(takings)
        assert all(taking.worth >= 0 < taking.amount for taking in takings)
        if move == "dispute":
            disputes.append(takings)
    assert balance == sum(lot.left_worth for lot in lots) >= 0
    rest = take_from_lots(lots, sum(lot.left for lot in lots))
    assert balance == worth_of(rest)
    assert all(lot.left == lot.left_worth == 0 for lot in lots_without(lots, rest))


@given(AMOUNTS, RATES, st.lists(SHARES, max_size=8))
def test_a_part_is_worth_its_rate_give_or_take_a_unit(
    amount: int, of: Rate, shares: list[Fraction]
) -> None:
    lots: tuple[Lot, ...] = (Lot(amount, converted(amount, of), of),)
    for share in shares:
        takings = take_from_lots(lots, int(lots[0].left * share))
        lots = lots_without(lots, takings)
        for taking in takings:
            assert abs(taking.worth - exactly(taking.amount, of)) <= 1


@given(LOTS, st.data())
def test_the_oldest_goes_first(captured: list[Lot], data: st.DataObject) -> None:
    lots = tuple(captured)
    amount = data.draw(st.integers(0, sum(lot.left for lot in lots)))
    after = lots_without(lots, take_from_lots(lots, amount))
    taken = [lot.left - rest.left for lot, rest in zip(lots, after, strict=True)]
    assert sum(taken) == amount
    for index, part in enumerate(taken[1:], start=1):
        assert part == 0 or taken[index - 1] == lots[index - 1].left
