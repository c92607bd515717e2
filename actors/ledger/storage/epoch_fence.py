"""The epoch fence: of several incarnations of a shard, the newest alone may write (F1).

    take over    epoch := epoch + 1, in a transaction of its own; the shard is ours from then on,
                 and every shard of another number of them is nobody's: its books are now ours, too
    hold         in every commit's transaction, first: is the epoch still ours? The row stays locked
                 against a take-over until the commit is through
    check        before a refusal is told from memory: one indexed read

A day that was anchored is closed as well: no entry is stamped before its end, though a clock was
set back (F7). The end of the newest is read at the take-over and with every hold.

Zero rows, or another epoch, or an entry in a closed day: Fenced, and the process must end. Ray may
leave two incarnations of an actor alive after a partition; only the database can refuse the older.
"""

from collections.abc import Sequence
from functools import partial

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import ReturningUpdate

from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.storage.connections.connection import Connection, Guard
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.connections.statements import query
from tollgate.actors.ledger.storage.store import Fenced
from tollgate.actors.ledger.storage.tables import anchors, owners

# In the name of a shard, before how many there are.
MAP_MARK = "-of-"


class EpochFence:
    """One incarnation's place in the succession of a shard's owners."""

    def __init__(self, database: Database) -> None:
        dialect = database.dialect
        self._dialect = dialect
        self._make = sqlite.insert if database.is_sqlite else postgresql.insert
        epoch = select(owners.c.epoch).where(owners.c.shard == bindparam("shard"))
        self._epoch_now = query(dialect, epoch)
        newest = select(anchors.c.at_ms).order_by(anchors.c.day.desc()).limit(1)
        anchored = func.coalesce(newest.scalar_subquery(), 0)
        self._anchored = query(dialect, select(anchored))
        # (on SQLite, writing itself is locked)
        self._held = query(dialect, epoch.add_columns(anchored).with_for_update(read=True))
        self.shard = ""
        self._epoch = 0
        self.anchored_until_ms = 0

    async def take_over(self, connection: Connection, shard: str, incarnation: str) -> int:
        """The new epoch of the shard; the caller commits it, and calls `own` then."""
        first = self._make(owners).values(shard=shard, epoch=1, incarnation=incarnation)
        succession = first.on_conflict_do_update(
            index_elements=[owners.c.shard],
            set_={"epoch": owners.c.epoch + 1, "incarnation": first.excluded.incarnation},
        ).returning(owners.c.epoch)
        row = await query(self._dialect, succession).first(connection)
        if (others := _of_other_maps(shard)) is not None:
            await query(self._dialect, others).rows(connection)
        ((self.anchored_until_ms,),) = await self._anchored.rows(connection)
        return int(row[0])

    def own(self, shard: str, epoch: int) -> None:
        """From now on this incarnation is the shard's, in this epoch."""
        self.shard, self._epoch = shard, epoch

    def hold(self, entries: Sequence[Entry] = ()) -> Guard:
        """For a commit's transaction with these entries: nobody takes the shard over before its
        end, and none of them is in a day that was anchored, or Fenced."""
        earliest_ms = min((entry.at_ms for entry in entries), default=None)
        check = partial(self._check_held, earliest_ms)
        return Guard(self._held.text, self._held.ordered(shard=self.shard), check)

    async def check(self, connection: Connection) -> None:
        """Raises Fenced when a newer incarnation may have committed."""
        self._compare(await self._epoch_now.rows(connection, shard=self.shard))

    def _check_held(self, earliest_ms: int | None, rows: list[tuple[int, int]]) -> None:
        self._compare([(epoch,) for epoch, _ in rows])
        ((_, self.anchored_until_ms),) = rows
        if earliest_ms is not None and earliest_ms < self.anchored_until_ms:
            raise Fenced(
                f"shard {self.shard} writes to a day that was anchored: its clock was set back, or "
                "is behind the one by which days are anchored"
            )

    def _compare(self, rows: list[tuple[int]]) -> None:
        if rows != [(self._epoch,)]:
            found = rows[0][0] if rows else "none"
            raise Fenced(
                f"shard {self.shard} is in epoch {found}, and this is its incarnation of epoch "
                f"{self._epoch}"
            )


def _of_other_maps(shard: str) -> ReturningUpdate[tuple[str]] | None:
    """Fences the owners of a map with another number of shards, whose names end with it
    (`shard/routing.py`): books have moved between theirs and ours. None: a shard of no map."""
    _, of, count = shard.rpartition(MAP_MARK)
    if not of:
        return None
    return (
        update(owners)
        .where(owners.c.shard.like(f"%{MAP_MARK}%"), owners.c.shard.not_like(f"%{of}{count}"))
        .values(epoch=owners.c.epoch + 1)
        .returning(owners.c.shard)
    )
