"""A file of disputes, record by record: opened, then won or lost (T10).

the reference is new           the dispute is opened, and decided if the record says how it ended
it was told before             its transaction, amount and reason must be the same
the record says won or lost    the dispute is decided, once
"""

from dataclasses import dataclass, field

from tollgate.actors.ledger.book.entities import Dispute, NetworkNotice, entity_of_row
from tollgate.actors.ledger.law.commands import DecideDispute, OpenDispute
from tollgate.actors.ledger.law.notices import DAY_MS, NoticeKind, notice
from tollgate.actors.ledger.law.values import EntityId, Notice
from tollgate.serve.payments.network_files.matching import MatchedBooks, is_told_again
from tollgate.serve.payments.network_files.outcomes import Effect, Finding, Mismatch
from tollgate.serve.payments.network_files.records import DisputeRecord, DisputeStatus

# A dispute that does not say when an answer is due is due as those of the sandbox are.
DUE_AFTER_MS = 14 * DAY_MS


@dataclass(slots=True)
class _Foreseen:
    """A dispute that a dry run would have opened."""

    transaction: EntityId
    amount: int
    is_won: bool | None = None


@dataclass(slots=True)
class DisputeMatcher:
    """Of one file, of a network with this name."""

    books: MatchedBooks
    network: str
    _foreseen: dict[EntityId, _Foreseen] = field(default_factory=dict)

    async def match(self, record: DisputeRecord) -> Effect | Finding:
        """Books a record, as far as it is not booked yet."""
        told = _notice(self.network, record)
        opened = await self._open(record, told)
        if isinstance(opened, Finding) or record.status is DisputeStatus.OPENED:
            return opened
        decided = await self._decide(told, is_won=record.status is DisputeStatus.WON)
        if isinstance(decided, Finding) or Effect.BOOKED not in (opened, decided):
            return decided
        return Effect.BOOKED

    async def _open(self, record: DisputeRecord, told: Notice) -> Effect | Finding:
        before = await self.books.told(told)
        if before is not None:
            return Effect.UNCHANGED if _is_bare(record) else is_told_again(before, told)
        if not record.transaction or record.amount is None:
            why = f"there is no dispute {told.reference}: name its transaction, amount and currency"
            return Finding(Mismatch.UNKNOWN_REFERENCE, why)
        found = await self.books.transaction(record, self.network)
        if isinstance(found, Finding):
            return found
        if refused := found.refuse_dispute(record.amount):
            return Finding(Mismatch.AMOUNT_TOO_HIGH, refused.message)
        context = self.books.context
        merchant = await context.entities.merchant(found.book)
        due_ms = context.now_ms + DUE_AFTER_MS if record.due is None else record.due
        pricing, funding = merchant.pricing, merchant.currency
        command = OpenDispute(
            transaction=found.id,
            amount=record.amount,
            reason_code=record.reasonCode or 0,
            reason_title=record.reasonTitle or "",
            due_ms=due_ms,
            dispute_rate=context.exchange_rate(pricing.dispute.currency, funding),
            notice=told,
        )
        if self.books.is_dry:
            self.books.dispute_for_now(found.id, record.amount)
            self._foreseen[told.id] = _Foreseen(found.id, record.amount)
        return await self.books.order(found.book, told, command)

    async def _decide(self, told: Notice, *, is_won: bool) -> Effect | Finding:
        dispute = await self._dispute(told)
        if dispute.is_won is not None:
            if dispute.is_won is is_won:
                return Effect.UNCHANGED
            how = "won" if dispute.is_won else "lost"
            why = f"the dispute {told.reference} was {how} already: it is decided once"
            return Finding(Mismatch.DECIDED_OTHERWISE, why)
        if self.books.is_dry:
            if is_won:
                self.books.dispute_for_now(dispute.transaction, -dispute.amount)
            amount = dispute.amount
            self._foreseen[told.id] = _Foreseen(dispute.transaction, amount, is_won)
            return Effect.BOOKED
        assert isinstance(dispute, Dispute), "a real run foresees nothing"
        return await self.books.order(dispute.book, None, DecideDispute(dispute.id, is_won))

    async def _dispute(self, told: Notice) -> Dispute | _Foreseen:
        if (foreseen := self._foreseen.get(told.id)) is not None:
            return foreseen
        before = await self.books.told(told)
        assert isinstance(before, NetworkNotice), "it was opened, now or before"
        row = await self.books.context.store.entity("dispute", before.subject)
        found = None if row is None else entity_of_row(row)
        assert isinstance(found, Dispute), "what came of a notice of a dispute is one"
        return found


def _notice(network: str, record: DisputeRecord) -> Notice:
    return notice(
        NoticeKind.DISPUTE,
        network,
        record.reference,
        record.transaction,
        record.amount,
        record.currency,
        record.reasonCode,
        record.reasonTitle,
        record.due,
    )


def _is_bare(record: DisputeRecord) -> bool:
    """It says how a dispute ended, and not again what it is about."""
    return not record.transaction
