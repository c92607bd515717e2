"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

WORD = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
AMOUNT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "anchors",
        sa.Column("day", WORD, nullable=False),
        sa.Column("at_ms", AMOUNT, nullable=False),
        sa.Column("books", AMOUNT, nullable=False),
        sa.Column("root", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("day", name="anchors_pk"),
    )
    op.create_table(
        "entities",
        sa.Column("id", WORD, nullable=False),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("book", WORD, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("transaction_id", WORD, nullable=True),
        sa.Column("is_test", sa.Boolean(), nullable=True),
        sa.Column("is_successful", sa.Boolean(), nullable=True),
        sa.Column("public_key", WORD, nullable=True),
        sa.PrimaryKeyConstraint("id", name="entities_pk"),
    )
    op.create_index("entities_list", "entities", ["book", "kind", "id"], unique=False)
    op.create_index(
        "entities_marked",
        "entities",
        ["book", "kind", "is_test", "is_successful", "id"],
        unique=False,
        sqlite_where=sa.text("is_test IS NOT NULL"),
        postgresql_where=sa.text("is_test IS NOT NULL"),
    )
    op.create_index(
        "entities_of_transaction",
        "entities",
        ["book", "kind", "transaction_id", "id"],
        unique=False,
        sqlite_where=sa.text("transaction_id IS NOT NULL"),
        postgresql_where=sa.text("transaction_id IS NOT NULL"),
    )
    op.create_index(
        "entities_public_key",
        "entities",
        ["public_key"],
        unique=True,
        sqlite_where=sa.text("public_key IS NOT NULL"),
        postgresql_where=sa.text("public_key IS NOT NULL"),
    )
    op.create_table(
        "entries",
        sa.Column("book", WORD, nullable=False),
        sa.Column("seq", AMOUNT, nullable=False),
        sa.Column("at_ms", AMOUNT, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("book", "seq", name="entries_pk"),
    )
    op.create_table(
        "heads",
        sa.Column("book", WORD, nullable=False),
        sa.Column("seq", AMOUNT, nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("book", name="heads_pk"),
    )
    op.create_table(
        "keys",
        sa.Column("digest", WORD, nullable=False),
        sa.Column("app", WORD, nullable=False),
        sa.Column("last4", sa.Text(), nullable=False),
        sa.Column("created_ms", AMOUNT, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="keys_pk"),
    )
    op.create_table(
        "operations",
        sa.Column("operation", WORD, nullable=False),
        sa.Column("book", WORD, nullable=False),
        sa.Column("app", WORD, nullable=False),
        sa.Column("key", WORD, nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("at_ms", AMOUNT, nullable=False),
        sa.PrimaryKeyConstraint("operation", name="operations_pk"),
    )
    op.create_index("operations_age", "operations", ["at_ms"], unique=False)
    op.create_index(
        "operations_idempotency_key",
        "operations",
        ["app", "book", "key"],
        unique=True,
        sqlite_where=sa.text("\"key\" != ''"),
        postgresql_where=sa.text("\"key\" != ''"),
    )
    op.create_table(
        "owners",
        sa.Column("shard", WORD, nullable=False),
        sa.Column("epoch", AMOUNT, nullable=False),
        sa.Column("incarnation", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("shard", name="owners_pk"),
    )
    op.create_table(
        "postings",
        sa.Column("book", WORD, nullable=False),
        sa.Column("seq", AMOUNT, nullable=False),
        sa.Column("leg", sa.SmallInteger(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("amount", AMOUNT, nullable=False),
        sa.PrimaryKeyConstraint("book", "seq", "leg", name="postings_pk"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "checkpoints",
        sa.Column("book", WORD, nullable=False),
        sa.Column("seq", AMOUNT, nullable=False),
        sa.Column("at_ms", AMOUNT, nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("balances", sa.Text(), nullable=False),
        sa.Column("seal", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["book", "seq"], ["entries.book", "entries.seq"], name="checkpoints_entries_fk"
        ),
        sa.PrimaryKeyConstraint("book", "seq", name="checkpoints_pk"),
    )
    op.create_table(
        "memberships",
        sa.Column("app", WORD, nullable=False),
        sa.Column("book", WORD, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["book"], ["entities.id"], name="memberships_entities_fk"),
        sa.PrimaryKeyConstraint("app", "book", name="memberships_pk"),
        sqlite_with_rowid=False,
    )
    op.create_index("memberships_of_book", "memberships", ["book", "app"], unique=False)
