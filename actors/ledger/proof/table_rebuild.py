"""From entries to tables again: each entry is replayed, and the rows it must have made are written.

Verification rebuilds into empty tables of its own and compares; a restore rebuilds the real ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from sqlalchemy.engine import Dialect

from tollgate.actors.kernel.bounded_cache import LruCache
from tollgate.actors.ledger.book.chain import BrokenJournal, event_of
from tollgate.actors.ledger.book.entities import Entity, known_of_row
from tollgate.actors.ledger.book.head import Head, head_of_row, row_of_head
from tollgate.actors.ledger.book.journal_replay import replay_entry, replayed_rows
from tollgate.actors.ledger.law.ids import is_id
from tollgate.actors.ledger.law.rows import Commit, EntityRow, Entry, KeyRow, OperationRow
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.storage.checkpoints import CheckpointWriter
from tollgate.actors.ledger.storage.commit_statements import CommitWriter
from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.reading.shard_state import StateReader

ENTITIES_KEPT_MAX = 50_000
# The kinds of rows that one entry writes, and no other.
WRITTEN_ONCE = frozenset({"line", "fraud", "settlement", "event"})


@dataclass(frozen=True, slots=True)
class Replayed:
    """The results of an entry: the head after it, and the rows it wrote. `overwritten`: of these
    the ones that are written once, and were there already."""

    entry: Entry
    head: Head
    rows: list[EntityRow]
    keys: list[KeyRow] = field(default_factory=list)
    overwritten: tuple[EntityRow, ...] = ()


class Rebuilder:
    """Belongs to one connection, in a transaction of its owner's."""

    def __init__(self, dialect: Dialect, connection: Connection) -> None:
        self._connection = connection
        self._writer = CommitWriter(dialect)
        self._checkpoints = CheckpointWriter(dialect)
        self._state = StateReader(dialect)
        self._kept: LruCache[EntityId, Entity] = LruCache(ENTITIES_KEPT_MAX)
        self._head: Head | None = None

    async def replay(self, book: BookId, entries: Sequence[Entry]) -> list[Replayed]:
        """The results of these entries, which come next in their book; nothing is written yet.

        Raises BrokenJournal, which names the first entry that cannot have been written so.
        """
        head = await self._head_of(book)
        entities = await self._entities_for(entries)
        made: list[Replayed] = []
        written: set[EntityId] = set()
        for entry in entries:
            try:
                head, changed = replay_entry(head, entities, entry)
                rows, keys = replayed_rows(entities, head, changed, entry)
            except (AssertionError, LookupError) as error:
                raise BrokenJournal(
                    f"entry {entry.seq} of book {book}: what came before does not allow it: {error}"
                ) from error
            once = [row for row in rows if row.kind in WRITTEN_ONCE]
            again = tuple(row for row in once if row.id in written or entities.get(row.id))
            written.update(row.id for row in once)
            made.append(Replayed(entry, head, rows, keys, again))
            entities.update(changed)
        self._head = head
        for each, entity in entities.items():
            if entity is None:
                self._kept.discard(each)
            else:
                self._kept.put(each, entity)
        return made

    async def write(
        self,
        made: Sequence[Replayed],
        operations: Sequence[OperationRow] = (),
        *,
        has_journal: bool,
    ) -> None:
        """The rows; with `has_journal` the entries and checkpoints as well."""
        commit = Commit(
            entities=[row for each in made for row in each.rows],
            keys=[key for each in made for key in each.keys],
            heads=[row_of_head(made[-1].head)] if made else [],
            operations=list(operations),
        )
        if has_journal:
            commit.entries.extend(each.entry for each in made)
        await self._writer.write(self._connection, commit)
        if has_journal:
            await self._checkpoints.write(self._connection, commit)

    async def _head_of(self, book: BookId) -> Head | None:
        if self._head is None or self._head.book != book:
            stored = await self._state.heads(self._connection, [book])
            self._head = head_of_row(stored[book]) if book in stored else None
        return self._head

    async def _entities_for(self, entries: Sequence[Entry]) -> dict[EntityId, Entity | None]:
        """Those that the entries speak of, as far as they are there already."""
        wanted = dict.fromkeys(each for entry in entries for each in _named(event_of(entry)))
        found: dict[EntityId, Entity | None] = {}
        absent = []
        for each in wanted:
            if (entity := self._kept.get(each)) is not None:
                found[each] = entity
            else:
                absent.append(each)
        if absent:
            stored = await self._state.entities(self._connection, absent)
            found.update((each, known_of_row(row)) for each, row in stored.items())
        return found


def _named(event: Struct) -> Iterator[EntityId]:
    """Every id in an event."""
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if isinstance(value, str) and is_id(value):
            yield EntityId(value)
