"""The money of the books, added up again by arithmetic of its own (M1, M3, M4, M6, M7, T1, T2).

Nothing here is shared with what wrote the books: an event is read as JSON, a fraction is rounded by
Python's own `fractions`. So an error in the law of `law/` and `book/`, which a replay repeats, does
not pass here.

    legs          of an entry are those that its amounts make, and cancel out per currency
    worth         of a capture is its amount by the rate that stands with it; of what goes back, the
                  worth of its takings
    fee           is the merchant's pricing, by the rate that stands with it
    transaction   captured and voided <= authorised; refunded and disputed <= captured; what went
                  back was worth no more than what was captured, and all of it exactly as much
    dispute       gives back what it took, and ends once

The sums of transactions are kept beside the tables of a replay, so memory has an end.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from sqlalchemy import Column, MetaData, Table, Text, select
from sqlalchemy.schema import CreateTable

from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.proof.table_comparison import Tables
from tollgate.actors.ledger.storage.connections.connection import RowValues, transaction
from tollgate.actors.ledger.storage.connections.statements import among, listed, query, upsert

Event = Mapping[str, Any]
_sums = Table(
    "money_sums",
    MetaData(),
    Column("id", Text, primary_key=True),
    # JSON of a Counter.
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
    "merchant.paid_out",
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

    async def prepare(self) -> None:
        """Makes a table of its own in the scratch tables."""
        await self._scratch.connection.run(str(CreateTable(_sums)))

    async def check(self, book: BookId, entries: Sequence[Entry]) -> list[str]:
        """The faults of these entries, which come next in their book."""
        if book != self._book:
            self._book, self._pricing = book, {}
        findings = []
        moving = [(entry, json.loads(entry.event)) for entry in entries if _is_of_money(entry)]
        sums = await self._load([event for _, event in moving])
        for entry, event in moving:
            if entry.kind == "merchant.opened":
                self._pricing = event["pricing"]
            faults = [*_leg_faults(entry, event), *self._worth_faults(entry.kind, event)]
            faults += _sum_faults(entry.kind, event, sums)
            findings += [f"entry {entry.seq} of book {book}: {fault}" for fault in faults]
        await self._store(sums)
        return findings

    def _worth_faults(self, kind: str, event: Event) -> Iterator[str]:
        if kind == "transaction.captured":
            sum_, fee = event["sum"], event["fee"]
            if sum_["worth"] != _exchanged(sum_["amount"], event["exchange"]):
                yield f"the capture is worth {sum_['worth']}, which its rate does not make (M6)"
            rate = round(Fraction(sum_["worth"] * self._pricing["rate_ppm"], _PPM))
            flat = _exchanged(self._pricing["flat"]["amount"], event["flat_exchange"])
            if (fee["flat"], fee["rate"]) != (flat, rate):
                yield f"the fee is {fee['flat']} and {fee['rate']}, and not {flat} and {rate} (M3)"
        elif kind in ("transaction.refunded", "dispute.opened"):
            taken = [sum(part[name] for part in event["takings"]) for name in ("amount", "worth")]
            if taken != [event["sum"]["amount"], event["sum"]["worth"]]:
                yield "what goes back is not what was taken from the captures (M7)"
        if kind == "dispute.opened":
            flat = _exchanged(self._pricing["dispute"]["amount"], event["fee_exchange"])
            if event["fee"] != {"flat": flat, "rate": 0}:
                yield f"the fee of the dispute is {event['fee']['flat']}, and not {flat} (M3)"

    async def _load(self, events: Sequence[Event]) -> dict[str, Counter[str]]:
        names = ("transaction", "dispute")
        ids = {event[name] for event in events for name in names if name in event}
        wanted = listed(self._scratch.dialect, sorted(ids))
        rows = await self._wanted.rows(self._scratch.connection, wanted=wanted)
        kept = {row[0]: Counter(json.loads(row[1])) for row in rows}
        return {each: kept.get(each, Counter()) for each in ids}

    async def _store(self, sums: Mapping[str, Counter[str]]) -> None:
        async with transaction(self._scratch.connection, "BEGIN IMMEDIATE"):
            rows: list[RowValues] = [(each, json.dumps(sums[each])) for each in sorted(sums)]
            await self._keep.run(self._scratch.connection, rows)


def _is_of_money(entry: Entry) -> bool:
    return entry.kind in _OF_MONEY or bool(entry.postings)


def _exchanged(amount: int, exchange: Event | None) -> int:
    """The amount by the rate that was booked, half to even; itself where none was needed."""
    if exchange is None:
        return amount
    rate = exchange["rate"]
    return round(Fraction(amount * rate["numerator"], rate["denominator"]))


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


def _sum_faults(kind: str, event: Event, sums: Mapping[str, Counter[str]]) -> Iterator[str]:
    """Adds an event up to the sums of its transaction, and says what does not hold then."""
    if "transaction" not in event:
        return
    of = sums[event["transaction"]]
    match kind:
        case "transaction.created":
            of["authorised"] += 0 if event["error"] else event["amount"]
        case "transaction.voided":
            of["voided"] += event["amount"]
        case "transaction.captured":
            of["captured"] += event["sum"]["amount"]
            of["worth"] += event["sum"]["worth"]
        case "transaction.refunded":
            _take(of, event["sum"], 1)
        case "dispute.opened":
            _take(of, event["sum"], 1)
            _take(sums[event["dispute"]], event["sum"], 1)
        case "dispute.won" | "dispute.lost":
            yield from _dispute_faults(event, sums[event["dispute"]])
            if kind == "dispute.won":
                _take(of, event["sum"], -1)
    if of["captured"] + of["voided"] > of["authorised"]:
        yield f"more of {event['transaction']} is captured and voided than was authorised (T1)"
    if not 0 <= of["taken"] <= of["captured"]:
        yield f"more of {event['transaction']} went back than was captured (T2)"
    is_empty = of["taken"] == of["captured"]
    if not 0 <= of["taken worth"] <= of["worth"] or (is_empty and of["taken worth"] != of["worth"]):
        yield f"what went back of {event['transaction']} is not worth what was captured (M7)"


def _take(of: Counter[str], sum_: Event, sign: int) -> None:
    of["taken"] += sign * sum_["amount"]
    of["taken worth"] += sign * sum_["worth"]


def _dispute_faults(event: Event, of: Counter[str]) -> Iterator[str]:
    if (of["taken"], of["taken worth"]) != (event["sum"]["amount"], event["sum"]["worth"]):
        yield f"the dispute {event['dispute']} ends with another amount than it began with (T10)"
    of["ends"] += 1
    if of["ends"] > 1:
        yield f"the dispute {event['dispute']} ends again (T10)"
