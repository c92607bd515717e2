"""The books as a file's records are matched with them: what is there, and the way to order.

In a dry run nothing is ordered, and what earlier records of the file would have changed is
remembered here, so that the report is that of the real run; what only the books can refuse (a fee
without an exchange rate) is not foreseen.
"""

from msgspec.structs import replace

from tollgate.actors.ledger.book.entities import NetworkNotice, entity_of_row
from tollgate.actors.ledger.law.commands import Command
from tollgate.actors.ledger.law.notices import authorisation_id
from tollgate.actors.ledger.law.outcomes import Done, DoneKind
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import BookId, EntityId, Notice
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.rejections import (
    BadRequest,
    Forbidden,
    LostRace,
    NotFound,
    Rejection,
)
from tollgate.serve.payments.network_files.outcomes import Effect, Finding, Mismatch
from tollgate.serve.payments.network_files.records import DisputeRecord, FraudRecord

# What a book answers when it does not take a record; any other failure ends the file.
REFUSALS = (BadRequest, Forbidden, LostRace, NotFound)


class MatchedBooks:
    """Of one file."""

    def __init__(self, context: ApiContext, call: Call, *, is_dry: bool) -> None:
        self.context = context
        self.is_dry = is_dry
        self._call = call
        self._told: dict[EntityId, Notice] = {}
        self._disputed: dict[EntityId, int] = {}

    async def told(self, notice: Notice) -> NetworkNotice | Notice | None:
        """The notice that came before with the same reference; None for a new one."""
        if (told := self._told.get(notice.id)) is not None:
            return told
        row = await self.context.store.entity("notice", notice.id)
        found = None if row is None else entity_of_row(row)
        return found if isinstance(found, NetworkNotice) else None

    async def transaction(
        self, record: DisputeRecord | FraudRecord, network: str
    ) -> Transaction | Finding:
        """The transaction of a record, which is in its currency, if it names one."""
        wanted = await self._named(record, network)
        unknown = f"there is no transaction {record.transaction}"
        try:
            row = await self.context.entities.row("transaction", wanted)
        except NotFound:
            return Finding(Mismatch.UNKNOWN_TRANSACTION, unknown)
        found = entity_of_row(row)
        assert isinstance(found, Transaction), "a transaction's row holds a transaction"
        currency = record.currency
        if currency is not None and currency != found.currency:
            why = f"the transaction {wanted} is in {found.currency}, not in {currency}"
            return Finding(Mismatch.WRONG_CURRENCY, why)
        return replace(found, disputed=found.disputed + self._disputed.get(wanted, 0))

    async def _named(self, record: DisputeRecord | FraudRecord, network: str) -> EntityId:
        """The id of a record's transaction; of one that is not there, none's."""
        if record.transactionReference is None or record.merchantId is None:
            return record.transactionId or EntityId("")
        book = BookId(record.merchantId)
        known = authorisation_id(book, network, record.transactionReference)
        row = await self.context.store.entity("authorisation", known)
        return EntityId("") if row is None or row.transaction is None else row.transaction

    def dispute_for_now(self, transaction: EntityId, amount: int) -> None:
        """A dry run would dispute so much; below zero: it comes back."""
        self._disputed[transaction] = self._disputed.get(transaction, 0) + amount

    async def order(
        self, book: BookId, notice: Notice | None, command: Command
    ) -> Effect | Finding:
        """Has a record booked, if this is no dry run."""
        if self.is_dry:
            if notice is not None:
                self._told[notice.id] = notice
            return Effect.BOOKED
        try:
            done = await self._execute(book, command)
        except REFUSALS as refused:
            return Finding(Mismatch.REFUSED, _words(refused))
        return Effect.UNCHANGED if done.kind is DoneKind.CHANGED else Effect.BOOKED

    async def _execute(self, book: BookId, command: Command) -> Done:
        # (no idempotency key: books know notices by their references, for ever)
        return await self.context.execute(self._call, book, command, idempotency_key="")


def _words(refused: Rejection) -> str:
    if isinstance(refused, BadRequest):
        return "; ".join(each.message for each in refused.errors)
    return refused.message


def is_told_again(told: NetworkNotice | Notice, notice: Notice) -> Effect | Finding:
    """The outcome of a record whose reference came before."""
    if told.content == notice.content:
        return Effect.UNCHANGED
    why = f"the reference {notice.reference} was told before, and said something else"
    return Finding(Mismatch.OTHER_CONTENT, why)
