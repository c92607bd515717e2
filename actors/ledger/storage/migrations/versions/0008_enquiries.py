"""Open intents, and when a card network is next asked about each."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

WORD = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
AMOUNT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OPEN = sa.text("kind = 'intent'")


def upgrade() -> None:
    op.create_table(
        "enquiries",
        sa.Column("intent", WORD, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_ms", AMOUNT, nullable=False),
        sa.PrimaryKeyConstraint("intent", name="enquiries_pk"),
    )
    op.create_index(
        "entities_open_intents", "entities", ["id"], sqlite_where=OPEN, postgresql_where=OPEN
    )
