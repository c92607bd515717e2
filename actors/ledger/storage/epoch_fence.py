"""The epoch fence: of several incarnations of a shard, the newest alone may write (F1).

    take over    epoch := epoch + 1, in a transaction of its own; the shard is ours from then on
    hold         in every commit's transaction, first: is the epoch still ours? The row stays locked
                 against a take-over until the commit is through
    check        before a refusal is told from memory: one indexed read

Zero rows, or another epoch: Fenced, and the process must end. Ray may leave two incarnations of an
actor alive after a partition; only the database can refuse the older one.
"""

from sqlalchemy import bindparam, select
from sqlalchemy.dialects import postgresql, sqlite

from tollgate.actors.ledger.storage.connections.connection import Connection, Guard
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.connections.statements import query
from tollgate.actors.ledger.storage.store import Fenced
from tollgate.actors.ledger.storage.tables import owners


class EpochFence:
    """One incarnation's place in the succession of a shard's owners."""

    def __init__(self, database: Database) -> None:
        dialect = database.dialect
        self._dialect = dialect
        self._make = sqlite.insert if database.is_sqlite else postgresql.insert
        epoch = select(owners.c.epoch).where(owners.c.shard == bindparam("shard"))
        self._epoch_now = query(dialect, epoch)
        # (on SQLite, writing itself is locked)
        self._epoch_held = query(dialect, epoch.with_for_update(read=True))
        self.shard = ""
        self._epoch = 0

    async def take_over(self, connection: Connection, shard: str, incarnation: str) -> int:
        """The new epoch of the shard; the caller commits it, and calls `own` then."""
        first = self._make(owners).values(shard=shard, epoch=1, incarnation=incarnation)
        succession = first.on_conflict_do_update(
            index_elements=[owners.c.shard],
            set_={"epoch": owners.c.epoch + 1, "incarnation": first.excluded.incarnation},
        ).returning(owners.c.epoch)
        row = await query(self._dialect, succession).first(connection)
        return int(row[0])

    def own(self, shard: str, epoch: int) -> None:
        """From now on this incarnation is the shard's, in this epoch."""
        self.shard, self._epoch = shard, epoch

    def hold(self) -> Guard:
        """For a commit's transaction: nobody takes the shard over before its end, or Fenced."""
        held = self._epoch_held
        return Guard(held.text, held.ordered(shard=self.shard), self._compare)

    async def check(self, connection: Connection) -> None:
        """Raises Fenced when a newer incarnation may have committed."""
        self._compare(await self._epoch_now.rows(connection, shard=self.shard))

    def _compare(self, rows: list[tuple[int]]) -> None:
        if rows != [(self._epoch,)]:
            found = rows[0][0] if rows else "none"
            raise Fenced(
                f"shard {self.shard} is in epoch {found}, and this is its incarnation of epoch "
                f"{self._epoch}"
            )
