"""The auditor of a book: goes through its journal with arithmetic of its own.

It shares no code with the machine: entries are read as JSON, fractions are rounded by `fractions`,
hashes are made by `json` and `hashlib`. It knows what was ordered, and so that nothing happened but
that. What it finds wrong it names by the invariant of part E.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from typing import Any

from tollgate.actors.ledger.law.commands import Capture, OpenDispute, Order
from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.law.values import Rate

Event = Mapping[str, Any]
MINUTE_MS = 60_000
# The ids an event allocates, in this order; its own comes last.
ALLOCATED = {
    "app.created": ["app"],
    "user.invited": ["user"],
    "webhook.added": ["webhook"],
    "transaction.created": ["transaction"],
    "transaction.captured": ["line"],
    "transaction.refunded": ["line"],
    "card.saved": ["card"],
    "dispute.opened": ["dispute", "line"],
    "dispute.won": ["line"],
    "dispute.lost": ["line"],
    "fraud.reported": ["fraud"],
    "settlement.reported": ["settlement"],
    "merchant.paid_out": ["line"],
}


@dataclass(slots=True)
class Lot:
    """What is left of a capture: of its amount, and of its worth."""

    left: int
    worth: int
    rate: Fraction


@dataclass(slots=True)
class Account:
    """A transaction, by the letters of part E. `trail`: (kind, at_ms, amount, balance, line)."""

    currency: str
    amount: int
    is_successful: bool
    pending: int
    captured: int = 0
    refunded: int = 0
    voided: int = 0
    disputed: int = 0
    wins: int = 0
    lots: list[Lot] = field(default_factory=list)
    trail: list[tuple[str, int, int, int, str | None]] = field(default_factory=list)
    # (after which entry, pending, refundable)
    history: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def refundable(self) -> int:
        return self.captured - self.refunded - self.disputed


@dataclass(slots=True)
class Dispute:
    """`parts`: (lot, amount, worth) that it took. `decided`: after which entry, or 0."""

    transaction: str
    amount: int
    parts: list[tuple[int, int, int]]
    opened: int
    decided: int = 0


class BookAuditor:
    """One book. `orders`: by operation, all that were ever given."""

    def __init__(self, book: str, orders: Mapping[str, Order]) -> None:
        self.book = book
        self._orders = orders
        self.seq = 0
        self.at_ms = 0
        self.hash = "0" * 64
        self.last_id = book
        self.merchant: Event = {}
        self.accounts: Counter[tuple[str, str]] = Counter()
        self.members: set[str] = set()
        self.membership: list[tuple[int, frozenset[str]]] = [(0, frozenset())]
        self.transactions: dict[str, Account] = {}
        self.disputes: dict[str, Dispute] = {}
        self.lines: dict[str, int] = {}
        self.events: list[str] = []
        self.operations: dict[str, list[Event]] = {}
        self._suspected: Event | None = None

    def read(self, entry: Entry) -> None:
        """The next entry of the book."""
        event: Event = json.loads(entry.event)
        self._check_chain(entry)
        self._check_ids(event)
        order = self._orders.get(entry.operation)
        assert order is not None, f"nobody ordered {entry.kind} by {entry.operation}"
        assert order.book == self.book, "an entry is in the book that its order was for"
        self._check_access(entry, order)
        self._check_suspicion(event)
        self._check_balanced(entry)
        self.operations.setdefault(entry.operation, []).append(event)
        self.events.append(event["id"])
        handle = _HANDLERS.get(event["event"].partition("/")[0])
        expected: Counter[tuple[str, str]] = Counter()
        if handle is not None:
            expected = handle(self, event, order)
        booked = Counter({(p.account, p.currency): 0 for p in entry.postings})
        for posting in entry.postings:
            booked[posting.account, posting.currency] += posting.amount
        assert _nonzero(booked) == _nonzero(expected), f"M4: booked {booked}, not {expected}"
        self.accounts.update(booked)
        lines = sum(self.lines.values())
        balance = sum(v for (account, _), v in self.accounts.items() if account == "merchant")
        assert balance == lines, "M2: the balance is the sum of the lines"

    def finish(self) -> None:
        """After the last entry."""
        assert self._suspected is None, "C3: two equal captures within a minute raise a suspicion"

    # The chain

    def _check_chain(self, entry: Entry) -> None:
        assert entry.seq == self.seq + 1, f"entry {entry.seq} comes after {self.seq}"
        assert entry.at_ms > self.at_ms, "F13: times of entries rise"
        content = ",".join(
            (
                json.dumps(entry.book),
                str(entry.seq),
                str(entry.at_ms),
                json.dumps(entry.operation),
                entry.origin,
                entry.event,
                json.dumps(
                    [
                        {"account": p.account, "currency": p.currency, "amount": p.amount}
                        for p in entry.postings
                    ],
                    separators=(",", ":"),
                ),
            )
        )
        digest = sha256(bytes.fromhex(self.hash) + f"[{content}]".encode()).hexdigest()
        assert digest == entry.hash, "F7: the hash is that of the entry and the one before"
        self.seq, self.at_ms, self.hash = entry.seq, entry.at_ms, digest

    def _check_ids(self, event: Event) -> None:
        names = ALLOCATED.get(event["event"].partition("/")[0], [])
        for allocated in (*(event[name] for name in names), event["id"]):
            assert allocated > self.last_id, f"L4: {allocated} is not above {self.last_id}"
            self.last_id = allocated

    def _check_access(self, entry: Entry, order: Order) -> None:
        app = json.loads(entry.origin)["app"]
        assert app == order.origin.app, "the audit names whoever ordered"
        if self.merchant and app != "operator":
            assert app in self.members, f"A2: {app} has no access after entry {entry.seq - 1}"

    def _check_suspicion(self, event: Event) -> None:
        if self._suspected is not None:
            assert event["event"].startswith("transaction.possible_duplicate/"), "C3"
            assert event["line"] == self._suspected["line"], "C3: the suspicion names the capture"

    def _check_balanced(self, entry: Entry) -> None:
        sums: Counter[str] = Counter()
        for posting in entry.postings:
            assert type(posting.amount) is int, "M5: money is integers"
            sums[posting.currency] += posting.amount
        assert not any(sums.values()), "M4: postings sum up to zero per currency"

    # What happened

    def _opened(self, event: Event, _: Order) -> Counter[tuple[str, str]]:
        assert not self.merchant, "a book is opened once"
        self.merchant = event
        self._members_are({event["creator"]})
        return Counter()

    def _added(self, event: Event, _: Order) -> Counter[tuple[str, str]]:
        self._members_are(self.members | {event["app"]})
        return Counter()

    def _revoked(self, event: Event, _: Order) -> Counter[tuple[str, str]]:
        self._members_are(self.members - {event["app"]})
        return Counter()

    def _members_are(self, members: set[str]) -> None:
        self.members = members
        self.membership.append((self.seq, frozenset(members)))

    def _authorised(self, event: Event, _: Order) -> Counter[tuple[str, str]]:
        is_successful = event["error"] is None
        account = Account(
            currency=event["currency"],
            amount=event["amount"],
            is_successful=is_successful,
            pending=event["amount"] if is_successful else 0,
        )
        self.transactions[event["transaction"]] = account
        self._note(account)
        return Counter()

    def _captured(self, event: Event, order: Order) -> Counter[tuple[str, str]]:
        account, command = self.transactions[event["transaction"]], order.command
        amount, worth = event["sum"]["amount"], event["sum"]["worth"]
        assert isinstance(command, Capture), "a capture was ordered"
        assert (command.transaction, command.amount) == (event["transaction"], amount)
        assert account.is_successful, "T5: only successful transactions are captured"
        assert 0 < amount <= account.pending, f"T5: {amount} of {account.pending} was captured"
        rate = _fraction(command.rate)
        assert worth == round(amount * rate), f"M3: {amount} x {rate} is not {worth}"
        pricing = self.merchant["pricing"]
        flat = round(pricing["flat"]["amount"] * _fraction(command.flat_rate))
        proportional = round(Fraction(worth * pricing["rate_ppm"], 1_000_000))
        assert event["fee"] == {"flat": flat, "rate": proportional}, f"M3, M6: {event['fee']}"
        account.pending -= amount
        account.captured += amount
        account.lots.append(Lot(amount, worth, rate))
        self._suspect(event, order, account)
        return self._settled(event, account, "capture", 1, flat + proportional)

    def _suspect(self, event: Event, order: Order, account: Account) -> None:
        """C3: a capture without a key, equal to one of the last minute."""
        is_equal = any(
            (kind, amount) == ("capture", event["sum"]["amount"])
            and self.at_ms - at_ms <= MINUTE_MS
            for kind, at_ms, amount, _, _ in account.trail
        )
        self._suspected = event if is_equal and not order.idempotency_key else None

    def _duplicate(self, event: Event, _: Order) -> Counter[tuple[str, str]]:
        assert self._suspected is not None, "C3: nothing was suspicious"
        assert event["earlier_line"] in self.lines, "C3: the earlier capture has a line"
        self._suspected = None
        return Counter()

    def _refunded(self, event: Event, _: Order) -> Counter[tuple[str, str]]:
        account = self.transactions[event["transaction"]]
        amount = event["sum"]["amount"]
        assert 0 < amount <= account.refundable, f"T6: {amount} of {account.refundable} refunded"
        self._take(account, event)
        account.refunded += amount
        return self._settled(event, account, "refund", -1, 0)

    def _voided(self, event: Event, _: Order) -> Counter[tuple[str, str]]:
        account, amount = self.transactions[event["transaction"]], event["amount"]
        assert 0 < amount <= account.pending, f"T7: {amount} of {account.pending} was voided"
        account.pending -= amount
        account.voided += amount
        account.trail.append(("void", self.at_ms, amount, 0, None))
        self._note(account)
        return Counter()

    def _disputed(self, event: Event, order: Order) -> Counter[tuple[str, str]]:
        account = self.transactions[event["transaction"]]
        amount = event["sum"]["amount"]
        assert 0 < amount <= account.refundable, f"T2: {amount} of {account.refundable} disputed"
        assert isinstance(order.command, OpenDispute), "a dispute was ordered"
        flat = self.merchant["pricing"]["dispute"]["amount"]
        fee = round(flat * _fraction(order.command.dispute_rate))
        assert event["fee"] == {"flat": fee, "rate": 0}, f"T10: the fee is {fee}"
        parts = self._take(account, event)
        account.disputed += amount
        dispute = Dispute(event["transaction"], amount, parts, opened=self.seq)
        self.disputes[event["dispute"]] = dispute
        return self._settled(event, account, "dispute", -1, fee)

    def _won(self, event: Event, _: Order) -> Counter[tuple[str, str]]:
        dispute, account = self._decide(event)
        worth = sum(part for _, _, part in dispute.parts)
        assert event["sum"]["worth"] == worth, "T10: winning books what opening did"
        for lot, amount, part in dispute.parts:
            account.lots[lot].left += amount
            account.lots[lot].worth += part
        account.disputed -= dispute.amount
        account.wins += 1
        return self._settled(event, account, "won", 1, 0)

    def _lost(self, event: Event, _: Order) -> Counter[tuple[str, str]]:
        dispute, account = self._decide(event)
        self.lines[event["line"]] = 0
        account.trail.append(("lost", self.at_ms, dispute.amount, 0, event["line"]))
        self._note(account)
        return Counter()

    def _decide(self, event: Event) -> tuple[Dispute, Account]:
        dispute = self.disputes[event["dispute"]]
        assert not dispute.decided, "T10: a dispute is decided once"
        assert dispute.transaction == event["transaction"]
        assert dispute.amount == event["sum"]["amount"], "T10: all of it is decided"
        dispute.decided = self.seq
        return dispute, self.transactions[dispute.transaction]

    def _paid_out(self, event: Event, _: Order) -> Counter[tuple[str, str]]:
        funding, amount = self.merchant["currency"], event["amount"]
        assert event["currency"] == funding
        assert 0 < amount <= self.accounts["merchant", funding], "a payout is of the balance"
        self.lines[event["line"]] = -amount
        return Counter({("merchant", funding): -amount, ("paid_out", funding): amount})

    def _take(self, account: Account, event: Event) -> list[tuple[int, int, int]]:
        """M7: from the oldest captures, at their rates; the whole of one is worth what it was."""
        left, parts = event["sum"]["amount"], []
        for taking in event["takings"]:
            lot = account.lots[taking["lot"]]
            amount, worth = taking["amount"], taking["worth"]
            assert amount == min(left, lot.left) > 0, "M7: first in, first out"
            assert all(not earlier.left for earlier in account.lots[: taking["lot"]]), "M7"
            if amount == lot.left:
                assert worth == lot.worth, "M7: a full refund nets what was captured"
            drift = abs(worth - amount * lot.rate)
            assert drift <= 1 + account.wins, f"M5: {amount} x {lot.rate} is not {worth}"
            assert 0 <= worth <= lot.worth, "M7: no more than there is"
            lot.left -= amount
            lot.worth -= worth
            left -= amount
            parts.append((taking["lot"], amount, worth))
        assert left == 0, "M7: all of it comes from captures"
        assert sum(part[2] for part in parts) == event["sum"]["worth"], "M7: the sum of the parts"
        return parts

    def _settled(
        self, event: Event, account: Account, kind: str, sign: int, fee: int
    ) -> Counter[tuple[str, str]]:
        """The line, the trail and the legs of a move; T1 and T2 after it."""
        funding, amount = self.merchant["currency"], event["sum"]["amount"]
        worth = event["sum"]["worth"]
        assert (event["sum"]["currency"], event["sum"]["funding"]) == (account.currency, funding)
        assert event["line"] not in self.lines, "M1: a line is of one move"
        balance = sign * worth - fee
        self.lines[event["line"]] = balance
        account.trail.append((kind, self.at_ms, amount, balance, event["line"]))
        self._note(account)
        legs: Counter[tuple[str, str]] = Counter()
        legs["clearing", account.currency] -= sign * amount
        if account.currency != funding:
            legs["fx", account.currency] += sign * amount
            legs["fx", funding] -= sign * worth
        legs["merchant", funding] += balance
        legs["fees", funding] += fee
        return legs

    def _note(self, account: Account) -> None:
        parts = (account.pending, account.captured, account.voided)
        assert min(*parts, account.refunded, account.disputed, account.refundable) >= 0, "T1, T2"
        whole = account.amount if account.is_successful else 0
        assert sum(parts) == whole, "T1: A = P + C + V"
        account.history.append((self.seq, account.pending, account.refundable))


_HANDLERS: dict[str, Callable[[BookAuditor, Event, Order], Counter[tuple[str, str]]]] = {
    "merchant.opened": BookAuditor._opened,
    "app.added": BookAuditor._added,
    "app.revoked": BookAuditor._revoked,
    "transaction.created": BookAuditor._authorised,
    "transaction.captured": BookAuditor._captured,
    "transaction.possible_duplicate": BookAuditor._duplicate,
    "transaction.refunded": BookAuditor._refunded,
    "transaction.voided": BookAuditor._voided,
    "dispute.opened": BookAuditor._disputed,
    "dispute.won": BookAuditor._won,
    "dispute.lost": BookAuditor._lost,
    "merchant.paid_out": BookAuditor._paid_out,
}


def _fraction(rate: Rate | None) -> Fraction:
    return Fraction(1) if rate is None else Fraction(rate.numerator, rate.denominator)


def _nonzero(sums: Counter[tuple[str, str]]) -> dict[tuple[str, str], int]:
    return {leg: amount for leg, amount in sums.items() if amount}
