"""Going over a book again: from stored entries to the very same heads, entities and rows (C5).

Every schema version that was ever written is read, and the chain of hashes is checked on the way;
postings are taken as they were booked and compared with what the event says.
"""

from tollgate.actors.ledger.book.case import Entities
from tollgate.actors.ledger.book.chain import BrokenJournal, check_chain, event_of
from tollgate.actors.ledger.book.evolution import evolve
from tollgate.actors.ledger.book.head import Head, genesis
from tollgate.actors.ledger.book.invariants import check_invariants
from tollgate.actors.ledger.book.projection import entity_rows_of, key_rows_of
from tollgate.actors.ledger.book.transitions import Changed
from tollgate.actors.ledger.law.accounts import postings_of
from tollgate.actors.ledger.law.rows import EntityRow, Entry, KeyRow


def replay_entry(head: Head | None, entities: Entities, entry: Entry) -> tuple[Head, Changed]:
    """The head after a stored entry, and the entities it changed; `head` None: its book's first.
    `entities` hold those that earlier entries made. Raises BrokenJournal."""
    before = genesis(entry.book) if head is None else head
    check_chain(before, entry)
    event = event_of(entry)
    if postings_of(event) != entry.postings:
        raise BrokenJournal(
            f"entry {entry.seq} of book {entry.book}: its postings are not those of its event"
        )
    after, changed = evolve(before, entities, event, entry)
    check_invariants(before, entities, after, changed, (entry,))
    return after, changed


def replayed_rows(
    entities: Entities, head: Head, changed: Changed, entry: Entry
) -> tuple[list[EntityRow], list[KeyRow]]:
    """The rows that an entry wrote: `entities` before it, `head` and `changed` after it."""
    return entity_rows_of(head, changed, event_of(entry), entry), key_rows_of(entities, changed)
