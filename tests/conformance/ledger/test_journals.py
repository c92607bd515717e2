"""Journals of earlier days are read for ever, and come to what they came to then (F12, C5)."""

import json
from pathlib import Path
from typing import get_args

import pytest

from tests.support.ledger.auditor import audit
from tests.support.ledger.books import Books
from tests.support.ledger.story import entry_of, outcome_of, tell
from tollgate.actors.ledger.book.chain import BrokenJournal, event_of
from tollgate.actors.ledger.book.entities import Entity
from tollgate.actors.ledger.book.head import Head, row_of_head
from tollgate.actors.ledger.book.journal_replay import replay_entry, replayed_rows
from tollgate.actors.ledger.law.events import Event
from tollgate.actors.ledger.law.rows import Commit, Entry
from tollgate.actors.ledger.law.values import BookId, EntityId

JOURNALS = sorted(
    Path(__file__).parent.glob("journal-*.jsonl"), key=lambda path: int(path.stem.split("-")[1])
)


def entries(journal: Path) -> list[Entry]:
    return [entry_of(line) for line in journal.read_text(encoding="utf-8").splitlines()]


def replayed(log: list[Entry]) -> Books:
    books = Books()
    heads: dict[BookId, Head] = {}
    entities: dict[EntityId, Entity | None] = {}
    for entry in log:
        head, changed = replay_entry(heads.get(entry.book), entities, entry)
        rows, keys = replayed_rows(entities, head, changed, entry)
        books.commit(Commit([entry], rows, keys, [row_of_head(head)]))
        heads[entry.book] = head
        entities |= changed
    return books


@pytest.mark.parametrize("journal", JOURNALS, ids=lambda path: path.stem)
def test_a_journal_comes_to_what_it_came_to(journal: Path) -> None:
    books = replayed(entries(journal))
    audit(books)
    expected = json.loads(journal.with_suffix(".json").read_text(encoding="utf-8"))
    assert outcome_of(books) == expected


def test_the_journals_hold_every_kind_of_event() -> None:
    kept = {type(event_of(entry)) for journal in JOURNALS for entry in entries(journal)}
    assert kept == set(get_args(Event))


def test_the_story_of_today_is_the_latest_journal() -> None:
    """A change of what is stored needs a new journal, and a new schema version of the event."""
    assert tell().log == entries(JOURNALS[-1])


@pytest.mark.parametrize("position", [0, 7, -1])
def test_a_changed_journal_is_found(position: int) -> None:
    lines = JOURNALS[0].read_text(encoding="utf-8").splitlines()
    lines[position] = lines[position].replace("192.0.2.1", "192.0.2.7")
    with pytest.raises(BrokenJournal, match="its hash is"):
        replayed([entry_of(line) for line in lines])
