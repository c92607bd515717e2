"""Captures are lots, and what goes back is taken from them first in, first out (M7).

A lot keeps its own rate. What is left of it is worth `converted(left)` at that rate, and taking a
part is worth the difference: so partial refunds round as they go, the last one settles, and the
whole of a lot is worth exactly what its capture was. A dispute takes like a refund; when it is won,
its very amounts go back, which may leave a lot worth a unit more or less than its rate says until
the next taking. A taking is never worth less than nothing, nor more than what is there.
"""

from msgspec import Struct
from msgspec.structs import replace

from tollgate.actors.ledger.law.money import converted
from tollgate.actors.ledger.law.values import Rate


class Lot(Struct, frozen=True):
    """The rest of one capture: `left` in the transaction's currency, worth `left_worth` in the
    funding currency. `rate` None: these are one."""

    left: int
    left_worth: int
    rate: Rate | None


class Taking(Struct, frozen=True):
    """A part of the lot with this index."""

    lot: int
    amount: int
    worth: int


def take_from_lots(lots: tuple[Lot, ...], amount: int) -> tuple[Taking, ...]:
    """Finds the parts of the lots that an amount takes; at most what is left of all."""
    takings = []
    for index, lot in enumerate(lots):
        if amount == 0:
            break
        if lot.left == 0:
            continue
        part = min(amount, lot.left)
        rest_worth = converted(lot.left - part, lot.rate)
        takings.append(Taking(index, part, max(0, lot.left_worth - rest_worth)))
        amount -= part
    assert amount == 0, "the lots hold what may be refunded"
    return tuple(takings)


def lots_without(lots: tuple[Lot, ...], takings: tuple[Taking, ...]) -> tuple[Lot, ...]:
    """The lots after the takings."""
    return _moved(lots, takings, -1)


def lots_with(lots: tuple[Lot, ...], takings: tuple[Taking, ...]) -> tuple[Lot, ...]:
    """The lots with the takings in them again."""
    return _moved(lots, takings, 1)


def _moved(lots: tuple[Lot, ...], takings: tuple[Taking, ...], sign: int) -> tuple[Lot, ...]:
    moved = list(lots)
    for taking in takings:
        lot = moved[taking.lot]
        moved[taking.lot] = replace(
            lot,
            left=lot.left + sign * taking.amount,
            left_worth=lot.left_worth + sign * taking.worth,
        )
    return tuple(moved)


def worth_of(takings: tuple[Taking, ...]) -> int:
    """Computes what takings are worth, in the funding currency."""
    return sum(taking.worth for taking in takings)
