"""The rows that one commit writes: the journal, and the tables that reads are answered from.

The tables are written in the same transaction as the journal, so that a read never shows what
could still be lost, and a reply equals the next read (T9). Documents are the JSON texts of the
wire: a list is answered by joining them.
"""

from dataclasses import dataclass, field

from msgspec import Struct
from msgspec import field as struct_field

from tollgate.actors.ledger.law.outcomes import DoneKind
from tollgate.actors.ledger.law.values import BookId, EntityId


@dataclass(frozen=True, slots=True)
class Posting:
    """One leg of a journal entry: `amount` on an account, in minor units of `currency`."""

    account: str
    currency: str
    amount: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A journal entry: one event. `event` is canonical JSON with kind and schema version; `hash` is
    SHA-256 over the previous hash and the entry's canonical bytes (F7), hex."""

    book: BookId
    seq: int
    at_ms: int
    kind: str
    event: str
    origin: str
    operation: str
    hash: str
    postings: tuple[Posting, ...] = ()


# The kind of the rows that say which apps have access to a merchant.
MEMBERSHIP = "membership"


@dataclass(frozen=True, slots=True)
class EntityRow:
    """An entity as reads see it. `kind`: merchant, transaction, line, card, dispute, fraud,
    settlement, settled_day, notice, authorisation, user, app, membership, webhook, event. `state`:
    what the machine needs again, canonical JSON. `transaction`, `is_test`, `is_successful`: for
    filters; None where a kind has none. `is_successful` is set only where `is_test` is.
    `public_key`: a merchant's, where payment calls look; None otherwise. `is_deleted`: the row
    goes.

    An id is one entity's, in whatever book, with one exception: a membership has the id of its app,
    and says that the app is a member of the book; its document is the app's in the book's list.
    """

    kind: str
    id: EntityId
    book: BookId
    document: str
    state: str = ""
    transaction: EntityId | None = None
    is_test: bool | None = None
    is_successful: bool | None = None
    is_deleted: bool = False
    public_key: str | None = None


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A live key of an app: where authentication looks (part G)."""

    digest: str
    app: EntityId
    last4: str
    created_ms: int
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class HeadRow:
    """A book's head: `state` is the machine's own, canonical JSON; `hash` that of entry `seq`."""

    book: BookId
    seq: int
    hash: str
    state: str


class OperationRow(Struct, frozen=True):
    """The outcome of an operation, kept for idempotency (F5). `key`: the caller's, or empty.

    `done` is called `status` in the tables and in segments, as in their first version.
    """

    operation: str
    book: BookId
    app: EntityId
    key: str
    fingerprint: str
    done: DoneKind = struct_field(name="status")
    body: bytes
    at_ms: int


@dataclass(frozen=True, slots=True)
class Commit:
    """All that one durable transaction writes."""

    entries: list[Entry] = field(default_factory=list)
    entities: list[EntityRow] = field(default_factory=list)
    keys: list[KeyRow] = field(default_factory=list)
    heads: list[HeadRow] = field(default_factory=list)
    operations: list[OperationRow] = field(default_factory=list)
