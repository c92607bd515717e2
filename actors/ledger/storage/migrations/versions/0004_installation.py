"""Marks of what belongs to these books and is kept elsewhere."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

WORD = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "installation",
        sa.Column("name", WORD, nullable=False),
        sa.Column("mark", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="installation_pk"),
    )
