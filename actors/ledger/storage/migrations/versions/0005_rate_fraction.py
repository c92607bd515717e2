"""The rate of a merchant's pricing is shown as a fraction, no longer in parts per million."""

import re
from decimal import Decimal

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

MERCHANTS_PER_PIECE = 1_000
# (nothing else in a document is written so: within a text, quotation marks are escaped)
RATE_PPM = re.compile(r'(?<="pricing":\{"rate":)\d+')
# Each merchant has a head: by these they are found without a walk through all entities.
MERCHANTS = sa.text(
    "SELECT entities.id, entities.document FROM heads "
    "JOIN entities ON entities.id = heads.book AND entities.kind = 'merchant' "
    "WHERE heads.book > :after ORDER BY heads.book LIMIT :piece"
)
REPLACE = sa.text("UPDATE entities SET document = :document WHERE id = :id")


def upgrade() -> None:
    connection, after = op.get_bind(), ""
    while rows := connection.execute(
        MERCHANTS, {"after": after, "piece": MERCHANTS_PER_PIECE}
    ).all():
        connection.execute(
            REPLACE,
            [{"id": id_, "document": RATE_PPM.sub(_fraction, document)} for id_, document in rows],
        )
        after = rows[-1][0]


def _fraction(rate_ppm: re.Match[str]) -> str:
    return f"{Decimal(rate_ppm[0]).scaleb(-6).normalize():f}"
