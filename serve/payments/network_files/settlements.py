"""A file of settlements, record by record: what the network says it paid for a merchant's day in a
currency, beside what the books expect.

The books expect what the account `clearing` moved by on that day, in UTC: what was captured, less
what was refunded and disputed, plus what came back. A record moves no money; differences are told.
"""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time

from tollgate.actors.ledger.book.entities import SettledDay, entity_of_row
from tollgate.actors.ledger.law.accounts import CLEARING
from tollgate.actors.ledger.law.commands import RecordSettlement
from tollgate.actors.ledger.law.exponents import posted_currency, posted_exponent
from tollgate.actors.ledger.law.notices import DAY_MS, NoticeKind, notice, settled_day_id
from tollgate.actors.ledger.law.values import BookId, Currency, EntityId
from tollgate.serve.payments.api.rejections import NotFound
from tollgate.serve.payments.network_files.matching import MatchedBooks, is_told_again
from tollgate.serve.payments.network_files.outcomes import (
    Effect,
    FileReport,
    Finding,
    Mismatch,
    SettledDifference,
)
from tollgate.serve.payments.network_files.records import SettlementRecord


@dataclass(slots=True)
class SettlementMatcher:
    """Of one file, of a network with this name. `report`: hears of differences."""

    books: MatchedBooks
    network: str
    report: FileReport
    _foreseen: dict[EntityId, int] = field(default_factory=dict)

    async def match(self, record: SettlementRecord) -> Effect | Finding:
        """Keeps a record that is new, and compares its day."""
        context = self.books.context
        day, currency = record.day.isoformat(), record.currency
        told = notice(
            NoticeKind.SETTLEMENT,
            self.network,
            record.reference,
            record.merchantId,
            day,
            currency,
            record.amount,
        )
        if (before := await self.books.told(told)) is not None:
            return is_told_again(before, told)
        try:
            merchant = await context.entities.merchant(record.merchantId)
        except NotFound:
            why = f"there is no merchant {record.merchantId}"
            return Finding(Mismatch.UNKNOWN_MERCHANT, why)
        known = context.reference.currencies.find(currency)
        if known is None:
            return Finding(Mismatch.WRONG_CURRENCY, f"{currency} is no currency of ISO 4217")
        begin_ms = day_begin_ms(record.day)
        if context.now_ms < begin_ms + DAY_MS:
            return Finding(Mismatch.DAY_NOT_OVER, f"the day {day} is not over, in UTC")
        expected = await self._expected(merchant.id, begin_ms, currency, known.exponent)
        command = RecordSettlement(
            notice=told,
            settled_day=settled_day_id(merchant.id, day, currency, known.exponent),
            day=day,
            until_ms=begin_ms + DAY_MS,
            currency=currency,
            exponent=known.exponent,
            amount=record.amount,
            expected=expected,
        )
        outcome = await self.books.order(merchant.id, told, command)
        if outcome is Effect.BOOKED:
            settled = await self._settled(command)
            self.report.compare(SettledDifference(merchant.id, day, currency, settled, expected))
        return outcome

    async def _expected(
        self, book: BookId, begin_ms: int, currency: Currency, exponent: int
    ) -> int:
        """The network owes what `clearing` is below zero."""
        store, end_ms = self.books.context.store, begin_ms + DAY_MS
        before = await store.balances_at(book, begin_ms - 1)
        after = await store.balances_at(book, end_ms - 1)
        assert before is not None, "the merchant is there, and so is its book"
        assert after is not None, "the merchant is there, and so is its book"
        account = (CLEARING, posted_currency(currency, posted_exponent(currency, exponent)))
        return before.get(account, 0) - after.get(account, 0)

    async def _settled(self, command: RecordSettlement) -> int:
        """The sum of the day, with this record."""
        day = command.settled_day
        row = await self.books.context.store.entity("settled_day", day)
        kept = None if row is None else entity_of_row(row)
        booked = kept.settled if isinstance(kept, SettledDay) else 0
        if not self.books.is_dry:
            return booked
        self._foreseen[day] = self._foreseen.get(day, 0) + command.amount
        return booked + self._foreseen[day]


def day_begin_ms(day: date) -> int:
    """The first millisecond of a day, in UTC."""
    return int(datetime.combine(day, time.min, UTC).timestamp()) * 1000
