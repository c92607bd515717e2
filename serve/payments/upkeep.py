"""Maintenance of the books, from time to time (F5, F7, F9).

    forget      operations and idempotency keys that nobody may ask about any more; used tokens
    anchor      the hash over all heads of the last day, kept, and written to a file of its own
    export      the days that have none yet, as signed files in the operator's folder
    back up     what came since, as another segment of the journal in the operator's folder
    weigh       all postings: per currency they add up to zero (M8)

All of it may be done by several processes at once: each finds what another has done already.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tollgate.actors.kernel.atomic_file import replace_file
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.backup.archive import ArchiveError, LedgerArchive
from tollgate.actors.ledger.backup.segments import BrokenSegment
from tollgate.actors.ledger.book.chain import BrokenJournal
from tollgate.actors.ledger.proof.anchor_export import export_anchors
from tollgate.actors.ledger.proof.anchor_file import BrokenAnchorFile
from tollgate.actors.ledger.proof.anchors import anchor_day, last_settled_day
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ledger.storage.migration import open_database
from tollgate.actors.ledger.storage.operation_expiry import forget_operations
from tollgate.actors.ledger.storage.reading.reader import SqlReadStore
from tollgate.actors.ledger.storage.single_uses import forget_single_uses
from tollgate.actors.ledger.storage.store import StorageDown

LOG = logging.getLogger("tollgate.ledger")
EXPECTED = (
    StorageError,
    StorageDown,
    ArchiveError,
    BrokenSegment,
    BrokenJournal,
    BrokenAnchorFile,
    OSError,
)
"""What work on the books may fail of without a fault of ours: one line, with what to do."""


@dataclass(frozen=True, slots=True)
class AnchorExports:
    """A folder outside the data folder, and the key that signs what is written to it."""

    folder: Path
    key: Ed25519PrivateKey


@dataclass(slots=True)
class UpkeepRecord:
    """What became of the upkeep, for operators. `backed_up_s`: when the last backup was whole;
    `anchored`: the last day that has an anchor; `imbalance`: what the postings of each currency add
    up to, in minor units. None, or empty: not done yet."""

    backed_up_s: float | None = None
    anchored: date | None = None
    imbalance: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def found(cls, anchors: Path, backup: Path | None, now_s: float) -> "UpkeepRecord":
        """What earlier processes have left. A backup that has no segment yet is as old as this
        process."""
        days = sorted(each.stem for each in anchors.glob("????-??-??.json"))
        record = cls(anchored=date.fromisoformat(days[-1]) if days else None)
        if backup is not None:
            written = [each.stat().st_mtime for each in backup.glob("segment-*.ndjson")]
            record.backed_up_s = max(written, default=now_s)
        return record


@dataclass(frozen=True, slots=True)
class Upkeep:
    """`url`: of the storage. `anchors`: the folder of the files of days. `backup`: a folder, or
    None for no backups. `exports`: where signed anchors go; None for nowhere. `record`: of what was
    done, by this process."""

    url: str
    anchors: Path
    backup: Path | None
    clock: Clock
    exports: AnchorExports | None = None
    record: UpkeepRecord = field(default_factory=UpkeepRecord)

    async def run(self) -> None:
        """All of it once, in a thread with connections of its own: it reads much and waits for
        disks. What cannot be done now is a line in the log, and tried again the next time."""
        await asyncio.to_thread(lambda: asyncio.run(self.run_here()))

    async def run_here(self) -> None:
        """The same, on this event loop."""
        try:
            database = await open_database(self.url)
        except EXPECTED as error:
            LOG.error("the ledger's upkeep: %s", error)
            return
        try:
            for step in (self._forget, self._anchor, self._export, self._back_up, self._weigh):
                try:
                    await step(database)
                except EXPECTED as error:
                    LOG.error("the ledger's upkeep: %s", error)
        finally:
            await database.close()

    async def _forget(self, database: Database) -> None:
        await forget_operations(database, self._now_ms())
        await forget_single_uses(database, self._now_ms())

    async def _anchor(self, database: Database) -> None:
        day = last_settled_day(self._now_ms())
        file = self.anchors / f"{day}.json"
        if not file.exists():
            made = await anchor_day(database, day, self._now_ms())
            self.anchors.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(file, f"{json.dumps(asdict(made))}\n".encode(), mode=0o644)
        self.record.anchored = day

    async def _export(self, database: Database) -> None:
        if self.exports is not None:
            await export_anchors(database, self.exports.folder, self.exports.key, self._now_ms())

    async def _back_up(self, database: Database) -> None:
        if self.backup is not None:
            await LedgerArchive(self.backup).add(database, self._now_ms(), lambda _: None)
            self.record.backed_up_s = self.clock.now_s()

    async def _weigh(self, database: Database) -> None:
        sums: Counter[str] = Counter()
        for _, currency, amount in await SqlReadStore(database).trial_balance():
            sums[currency] += amount
        self.record.imbalance = dict(sums)

    def _now_ms(self) -> int:
        return int(self.clock.now_s() * 1000)
