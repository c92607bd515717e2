"""A transaction: an authorised amount A and what became of it (T1–T7, T10).

    A amount   P pending   C captured, gross   R refunded   V voided   D in open or lost disputes

    action      allowed when                                     effect
    capture x   0 < x <= P, and its currency, if any, agrees     P -= x   C += x   a lot of x
    void x      0 < x <= P                                       P -= x   V += x
    refund x    0 < x <= C - R - D                               R += x   x leaves the lots
    dispute x   0 < x <= C - R - D                               D += x   x leaves the lots
    win x       its dispute is open                              D -= x   x is back in the lots
    lose x      its dispute is open                              -

So A = P + C + V, R + D <= C and the lots hold C - R - D, always. A failed attempt keeps A and has
P = C = R = V = D = 0, for ever, which allows none of these. Every action leaves a trail entry; the
trail is only ever added to, and has an end, after which only disputes are. A refused action changes
nothing (T8). While one waits for the card network (part I) there is no other, and no dispute is
opened either, so that what the network does can always be booked.
"""

from enum import Enum

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from tollgate.actors.ledger.law.lots import Lot, Taking, lots_with, lots_without
from tollgate.actors.ledger.law.money import NO_FEE, Fee
from tollgate.actors.ledger.law.outcomes import (
    ErrorCode,
    Refusal,
    RefusalReason,
    bad_amount,
    constraint,
)
from tollgate.actors.ledger.law.values import (
    BookId,
    CardSummary,
    Currency,
    EntityId,
    NetworkMark,
    ProcessingError,
)

# Every action writes the transaction anew, with its whole trail.
TRAIL_LENGTH_MAX = 1_000


class ActionKind(Enum):
    """The kind of a trail entry."""

    CAPTURE = "capture"
    REFUND = "refund"
    VOID = "void"
    DISPUTE = "dispute"
    DISPUTE_WON = "dispute won"
    DISPUTE_LOST = "dispute lost"


class Action(Struct, frozen=True):
    """A trail entry. `amount` in the transaction's currency; `balance`, the effect on the
    merchant's, and `fee` in the funding currency. `line` None: it has none (M1)."""

    kind: ActionKind
    at_ms: int
    amount: int
    balance: int
    descriptor: str
    line: EntityId | None = None
    fee: Fee = NO_FEE
    dispute: EntityId | None = None


class Transaction(Struct, frozen=True):
    """`failures`: for a failed attempt on a saved source, how many in a row these are now; for one
    that is itself a source, how many in a row there have been. `network`: of the authorisation, if
    one was asked. `intent`: the move that waits for it."""

    id: EntityId
    book: BookId
    is_test: bool
    created_ms: int
    currency: Currency
    exponent: int
    amount: int
    descriptor: str
    card: CardSummary
    custom: str
    error: ProcessingError | None
    tds: str
    source: EntityId | None
    failures: int
    pending: int
    captured: int = 0
    refunded: int = 0
    voided: int = 0
    disputed: int = 0
    trail: tuple[Action, ...] = ()
    lots: tuple[Lot, ...] = ()
    network: NetworkMark | UnsetType = UNSET
    intent: EntityId | UnsetType = UNSET

    @property
    def is_successful(self) -> bool:
        return self.error is None

    @property
    def refundable(self) -> int:
        return self.captured - self.refunded - self.disputed

    def refuse_capture(self, amount: int, currency: Currency | None) -> Refusal | None:
        """T5. The currency guards against one that was changed during the authorisation."""
        if currency is not None and currency != self.currency:
            return constraint(
                f"the transaction is in {self.currency}, not in {currency}",
                "currency",
                ErrorCode.INVALID_CURRENCY,
            )
        return self._refuse(amount, self.pending, "may still be captured")

    def refuse_void(self, amount: int) -> Refusal | None:
        """T7."""
        return self._refuse(amount, self.pending, "may still be voided")

    def refuse_refund(self, amount: int) -> Refusal | None:
        """T6."""
        return self._refuse(amount, self.refundable, "may still be refunded")

    def refuse_dispute(self, amount: int) -> Refusal | None:
        """T2. The card network opens disputes, so a long trail does not keep them out."""
        return self._refuse_waiting() or bad_amount(
            amount, self.refundable, "may still be disputed"
        )

    def _refuse(self, amount: int, amount_max: int, what_is_there: str) -> Refusal | None:
        if self.error is not None:
            return constraint(
                f"the transaction was not successful ({self.error.message}): nothing to act on"
            )
        if len(self.trail) >= TRAIL_LENGTH_MAX:
            return constraint(f"the transaction's trail is full: {TRAIL_LENGTH_MAX} actions")
        return self._refuse_waiting() or bad_amount(amount, amount_max, what_is_there)

    def _refuse_waiting(self) -> Refusal | None:
        if self.intent is UNSET:
            return None
        return Refusal(
            RefusalReason.AT_NETWORK,
            "another move of this transaction waits for the card network's answer: ask again later",
        )

    def with_capture(self, action: Action, lot: Lot) -> "Transaction":
        return replace(
            self,
            pending=self.pending - action.amount,
            captured=self.captured + action.amount,
            trail=(*self.trail, action),
            lots=(*self.lots, lot),
        )

    def with_void(self, action: Action) -> "Transaction":
        return replace(
            self,
            pending=self.pending - action.amount,
            voided=self.voided + action.amount,
            trail=(*self.trail, action),
        )

    def with_refund(self, action: Action, takings: tuple[Taking, ...]) -> "Transaction":
        return replace(
            self,
            refunded=self.refunded + action.amount,
            trail=(*self.trail, action),
            lots=lots_without(self.lots, takings),
        )

    def with_dispute(self, action: Action, takings: tuple[Taking, ...]) -> "Transaction":
        return replace(
            self,
            disputed=self.disputed + action.amount,
            trail=(*self.trail, action),
            lots=lots_without(self.lots, takings),
        )

    def with_dispute_won(self, action: Action, takings: tuple[Taking, ...]) -> "Transaction":
        return replace(
            self,
            disputed=self.disputed - action.amount,
            trail=(*self.trail, action),
            lots=lots_with(self.lots, takings),
        )

    def with_dispute_lost(self, action: Action) -> "Transaction":
        return replace(self, trail=(*self.trail, action))
