"""The times of the last use of keys."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

WORD = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
AMOUNT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "key_uses",
        sa.Column("digest", WORD, nullable=False),
        sa.Column("used_ms", AMOUNT, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="key_uses_pk"),
    )
