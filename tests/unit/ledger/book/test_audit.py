"""What a book's documents must say together (M1, M2): the audit of a story, and of forged ones."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest

from tests.support.ledger.story import tell
from tollgate.actors.ledger.book.case import Entities
from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.book.journal_replay import replay_entry, replayed_rows
from tollgate.actors.ledger.law.rows import EntityRow
from tollgate.actors.ledger.proof.document_audit import BookAudit
from tollgate.actors.ledger.proof.table_rebuild import Replayed

Document = dict[str, Any]


@lru_cache
def books() -> list[list[Replayed]]:
    """What each entry of the story made, book by book."""
    made: dict[str, list[Replayed]] = {}
    heads: dict[str, Head] = {}
    entities: dict[Any, Any] = {}
    for entry in tell().log:
        known: Entities = entities
        head, changed = replay_entry(heads.get(entry.book), known, entry)
        rows, keys = replayed_rows(known, head, changed, entry)
        made.setdefault(entry.book, []).append(Replayed(entry, head, rows, keys))
        heads[entry.book] = head
        entities.update(changed)
    return list(made.values())


def findings(forge: Callable[[Replayed], Replayed]) -> Iterator[str]:
    for book in books():
        audit = BookAudit()
        for made in book:
            yield from audit.check(forge(made))


def changing(kind: str, entry: str, change: Callable[[Document], None]) -> Any:
    """Forges the documents of a kind in what entries of a kind made."""

    def forged(row: EntityRow) -> EntityRow:
        document = json.loads(row.document)
        change(document)
        return replace(row, document=json.dumps(document))

    def forge(made: Replayed) -> Replayed:
        if made.entry.kind != entry:
            return made
        return replace(made, rows=[forged(r) if r.kind == kind else r for r in made.rows])

    return forge


def add_one(document: Document) -> None:
    document["balance"] += 1


def trail_adds_one(document: Document) -> None:
    document["trail"][-1]["balance"] += 1


def trail_forgets_line(document: Document) -> None:
    del document["trail"][-1]["lineId"]


def lines_are_lost(made: Replayed) -> Replayed:
    return replace(made, rows=[row for row in made.rows if row.kind != "line"])


def test_a_story_holds() -> None:
    assert [len(book) for book in books()] != []
    assert list(findings(lambda made: made)) == []


FORGERIES = {
    "a line": (changing("line", "transaction.captured", add_one), "is not what the trail of"),
    "a payout's line": (changing("line", "merchant.paid_out", add_one), "the sum of the lines is"),
    "a trail": (
        changing("transaction", "transaction.refunded", trail_adds_one),
        "is not what the trail of",
    ),
    "a trail without a line": (
        changing("transaction", "transaction.captured", trail_forgets_line),
        "moves money without its line ''",
    ),
    "no lines": (lines_are_lost, "moves money without its line"),
    "a merchant": (changing("merchant", "transaction.captured", add_one), "the balance is"),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forgery_is_found(what: str) -> None:
    forge, finding = FORGERIES[what]
    assert any(finding in line for line in findings(forge))


def test_an_account_that_is_not_the_sum_of_the_lines_is_found() -> None:
    without = [line for line in findings(lines_are_lost) if line.startswith("the account holds")]
    assert without
