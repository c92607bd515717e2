"""An auditor of books who trusts nothing but what was written: documents, postings, entries.

It knows the invariants (docs/payments.md, part E), and nothing of how the machine keeps them.
"""

from collections import defaultdict
from typing import Any

from tests.support.ledger.books import Books
from tollgate.actors.ledger.book.entities import Entity, entity_of_row
from tollgate.actors.ledger.book.head import Head, head_of_row
from tollgate.actors.ledger.book.journal_replay import replay_entry, replayed_rows
from tollgate.actors.ledger.law.rows import Commit, EntityRow, KeyRow
from tollgate.actors.ledger.law.values import BookId, EntityId

TRAIL_KINDS = ("capture", "refund", "void", "dispute")
LINE_KINDS = ("capture", "refund", "dispute", "payout")
KINDS_WITH_LINE = frozenset(
    {
        "transaction.captured",
        "transaction.refunded",
        "dispute.opened",
        "dispute.won",
        "dispute.lost",
        "merchant.paid_out",
    }
)


def audit(books: Books) -> None:
    """All that must hold of the books at any time."""
    for book in books.heads:
        for transaction in books.documents("transaction", book):
            audit_transaction(transaction)
        audit_lines(books, book)
        audit_balance(books, book)
    audit_postings(books)
    audit_order(books)


def amounts_of(document: Any) -> tuple[int, ...]:
    """A, P, C, R, V, D of a transaction's document."""
    states = ("pending", "captured", "refunded", "voided", "disputed")
    return (document["amount"], *(document[f"{state}Amount"] for state in states))


def audit_transaction(document: Any) -> None:
    """T1, T2, T4."""
    amount, pending, captured, refunded, voided, disputed = amounts_of(document)
    trail = document["trail"]
    assert min(pending, captured, refunded, voided, disputed) >= 0 < amount
    if document["successful"]:
        assert amount == pending + captured + voided
    else:
        assert pending == captured == refunded == voided == disputed == 0
        assert trail == []
    assert disputed + refunded <= captured
    sums = dict.fromkeys(TRAIL_KINDS, 0)
    for entry in trail:
        (kind,) = (kind for kind in TRAIL_KINDS if kind in entry)
        sums[kind] += entry["amount"] * _sign(entry)
    assert sums == {
        "capture": captured,
        "refund": refunded,
        "void": voided,
        "dispute": disputed,
    }
    times = [entry["created"] for entry in trail]
    assert times == sorted(times)


def _sign(entry: Any) -> int:
    """What an entry does to the sum of its kind: a won dispute is none any more."""
    match entry:
        case {"dispute": {"id": _, "won": True, **rest}} if not rest:
            return -1
        case {"dispute": {"id": _, "lost": True, **rest}} if not rest:
            return 0
        case {"dispute": {"id": _, **rest}}:
            assert not rest
    return 1


def audit_lines(books: Books, book: BookId) -> None:
    """M1: trail entries but voids, and payouts, have exactly one line each, with equal balance."""
    lines = {line["id"]: line for line in books.documents("line", book)}
    for line in lines.values():
        assert len([kind for kind in LINE_KINDS if kind in line]) == 1
    of_trails = {}
    for transaction in books.documents("transaction", book):
        for entry in transaction["trail"]:
            if "void" in entry:
                assert "lineId" not in entry
                assert entry["balance"] == 0
                continue
            line = lines[entry["lineId"]]
            assert line["id"] not in of_trails
            of_trails[line["id"]] = entry
            assert line["transactionId"] == transaction["id"]
            assert line["amount"] == {
                "currency": transaction["currency"],
                "amount": entry["amount"],
            }
            assert line["balance"] == entry["balance"]
            assert line["fee"] == entry["fee"]["flat"] + entry["fee"]["rate"] >= 0
            assert line["test"] == transaction["test"]
    payouts = {line["id"] for line in lines.values() if "payout" in line}
    assert lines.keys() == of_trails.keys() | payouts


def audit_balance(books: Books, book: BookId) -> None:
    """M2, at every entry: lines and the entries that they are of come in the same order."""
    lines = iter(books.documents("line", book))
    by_lines = by_postings = 0
    for entry in (entry for entry in books.log if entry.book == book):
        by_postings += sum(leg.amount for leg in entry.postings if leg.account == "merchant")
        if entry.kind in KINDS_WITH_LINE:
            by_lines += next(lines)["balance"]
        assert by_lines == by_postings
    assert next(lines, None) is None
    for merchant in books.documents("merchant", book):
        assert merchant["balance"] == by_lines


def audit_postings(books: Books) -> None:
    """M4, M8: whole numbers that sum up to zero per currency, in every entry and so in all."""
    trial: defaultdict[str, int] = defaultdict(int)
    for entry in books.log:
        sums: defaultdict[str, int] = defaultdict(int)
        for leg in entry.postings:
            assert type(leg.amount) is int
            sums[leg.currency] += leg.amount
        assert not any(sums.values())
        for currency, amount in sums.items():
            trial[currency] += amount
    assert not any(trial.values())
    accounts: defaultdict[str, int] = defaultdict(int)
    for row in books.heads.values():
        for account, balance in head_of_row(row).accounts.items():
            accounts[account.partition(":")[2]] += balance
    assert not any(accounts.values())


def audit_order(books: Books) -> None:
    """L4, F13, C7: per book, what was allocated rises in the order of commits; one event each."""
    for book in books.heads:
        entries = [entry for entry in books.log if entry.book == book]
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        times = [entry.at_ms for entry in entries]
        assert times == sorted(set(times))
        events = books.documents("event", book)
        assert [(event["seq"], event["type"]) for event in events] == [
            (entry.seq, entry.kind) for entry in entries
        ]
        for kind in ("line", "transaction", "event"):
            created = [document["created"] for document in books.documents(kind, book)]
            assert created == sorted(created)


def audit_replay(books: Books) -> None:
    """C5: from the entries alone come the same heads, entities, rows and keys."""
    heads: dict[BookId, Head] = {}
    entities: dict[EntityId, Entity | None] = {}
    again = Books()
    for entry in books.log:
        head, changed = replay_entry(heads.get(entry.book), entities, entry)
        rows, keys = replayed_rows(entities, head, changed, entry)
        heads[entry.book] = head
        entities |= changed
        _write(again, rows, keys)
    assert {book: head_of_row(row) for book, row in books.heads.items()} == heads
    assert again.tables == books.tables
    assert again.live_keys == books.live_keys
    kept = {row.id: entity_of_row(row) for row in books.tables.values() if row.state}
    assert kept == {key: entity for key, entity in entities.items() if entity is not None}


def _write(books: Books, rows: list[EntityRow], keys: list[KeyRow]) -> None:
    books.commit(Commit(entities=rows, keys=keys))
