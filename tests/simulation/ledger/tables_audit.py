"""What reads are answered from, against what the auditor of the journal knows (M1, M2, T4, C7)."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.simulation.ledger.auditor import Account, BookAuditor
from tests.support.ledger.memory_store import MemoryTables
from tollgate.actors.ledger.book.entities import Entity, entity_of_row
from tollgate.actors.ledger.book.head import Head, head_of_row
from tollgate.actors.ledger.book.journal_replay import replay_entry
from tollgate.actors.ledger.law.rows import EntityRow, HeadRow
from tollgate.actors.ledger.law.values import BookId, EntityId

_TRAIL_FLAGS = {"won": {"won": True}, "lost": {"lost": True}, "dispute": {}}


def check_tables(auditors: Sequence[BookAuditor], tables: MemoryTables) -> None:
    """Every document, head and membership of the books; and that there are no others."""
    totals: Counter[str] = Counter()
    rows: dict[str, dict[str, dict[str, EntityRow]]] = {}
    for row in tables.entities.values():
        rows.setdefault(row.book, {}).setdefault(row.kind, {})[row.id] = row
    for auditor in auditors:
        for (_, currency), amount in auditor.accounts.items():
            totals[currency] += amount
        kinds = rows.pop(auditor.book, {})
        _check_head(auditor, tables.heads[BookId(auditor.book)])
        assert set(kinds.get("event", {})) == set(auditor.events), "C7: one event per entry"
        _check_lines(auditor, kinds.get("line", {}))
        _check_transactions(auditor, kinds.get("transaction", {}))
        assert set(kinds.get("dispute", {})) == set(auditor.disputes)
        if auditor.merchant:
            _check_merchant(auditor, kinds["merchant"][auditor.book])
            members = {app for book, app in tables.memberships if book == auditor.book}
            assert members == auditor.members, "A2: reads know the members"
    assert not rows, f"rows of books without a journal: {list(rows)}"
    assert not any(totals.values()), f"M8: everything together is nothing, not {totals}"


def _check_head(auditor: BookAuditor, head: HeadRow) -> None:
    assert (head.seq, head.hash) == (auditor.seq, auditor.hash), "the head is the last entry's"
    accounts = {tuple(name.split(":")): v for name, v in json.loads(head.state)["accounts"].items()}
    assert {k: v for k, v in accounts.items() if v} == {
        k: v for k, v in auditor.accounts.items() if v
    }, "M2: the head's balances are the sums of the postings"


def _check_lines(auditor: BookAuditor, rows: dict[str, EntityRow]) -> None:
    balances = {each: json.loads(row.document)["balance"] for each, row in rows.items()}
    assert balances == auditor.lines, "M1: one line per move, with its balance"


def _check_transactions(auditor: BookAuditor, rows: dict[str, EntityRow]) -> None:
    assert set(rows) == set(auditor.transactions), "every transaction, and no other"
    for each, account in auditor.transactions.items():
        document = json.loads(rows[each].document)
        assert document == {**document, **_amounts(account)}, f"T1-T4: {document} of {account}"
        trail = [_trail_entry(entry) for entry in document["trail"]]
        assert trail == [
            (kind, amount, balance, line) for kind, _, amount, balance, line in account.trail
        ], "T4: the trail is what happened"


def _amounts(account: Account) -> dict[str, object]:
    return {
        "amount": account.amount,
        "currency": account.currency,
        "pendingAmount": account.pending,
        "capturedAmount": account.captured,
        "refundedAmount": account.refunded,
        "voidedAmount": account.voided,
        "disputedAmount": account.disputed,
        "successful": account.is_successful,
    }


def _trail_entry(entry: dict[str, Any]) -> tuple[str, int, int, str | None]:
    kinds = [kind for kind in ("capture", "refund", "void", "dispute") if kind in entry]
    assert len(kinds) == 1, "T4: each entry has exactly one kind"
    kind = kinds[0]
    if kind == "dispute":
        flags = set(entry["dispute"]) - {"id"}
        assert len(flags) <= 1, "T10: won or lost, not both"
        kind = flags.pop() if flags else kind
    return kind, entry["amount"], entry["balance"], entry.get("lineId")


def _check_merchant(auditor: BookAuditor, row: EntityRow) -> None:
    balance = json.loads(row.document)["balance"]
    assert balance == sum(auditor.lines.values()), "M2: the merchant's balance is that of his lines"


def check_replay(tables: MemoryTables) -> None:
    """C5: going over the journal again gives the very state that is stored."""
    for book, entries in tables.entries.items():
        head: Head | None = None
        entities: dict[EntityId, Entity | None] = {}
        for entry in entries:
            head, changed = replay_entry(head, entities, entry)
            entities.update(changed)
        assert head == head_of_row(tables.heads[book]), "C5: the head, replayed"
        for each, entity in entities.items():
            row = tables.entities.get(EntityId(each))
            stored = None if row is None else entity_of_row(row)
            assert stored == entity, f"C5: {each}, replayed"
