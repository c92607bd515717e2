"""Names that may be used once, and what for: tokens of cards, answers of their holders."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

WORD = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
AMOUNT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "single_uses",
        sa.Column("name", WORD, nullable=False),
        sa.Column("use", sa.Text(), nullable=False),
        sa.Column("until_ms", AMOUNT, nullable=False),
        sa.PrimaryKeyConstraint("name", name="single_uses_pk"),
    )
    op.create_index("single_uses_expired", "single_uses", ["until_ms"])
