"""Tells the ledger what a card network has decided about an intent (I2)."""

from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.ledger.law.commands import Conclude, Order
from tollgate.actors.ledger.law.outcomes import Done
from tollgate.actors.ledger.law.values import OPERATOR, BookId, EntityId, NetworkDecision, Origin
from tollgate.serve.payments.api.orders import DEADLINE_S, Ledger


class Mint(Protocol):
    """Makes ids."""

    def operation(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Conclusions:
    """In the name of the house. The outcome is written under the intent's own result, once: so it
    does no harm that a call and an enquiry both bring it, at the same time or in two processes."""

    ledger: Ledger
    mint: Mint

    async def conclude(
        self, book: BookId, intent: EntityId, decision: NetworkDecision, *, is_test: bool, why: str
    ) -> Done | None:
        """The reply to whoever ordered the move; None: it is settled already, or not known to be.
        `why`: which request, or that it was enquired."""
        order = Order(
            operation=self.mint.operation(),
            book=book,
            command=Conclude(intent, decision),
            origin=Origin(OPERATOR, "", "", why),
            time_left_ms=int(DEADLINE_S * 1000),
            is_test=is_test,
        )
        (answer,) = await self.ledger.execute([order])
        return answer if isinstance(answer, Done) else None
