"""The positions of webhooks, and their dead letters."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

WORD = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
AMOUNT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "webhook_cursors",
        sa.Column("webhook", WORD, nullable=False),
        sa.Column("cursor", WORD, nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failing_since_ms", AMOUNT, nullable=True),
        sa.Column("next_attempt_ms", AMOUNT, nullable=False),
        sa.Column("lease", sa.Text(), nullable=False),
        sa.Column("leased_until_ms", AMOUNT, nullable=False),
        sa.PrimaryKeyConstraint("webhook", name="webhook_cursors_pk"),
    )
    op.create_table(
        "webhook_dead_letters",
        sa.Column("webhook", WORD, nullable=False),
        sa.Column("event", WORD, nullable=False),
        sa.Column("at_ms", AMOUNT, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("is_queued", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("webhook", "event", name="webhook_dead_letters_pk"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "entities_webhooks",
        "entities",
        ["id"],
        unique=False,
        sqlite_where=sa.text("kind = 'webhook'"),
        postgresql_where=sa.text("kind = 'webhook'"),
    )
