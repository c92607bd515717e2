"""A file of frauds, record by record: each is a report on a transaction, booked once."""

from dataclasses import dataclass

from tollgate.actors.ledger.law.commands import ReportFraud
from tollgate.actors.ledger.law.notices import NoticeKind, notice
from tollgate.actors.ledger.law.outcomes import bad_amount
from tollgate.serve.payments.network_files.matching import MatchedBooks, is_told_again
from tollgate.serve.payments.network_files.outcomes import Effect, Finding, Mismatch
from tollgate.serve.payments.network_files.records import FraudRecord


@dataclass(slots=True)
class FraudMatcher:
    """Of one file, of a network with this name."""

    books: MatchedBooks
    network: str

    async def match(self, record: FraudRecord) -> Effect | Finding:
        """Books a record that is new."""
        told = notice(
            NoticeKind.FRAUD,
            self.network,
            record.reference,
            record.transaction,
            record.amount,
            record.currency,
            record.reason,
            record.reported,
        )
        if (before := await self.books.told(told)) is not None:
            return is_told_again(before, told)
        found = await self.books.transaction(record, self.network)
        if isinstance(found, Finding):
            return found
        if record.amount is not None and (
            refused := bad_amount(record.amount, found.amount, "the transaction is of")
        ):
            return Finding(Mismatch.AMOUNT_TOO_HIGH, refused.message)
        command = ReportFraud(found.id, record.reported, record.reason, told)
        return await self.books.order(found.book, told, command)
