"""The journal's store in memory, for tests and the simulation.

`MemoryTables` is what would be on disk and outlives an incarnation; a `MemoryStore` is one
incarnation's way to it. A commit is checked as a whole before any of it is written, so it is all or
nothing like the transactions of the databases, and it is fenced like them (F1).
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from tollgate.actors.ledger.law.rows import (
    MEMBERSHIP,
    Commit,
    EntityRow,
    Entry,
    HeadRow,
    KeyRow,
    OperationRow,
)
from tollgate.actors.ledger.law.values import BookId, EntityId, IdempotencyKey
from tollgate.actors.ledger.storage.store import Fenced

Key = TypeVar("Key", bound=Hashable)
Row = TypeVar("Row")


class MemoryTables:
    """The tables. `entities` are without memberships, which share their apps' ids."""

    def __init__(self) -> None:
        self.epochs: dict[str, int] = defaultdict(int)
        self.entries: dict[BookId, list[Entry]] = defaultdict(list)
        self.heads: dict[BookId, HeadRow] = {}
        self.entities: dict[EntityId, EntityRow] = {}
        self.memberships: dict[tuple[BookId, EntityId], EntityRow] = {}
        self.keys: dict[str, KeyRow] = {}
        self.operations: dict[str, OperationRow] = {}
        self.by_key: dict[IdempotencyKey, OperationRow] = {}

    def write(self, commit: Commit) -> None:
        """All of it, or Fenced and nothing. Two writers of a book are found by its numbers."""
        self._check(commit)
        for entry in commit.entries:
            self.entries[entry.book].append(entry)
        for row in commit.entities:
            self._write_entity(row)
        for key in commit.keys:
            if key.is_deleted:
                self.keys.pop(key.digest, None)
            else:
                self.keys[key.digest] = key
        for head in commit.heads:
            self.heads[head.book] = head
        for operation in commit.operations:
            self.operations[operation.operation] = operation
            if operation.key:
                self.by_key[operation.app, operation.book, operation.key] = operation

    def _check(self, commit: Commit) -> None:
        written: dict[BookId, int] = {}
        for entry in commit.entries:
            last = written.get(entry.book, len(self.entries.get(entry.book, ())))
            if entry.seq <= last:
                raise Fenced(f"entry {entry.seq} of book {entry.book} is there already")
            assert entry.seq == last + 1, f"book {entry.book}: no entry between {last} and its next"
            written[entry.book] = entry.seq
        operations = [operation.operation for operation in commit.operations]
        assert len(set(operations)) == len(operations), "an operation is done once"
        assert self.operations.keys().isdisjoint(operations), "an operation is done once"
        for row in commit.entities:
            if row.kind != MEMBERSHIP and (known := self.entities.get(row.id)) is not None:
                assert known.book == row.book, "an id is one entity's, in whatever book"

    def _write_entity(self, row: EntityRow) -> None:
        if row.kind == MEMBERSHIP:
            if row.is_deleted:
                self.memberships.pop((row.book, row.id), None)
            else:
                self.memberships[row.book, row.id] = row
        elif row.is_deleted:
            self.entities.pop(row.id, None)
        else:
            self.entities[row.id] = row


class MemoryStore:
    """One incarnation of one shard, writing to shared tables."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables
        self._shard = ""
        self._epoch = 0

    @property
    def anchored_until_ms(self) -> int:
        return 0

    async def take_over(self, shard: str, incarnation: str) -> int:
        del incarnation  # (of interest to whoever looks at a database)
        self._tables.epochs[shard] += 1
        self._shard, self._epoch = shard, self._tables.epochs[shard]
        return self._epoch

    async def append(self, commit: Commit) -> None:
        await self.check_epoch()
        self._tables.write(commit)

    async def check_epoch(self) -> None:
        assert self._epoch, "a shard takes over before it works"
        if self._tables.epochs[self._shard] != self._epoch:
            raise Fenced(
                f"shard {self._shard} is in epoch {self._tables.epochs[self._shard]}, "
                f"and this is its incarnation of epoch {self._epoch}"
            )

    async def heads(self, books: Sequence[BookId]) -> dict[BookId, HeadRow]:
        return _found(self._tables.heads, books)

    async def entities(self, ids: Sequence[EntityId]) -> dict[EntityId, EntityRow]:
        return _found(self._tables.entities, ids)

    async def operations(
        self, operations: Sequence[str], keys: Sequence[IdempotencyKey]
    ) -> list[OperationRow]:
        found = _found(self._tables.operations, operations)
        for key in keys:
            if (row := self._tables.by_key.get(key)) is not None:
                found[row.operation] = row
        return list(found.values())


def _found(table: Mapping[Key, Row], wanted: Iterable[Key]) -> dict[Key, Row]:
    return {key: table[key] for key in wanted if key in table}
