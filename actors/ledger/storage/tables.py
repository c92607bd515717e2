"""The tables of the books: one schema for SQLite and PostgreSQL.

Journal      entries, postings: append-only; (book, seq) is unique, which is half of the fence (F1)
Tables       entities, memberships, keys, heads: what reads and the machine see now
Promises     operations: what became of each, for idempotency (F5)
Ownership    owners: the epoch that every commit checks, the other half of the fence (F1)
Proof        checkpoints (F6), anchors (F7)

Ids are compared by value, so on PostgreSQL they are ordered by their bytes and not by a language.
An entity's rowid tables and indexes grow at the right edge, because ids rise with time.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    literal_column,
)

# By bytes: in every other collation, indexes answer no comparison of ids, or a wrong one.
ByteOrderedText = Text().with_variant(Text(collation="C"), "postgresql")
# An INTEGER of SQLite has 64 bits by itself.
Integer64 = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "fk": "%(table_name)s_%(referred_table_name)s_fk",
        "ix": "%(table_name)s_by_%(column_0_N_name)s",
    }
)

owners = Table(
    "owners",
    metadata,
    Column("shard", ByteOrderedText, primary_key=True),
    Column("epoch", Integer64, nullable=False),
    Column("incarnation", Text, nullable=False),
)

SEQ_RULE = "entries_pk"
entries = Table(
    "entries",
    metadata,
    Column("book", ByteOrderedText, nullable=False),
    Column("seq", Integer64, nullable=False),
    Column("at_ms", Integer64, nullable=False),
    Column("kind", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("operation", Text, nullable=False),
    Column("hash", Text, nullable=False),
    PrimaryKeyConstraint("book", "seq", name=SEQ_RULE),
)

postings = Table(
    "postings",
    metadata,
    Column("book", ByteOrderedText, nullable=False),
    Column("seq", Integer64, nullable=False),
    Column("leg", SmallInteger, nullable=False),
    Column("account", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("amount", Integer64, nullable=False),
    PrimaryKeyConstraint("book", "seq", "leg"),
    # (no foreign key to the entry: it would halve the commits per second on PostgreSQL, and
    # verification finds what it would, `proof/stray_rows.py`)
    sqlite_with_rowid=False,
)

entities = Table(
    "entities",
    metadata,
    Column("id", ByteOrderedText, primary_key=True),
    Column("kind", ByteOrderedText, nullable=False),
    Column("book", ByteOrderedText, nullable=False),
    Column("document", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("transaction_id", ByteOrderedText),
    Column("is_test", Boolean),
    Column("is_successful", Boolean),
    Column("public_key", ByteOrderedText),
)
# Lists, and each filter of lists, walk one index in the order of ids (L1 to L3). `is_successful` is
# set only where `is_test` is, so that one index serves both.
LIST_INDEX = Index("entities_list", entities.c.book, entities.c.kind, entities.c.id)
TRANSACTION_INDEX = Index(
    "entities_of_transaction",
    entities.c.book,
    entities.c.kind,
    entities.c.transaction_id,
    entities.c.id,
    sqlite_where=entities.c.transaction_id.is_not(None),
    postgresql_where=entities.c.transaction_id.is_not(None),
)
MARK_INDEX = Index(
    "entities_marked",
    entities.c.book,
    entities.c.kind,
    entities.c.is_test,
    entities.c.is_successful,
    entities.c.id,
    sqlite_where=entities.c.is_test.is_not(None),
    postgresql_where=entities.c.is_test.is_not(None),
)
Index(
    "entities_public_key",
    entities.c.public_key,
    unique=True,
    sqlite_where=entities.c.public_key.is_not(None),
    postgresql_where=entities.c.public_key.is_not(None),
)

# What waits for a card network is found whatever book it is in; of all entities they are few.
OPEN_INTENTS = entities.c.kind == literal_column("'intent'")
Index(
    "entities_open_intents",
    entities.c.id,
    sqlite_where=OPEN_INTENTS,
    postgresql_where=OPEN_INTENTS,
)

memberships = Table(
    "memberships",
    metadata,
    Column("app", ByteOrderedText, nullable=False),
    Column("book", ByteOrderedText, nullable=False),
    Column("document", Text, nullable=False),
    Column("state", Text, nullable=False),
    PrimaryKeyConstraint("app", "book"),
    ForeignKeyConstraint(["book"], ["entities.id"]),
    Index("memberships_of_book", "book", "app"),
    sqlite_with_rowid=False,
)

keys = Table(
    "keys",
    metadata,
    Column("digest", ByteOrderedText, primary_key=True),
    Column("app", ByteOrderedText, nullable=False),
    Column("last4", Text, nullable=False),
    Column("created_ms", Integer64, nullable=False),
)

# When keys were used last: written beside the journal, and of no account to it.
key_uses = Table(
    "key_uses",
    metadata,
    Column("digest", ByteOrderedText, primary_key=True),
    Column("used_ms", Integer64, nullable=False),
)

# Names that may be used once, such as tokens of cards. Written beside the journal, worth nothing
# after some minutes, and so in no backup.
single_uses = Table(
    "single_uses",
    metadata,
    Column("name", ByteOrderedText, primary_key=True),
    Column("use", Text, nullable=False),
    Column("until_ms", Integer64, nullable=False),
    Index("single_uses_expired", "until_ms"),
)

# What belongs to these books and is kept elsewhere, by a mark that gives nothing of it away.
installation = Table(
    "installation",
    metadata,
    Column("name", ByteOrderedText, primary_key=True),
    Column("mark", Text, nullable=False),
)

# When a card network is next asked what became of an open intent: beside the journal, which only
# says that it is open.
enquiries = Table(
    "enquiries",
    metadata,
    Column("intent", ByteOrderedText, primary_key=True),
    Column("attempts", Integer, nullable=False),
    Column("due_ms", Integer64, nullable=False),
)

heads = Table(
    "heads",
    metadata,
    Column("book", ByteOrderedText, primary_key=True),
    Column("seq", Integer64, nullable=False),
    Column("hash", Text, nullable=False),
    Column("state", Text, nullable=False),
)

operations = Table(
    "operations",
    metadata,
    Column("operation", ByteOrderedText, primary_key=True),
    Column("book", ByteOrderedText, nullable=False),
    Column("app", ByteOrderedText, nullable=False),
    Column("key", ByteOrderedText, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("status", SmallInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("at_ms", Integer64, nullable=False),
    Index("operations_age", "at_ms"),
)
Index(
    "operations_idempotency_key",
    operations.c.app,
    operations.c.book,
    operations.c.key,
    unique=True,
    sqlite_where=operations.c.key != "",
    postgresql_where=operations.c.key != "",
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("book", ByteOrderedText, nullable=False),
    Column("seq", Integer64, nullable=False),
    Column("at_ms", Integer64, nullable=False),
    Column("hash", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("balances", Text, nullable=False),
    Column("seal", Text, nullable=False),
    PrimaryKeyConstraint("book", "seq"),
    ForeignKeyConstraint(["book", "seq"], ["entries.book", "entries.seq"]),
)

anchors = Table(
    "anchors",
    metadata,
    Column("day", ByteOrderedText, primary_key=True),
    Column("at_ms", Integer64, nullable=False),
    Column("books", Integer64, nullable=False),
    Column("root", Text, nullable=False),
)
