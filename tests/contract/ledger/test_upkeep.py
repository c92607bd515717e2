"""The books' upkeep: old operations forgotten, days anchored to files, segments shipped."""

import asyncio
import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import update

from tests.support.ledger.backups import NOW_MS, tables_of, told
from tests.support.ledger.storage import Storage, runner
from tests.support.manual_clock import ManualClock
from tollgate.actors.ledger.proof.anchor_file import anchor_files
from tollgate.actors.ledger.storage.operation_expiry import KEPT_MS
from tollgate.actors.ledger.storage.tables import operations
from tollgate.serve.payments.upkeep import AnchorExports, Upkeep


def upkeep(url: str, folder: Path, now_ms: int, *, has_backup: bool = True) -> Upkeep:
    backup = folder / "backup" if has_backup else None
    return Upkeep(url, folder / "anchors", backup, ManualClock(now_ms / 1000))


def test_it_forgets_anchors_and_backs_up(ledger_url: str, tmp_path: Path) -> None:
    told(ledger_url)

    async def age(storage: Storage) -> None:
        database = await storage.database()
        async with database.writer.begin() as connection:
            await connection.execute(update(operations).values(at_ms=operations.c.at_ms - KEPT_MS))

    runner(ledger_url)(age)
    before = len(tables_of(ledger_url)["operations"])
    later_ms = NOW_MS + KEPT_MS + 86_400_000
    for _ in range(2):
        asyncio.run(upkeep(ledger_url, tmp_path, later_ms).run())
    tables = tables_of(ledger_url)
    # (the newest entry's own is exactly as old as it may be)
    assert (before > 1, len(tables["operations"])) == (True, 1)
    (file,) = (tmp_path / "anchors").iterdir()
    made = json.loads(file.read_text())
    assert made["day"] in [row[0] for row in tables["anchors"]]
    assert file.name == f"{made['day']}.json"
    segments = sorted(each.name for each in (tmp_path / "backup").glob("*.ndjson"))
    assert segments == ["segment-000001.ndjson"]
    told_of = upkeep(ledger_url, tmp_path, later_ms)
    asyncio.run(told_of.run())
    assert told_of.record.backed_up_s == later_ms / 1000
    assert str(told_of.record.anchored) == made["day"]
    assert set(told_of.record.imbalance.values()) == {0}


def test_without_a_folder_there_is_no_backup(ledger_url: str, tmp_path: Path) -> None:
    told(ledger_url)
    asyncio.run(upkeep(ledger_url, tmp_path, NOW_MS + 86_400_000, has_backup=False).run())
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == ["anchors"]


def test_it_signs_a_file_for_every_day(ledger_url: str, tmp_path: Path) -> None:
    told(ledger_url)
    exports = AnchorExports(tmp_path / "kept", Ed25519PrivateKey.generate())
    for day in (1, 1, 4):
        work = upkeep(ledger_url, tmp_path, NOW_MS + day * 86_400_000)
        asyncio.run(replace(work, exports=exports).run())
    days = [file.name for file in anchor_files(exports.folder)]
    assert days == [f"anchor-2027-01-{day}.ndjson" for day in (15, 16, 17, 18)]


def test_what_cannot_be_done_is_a_line_in_the_log(
    ledger_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told(ledger_url)
    (tmp_path / "backup").write_text("a file, not a folder")
    with caplog.at_level(logging.ERROR):
        asyncio.run(upkeep(ledger_url, tmp_path, NOW_MS + 86_400_000).run())
    (said,) = [each.getMessage() for each in caplog.records if "upkeep" in each.getMessage()]
    assert "backup" in said
    assert (tmp_path / "anchors").exists()
