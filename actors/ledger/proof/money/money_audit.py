"""The money of the books, added up again by arithmetic of its own (M1 to M7, T1, T2).

No rule here is shared with what wrote the books: an event is read as JSON, a fraction is rounded by
Python's own `fractions`. So an error in the law of `law/` and `book/`, which a replay repeats, does
not pass here.

    legs          of an entry are those that its amounts make, and cancel out per currency
    worth         of a capture is its amount by the rate that stands with it; of what goes back, the
                  worth of its takings
    currencies    are the transaction's and the merchant's, and rates lead from the one to the other
    fee           is the merchant's pricing, by the rate that stands with it; of what waited for a
                  card network, the pricing when it was intended
    intent        is concluded once, by the very move that was intended
    transaction   captured and voided <= authorised; refunded and disputed <= captured; what is
                  left of each capture is worth what its rate makes of it
    dispute       gives back what it took, and ends once
    payout        is at most the balance

The sums of transactions are kept beside the tables of a replay, so memory has an end.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import msgspec
from sqlalchemy import Column, MetaData, Table, Text, select
from sqlalchemy.schema import CreateTable

from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.proof.money.exchange_audit import (
    Event,
    Unit,
    exchange_faults,
    exchanged,
    named,
    unit_of,
)
from tollgate.actors.ledger.proof.money.intent_audit import OF_INTENTS, IntentAudit
from tollgate.actors.ledger.proof.money.transaction_audit import Sums, sum_faults
from tollgate.actors.ledger.proof.table_comparison import Tables
from tollgate.actors.ledger.storage.connections.connection import RowValues, transaction
from tollgate.actors.ledger.storage.connections.statements import among, listed, query, upsert

_sums = Table(
    "money_sums",
    MetaData(),
    Column("id", Text, primary_key=True),
    # JSON of `Sums`.
    Column("sums", Text, nullable=False),
)
_PPM = 1_000_000
# By kind: whether the amount goes to the merchant.
_SIGNS = {
    "transaction.captured": 1,
    "transaction.refunded": -1,
    "dispute.opened": -1,
    "dispute.won": 1,
}
_OF_MONEY = {
    *_SIGNS,
    "transaction.created",
    "transaction.voided",
    "dispute.lost",
    "merchant.opened",
    "merchant.priced",
    "merchant.paid_out",
    *OF_INTENTS,
}


class MoneyAudit:
    """Of all books, entry by entry, in the order of the journal."""

    def __init__(self, scratch: Tables) -> None:
        self._scratch = scratch
        wanted = among(scratch.dialect, _sums.c.id, "wanted")
        self._wanted = query(scratch.dialect, select(_sums).where(wanted))
        self._keep = upsert(scratch.dialect, _sums, "sums")
        self._book: BookId | None = None
        self._pricing: Event = {}
        self._funding: Unit = ("", 0)
        self._balance = 0
        self._intents = IntentAudit()

    async def prepare(self) -> None:
        """Makes a table of its own in the scratch tables."""
        await self._scratch.connection.run(str(CreateTable(_sums)))

    async def check(self, book: BookId, entries: Sequence[Entry]) -> list[str]:
        """The faults of these entries, which come next in their book."""
        if book != self._book:
            self._book, self._pricing, self._balance = book, {}, 0
            self._intents = IntentAudit()
        findings = []
        moving = [(entry, json.loads(entry.event)) for entry in entries if _is_of_money(entry)]
        sums = await self._load([event for entry, event in moving if entry.kind not in OF_INTENTS])
        for entry, event in moving:
            if entry.kind == "merchant.opened":
                self._pricing, self._funding = event["pricing"], unit_of(event)
            elif entry.kind == "merchant.priced":
                self._pricing = event["pricing"]
            pricing, faults = self._intents.follow(entry.kind, event, self._pricing)
            if entry.kind not in OF_INTENTS:
                faults += self._worth_faults(entry.kind, event, pricing)
                faults += self._currency_faults(entry.kind, event, pricing)
                faults += self._payout_faults(entry.kind, event)
                faults += sum_faults(entry.kind, event, sums)
            faults += _leg_faults(entry, event)
            findings += [f"entry {entry.seq} of book {book}: {fault}" for fault in faults]
        await self._store(sums)
        return findings

    def _worth_faults(self, kind: str, event: Event, pricing: Event) -> Iterator[str]:
        if kind == "transaction.captured":
            sum_, fee = event["sum"], event["fee"]
            if sum_["worth"] != exchanged(sum_["amount"], event["exchange"]):
                yield f"the capture is worth {sum_['worth']}, which its rate does not make (M6)"
            rate = round(Fraction(sum_["worth"] * pricing["rate_ppm"], _PPM))
            flat = exchanged(pricing["flat"]["amount"], event["flat_exchange"])
            if (fee["flat"], fee["rate"]) != (flat, rate):
                yield f"the fee is {fee['flat']} and {fee['rate']}, and not {flat} and {rate} (M3)"
        elif kind in ("transaction.refunded", "dispute.opened"):
            taken = [sum(part[name] for part in event["takings"]) for name in ("amount", "worth")]
            if taken != [event["sum"]["amount"], event["sum"]["worth"]]:
                yield "what goes back is not what was taken from the captures (M7)"
        if kind == "dispute.opened":
            flat = exchanged(pricing["dispute"]["amount"], event["fee_exchange"])
            if event["fee"] != {"flat": flat, "rate": 0}:
                yield f"the fee of the dispute is {event['fee']['flat']}, and not {flat} (M3)"

    def _currency_faults(self, kind: str, event: Event, pricing: Event) -> Iterator[str]:
        """M4, M9."""
        funding = self._funding
        if "sum" in event:
            booked = unit_of(event["sum"], "funding", "funding_exponent")
            if booked != funding:
                yield f"it is booked in {named(booked)}, and not in {named(funding)} (M4)"
        prices = []
        if kind == "transaction.captured":
            prices = [
                ("the capture", event["sum"], event["exchange"]),
                ("the flat fee", pricing["flat"], event["flat_exchange"]),
            ]
        elif kind == "dispute.opened":
            prices = [("the fee of the dispute", pricing["dispute"], event["fee_exchange"])]
        for what, price, exchange in prices:
            yield from exchange_faults(what, price["amount"], unit_of(price), funding, exchange)

    def _payout_faults(self, kind: str, event: Event) -> Iterator[str]:
        """Part D, Payouts. Adds the event up to the balance (M2)."""
        if kind == "merchant.paid_out":
            if unit_of(event) != self._funding:
                yield f"{event['currency']} is paid out, and not {named(self._funding)} (M4)"
            if event["amount"] > self._balance:
                yield f"{event['amount']} is paid out of a balance of {self._balance} (part D)"
        for (account, _), amount in _legs(kind, event).items():
            self._balance += amount if account == "merchant" else 0

    async def _load(self, events: Sequence[Event]) -> dict[str, Sums]:
        names = ("transaction", "dispute")
        ids = {event[name] for event in events for name in names if name in event}
        wanted = listed(self._scratch.dialect, sorted(ids))
        rows = await self._wanted.rows(self._scratch.connection, wanted=wanted)
        kept = {row[0]: msgspec.json.decode(row[1], type=Sums) for row in rows}
        return {each: kept.get(each, Sums()) for each in ids}

    async def _store(self, sums: Mapping[str, Sums]) -> None:
        async with transaction(self._scratch.connection, "BEGIN IMMEDIATE"):
            rows: list[RowValues] = [
                (each, msgspec.json.encode(sums[each]).decode()) for each in sorted(sums)
            ]
            await self._keep.run(self._scratch.connection, rows)


def _is_of_money(entry: Entry) -> bool:
    return entry.kind in _OF_MONEY or bool(entry.postings)


def _leg_faults(entry: Entry, event: Event) -> Iterator[str]:
    """M4, and the legs one by one."""
    booked: Counter[tuple[str, str]] = Counter()
    total: Counter[str] = Counter()
    for leg in entry.postings:
        booked[leg.account, leg.currency] += leg.amount
        total[leg.currency] += leg.amount
    if any(total.values()):
        yield "its postings do not sum up to zero (M4)"
    expected = _legs(entry.kind, event)
    if any(booked[account] != expected[account] for account in {*booked, *expected}):
        yield "its postings are not those that its amounts make (M1)"


def _legs(kind: str, event: Event) -> Counter[tuple[str, str]]:
    legs: Counter[tuple[str, str]] = Counter()
    if kind == "merchant.paid_out":
        unit = _unit(event, "currency", "exponent")
        legs["merchant", unit] -= event["amount"]
        legs["paid_out", unit] += event["amount"]
    elif kind in _SIGNS:
        sign, sum_ = _SIGNS[kind], event["sum"]
        amount, worth = sign * sum_["amount"], sign * sum_["worth"]
        fee = sum(event["fee"].values()) if "fee" in event else 0
        unit = _unit(sum_, "currency", "exponent")
        funding = _unit(sum_, "funding", "funding_exponent")
        legs["clearing", unit] -= amount
        legs["fx", unit] += amount
        legs["fx", funding] -= worth
        legs["merchant", funding] += worth - fee
        legs["fees", funding] += fee
    return legs


def _unit(sum_: Event, currency: str, exponent: str) -> str:
    """A currency, with its exponent where that is not the first one (M9)."""
    return f"{sum_[currency]}/{sum_[exponent]}" if exponent in sum_ else str(sum_[currency])
