"""Events that wait for another try, each by itself; a log of attempts; webhooks can be disabled.

How often a webhook had failed was counted by another law: it begins anew.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

WORD = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
AMOUNT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "webhook_retries",
        sa.Column("webhook", WORD, nullable=False),
        sa.Column("event", WORD, nullable=False),
        sa.Column("failing_since_ms", AMOUNT, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_ms", AMOUNT, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("webhook", "event", name="webhook_retries_pk"),
        sqlite_with_rowid=False,
    )
    op.create_index("webhook_retries_due", "webhook_retries", ["webhook", "next_attempt_ms"])
    op.create_table(
        "webhook_attempts",
        sa.Column("webhook", WORD, nullable=False),
        sa.Column("id", WORD, nullable=False),
        sa.Column("event", WORD, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("at_ms", AMOUNT, nullable=False),
        sa.Column("duration_ms", AMOUNT, nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("next_attempt_ms", AMOUNT, nullable=True),
        sa.PrimaryKeyConstraint("webhook", "id", name="webhook_attempts_pk"),
        sqlite_with_rowid=False,
    )
    enable_webhooks()
    op.execute(
        "UPDATE webhook_cursors SET failures = 0, failing_since_ms = NULL, next_attempt_ms = 0 "
        "WHERE failures > 0"
    )


def enable_webhooks() -> None:
    """All that are there are: their documents say so as the books write it now."""
    op.get_bind().execute(
        sa.text(
            "UPDATE entities SET document = substr(document, 1, length(document) - 1) "
            "|| CAST(:ending AS TEXT) WHERE kind = 'webhook'"
        ),
        {"ending": ',"enabled":true}'},
    )
