"""The ports of storage: what a shard needs to write, and what doors need to read.

`JournalStore` belongs to one shard incarnation. Its commits are fenced: each one checks, in its own
transaction, that no newer incarnation has taken the shard over (F1).
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.ledger.law.rows import Commit, EntityRow, Entry, HeadRow, OperationRow
from tollgate.actors.ledger.law.values import BookId, EntityId, IdempotencyKey


class Fenced(Exception):  # noqa: N818 - a state of the world, not a mistake
    """A newer incarnation owns the shard (F1), or a day was anchored that this one still writes to
    (F7). Nothing was written; the process must end."""


class OutcomeUnknown(Exception):  # noqa: N818 - likewise
    """An I/O error during commit: it may or may not be durable. The process must end (F8)."""


class BrokenCommit(AssertionError):  # noqa: N818 - a broken invariant of whoever made the commit
    """The tables refuse the commit for what is in it. Nothing was written."""


class StorageDown(Exception):  # noqa: N818 - likewise
    """Storage could not be read; nothing is known about what is in it. Ask again later."""


class JournalStore(Protocol):
    """Durable writes of one shard. Everything but `append` may raise StorageDown."""

    @property
    def anchored_until_ms(self) -> int:
        """The end of the newest anchored day, as far as it is known; 0: none is. No entry may be
        stamped before it (F7)."""

    async def take_over(self, shard: str, incarnation: str) -> int:
        """Become the shard's owner; the new epoch, which later commits carry."""

    async def append(self, commit: Commit) -> None:
        """Write everything or nothing, durably. Raises Fenced, OutcomeUnknown, BrokenCommit."""

    async def check_epoch(self) -> None:
        """For whoever answers from memory: raises Fenced when a newer incarnation may have
        committed (C6)."""

    async def heads(self, books: Sequence[BookId]) -> dict[BookId, HeadRow]:
        """The heads of these books; those that do not exist are left out."""

    async def entities(self, ids: Sequence[EntityId]) -> dict[EntityId, EntityRow]:
        """Entities with their state; those that do not exist, and memberships, are left out."""

    async def operations(
        self, operations: Sequence[str], keys: Sequence[tuple[EntityId, BookId, str]]
    ) -> list[OperationRow]:
        """Returns what became of these operations, and of these (app, book, idempotency key)."""


@dataclass(frozen=True, slots=True)
class PageBounds:
    """A part of a list: see part A, Lists. `is_ascending` when only `after` was given, or by
    `sort`. Bounds are exclusive and need not exist."""

    limit: int
    before: EntityId | None = None
    after: EntityId | None = None
    is_ascending: bool = False


@dataclass(frozen=True, slots=True)
class ListFilter:
    """None: any."""

    transaction: EntityId | None = None
    is_test: bool | None = None
    is_successful: bool | None = None


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """The owner of a key."""

    app: EntityId
    last4: str
    digest: str


class ReadStore(Protocol):
    """Reads for the API, never older than the last reply of a shard. All may raise StorageDown."""

    async def key_owner(self, digest: str) -> KeyOwner | None: ...

    async def membership(self, book: BookId, app: EntityId) -> str | None:
        """The document of an app in a book's list; None: it has no access."""

    async def entity(self, kind: str, entity_id: EntityId) -> EntityRow | None: ...

    async def merchant_by_public_key(self, public_key: str) -> EntityRow | None: ...

    async def page(
        self, kind: str, book: BookId, page: PageBounds, wanted: ListFilter
    ) -> list[str]:
        """Documents of a book's entities of a kind, in the order asked for."""

    async def merchants_of(self, app: EntityId, page: PageBounds, wanted: ListFilter) -> list[str]:
        """Documents of the merchants that an app is a member of; of the filters, `is_test`."""

    async def waiting_merchants(self, page: PageBounds) -> list[str]:
        """Documents of the live merchants, of all books, that wait for the operator's approval."""

    async def waiting_origins(self, since: EntityId, count_max: int) -> list[str]:
        """Who opened these merchants, and from where: the origins of entries, as JSON. Of those
        with ids from `since` on, the newest, at most so many."""

    async def balance_at(self, book: BookId, at_ms: int | None) -> int | None:
        """The balance after the last entry at or before that time; None: no such book."""

    async def balances_at(
        self, book: BookId, at_ms: int | None
    ) -> Mapping[tuple[str, str], int] | None:
        """Of every (account, currency) of a book, at that moment; None: no such book."""

    async def trial_balance(self) -> list[tuple[str, str, int]]:
        """(account, currency, sum) over all books; per currency the sums add up to zero (M8)."""

    async def stray_balance(self) -> list[tuple[str, str, int]]:
        """The same of postings that belong to no entry, of which there must be none."""

    async def operation(self, key: IdempotencyKey) -> OperationRow | None:
        """The operation that was done with this idempotency key, while it is kept (F5)."""

    async def operation_named(self, operation: str) -> OperationRow | None:
        """The operation of this id, while it is kept (F5)."""

    def entries(self, book: BookId | None, after_seq: int = 0) -> AsyncIterator[Entry]:
        """Journal entries in order, of one book or of all, with their postings."""
