"""Backups: the journal in segments and copies of the file; and the drill of restoring from them."""

import asyncio
import fcntl
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.support.ledger.backups import NOW_MS, backed_up, empty_tables, restored, tables_of, told
from tests.support.ledger.storage import Run, Storage, emptied, runner
from tests.support.ledger.stored_story import long_story, story, write
from tollgate.actors.ledger.backup.archive import ArchiveError, LedgerArchive
from tollgate.actors.ledger.backup.restore import restore_records
from tollgate.actors.ledger.backup.shipment import ship
from tollgate.actors.ledger.backup.sqlite_copy import copy_file
from tollgate.actors.ledger.law.rows import Commit
from tollgate.actors.ledger.proof.verification import verify_all
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ledger.storage.migration import open_database, upgrade

ENTRIES = sum(len(commit.entries) for commit in story())
only_sqlite = pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)


@pytest.fixture
def run(ledger_url: str) -> Run:
    return runner(ledger_url)


@pytest.fixture
def archive(tmp_path: Path) -> LedgerArchive:
    return LedgerArchive(tmp_path / "backup")


# The drill


def test_what_was_backed_up_is_restored_and_sound(
    ledger_url: str, archive: LedgerArchive, tmp_path: Path
) -> None:
    shipment = backed_up(told(ledger_url), archive)
    assert shipment is not None
    assert (shipment.entries, shipment.books) == (ENTRIES, 3)
    there = empty_tables(tmp_path)
    done = restored(there, archive)
    assert done.entries == ENTRIES
    expected = tables_of(ledger_url)
    assert tables_of(there) == expected
    assert {head[0]: head[1:3] for head in expected["heads"]} == {
        head.book: (head.seq, head.hash) for head in done.heads.values()
    }


def test_books_move_from_sqlite_to_postgresql(
    tmp_path: Path, archive: LedgerArchive, postgresql_url: str
) -> None:
    here = told(emptied(f"sqlite:///{tmp_path}/here.sqlite"))
    backed_up(here, archive)
    there = emptied(postgresql_url)
    restored(there, archive)
    assert tables_of(there) == tables_of(here)

    async def sound(storage: Storage) -> None:
        connection = await storage.writing()
        await connection.run("DELETE FROM anchors")
        assert (await verify_all(await storage.database(), lambda *_: None, NOW_MS)).findings == ()

    runner(there)(sound)


@only_sqlite
def test_a_restored_ledger_goes_on(ledger_url: str, archive: LedgerArchive, tmp_path: Path) -> None:
    commits = long_story(1_500)
    half = len(commits) // 2
    backed_up(told(ledger_url, *commits[:half]), archive)
    there = empty_tables(tmp_path)
    restored(there, archive)

    async def go_on(storage: Storage) -> None:
        connection = await storage.writing()
        await connection.run("DELETE FROM anchors")
        await write(await storage.store(), commits[half:])
        report = await verify_all(await storage.database(), lambda *_: None, NOW_MS)
        assert report.findings == ()
        assert report.entries == sum(len(commit.entries) for commit in commits)

    runner(there)(go_on)


def test_segments_hold_what_came_since_the_last_one(
    ledger_url: str, archive: LedgerArchive, tmp_path: Path
) -> None:
    third = len(story()) // 3
    parts = [story()[:third], story()[third : 2 * third], story()[2 * third :]]
    for number, part in enumerate(parts, start=1):

        async def tell(storage: Storage, part: tuple[Commit, ...] = part) -> None:
            await write(await storage.store(), part)

        runner(ledger_url)(tell)
        shipment = backed_up(ledger_url, archive)
        assert shipment is not None
        assert shipment.file.name == f"segment-00000{number}.ndjson"
        assert shipment.entries == sum(len(commit.entries) for commit in part)
        assert backed_up(ledger_url, archive) is None
    assert [file.name for file in archive.segments()] == [
        f"segment-00000{number}.ndjson" for number in (1, 2, 3)
    ]
    there = empty_tables(tmp_path)
    restored(there, archive)
    assert tables_of(there) == tables_of(ledger_url)


@only_sqlite
def test_a_backup_is_of_one_moment_while_the_books_are_written(
    run: Run, archive: LedgerArchive, tmp_path: Path
) -> None:
    async def scenario(storage: Storage) -> None:
        store, database = await storage.store(), await storage.database()
        commits = long_story(300)
        await write(store, commits[:50])

        async def go_on() -> None:
            for commit in commits[50:]:
                await store.append(commit)

        writing = asyncio.create_task(go_on())
        for _ in range(5):
            await archive.add(database, NOW_MS, lambda _: None)
        await writing
        await archive.add(database, NOW_MS, lambda _: None)

    run(scenario)
    there = emptied(f"sqlite:///{tmp_path}/restored.sqlite")
    assert restored(there, archive).entries == sum(len(c.entries) for c in long_story(300))


# What is not restored


def test_used_tables_are_left_alone(ledger_url: str, archive: LedgerArchive) -> None:
    backed_up(told(ledger_url), archive)
    before = tables_of(ledger_url)
    with pytest.raises(StorageError, match=r"is not empty \(table entries has \d+ rows\)"):
        restored(ledger_url, archive)
    assert tables_of(ledger_url) == before


@only_sqlite
def test_a_folder_of_another_ledger_is_not_added_to(
    ledger_url: str, archive: LedgerArchive, tmp_path: Path
) -> None:
    backed_up(told(ledger_url), archive)
    there = emptied(f"sqlite:///{tmp_path}/other.sqlite")
    with pytest.raises(StorageError, match="here there is no such book: it is of another ledger"):
        backed_up(there, archive)
    told(there, *story()[:-2])
    with pytest.raises(StorageError, match=r"here it ends with entry .* another folder"):
        backed_up(there, archive)
    assert len(archive.segments()) == 1


@only_sqlite
def test_a_journal_that_is_broken_is_not_shipped(
    ledger_url: str, run: Run, archive: LedgerArchive
) -> None:
    async def break_it(storage: Storage) -> None:
        await (await storage.writing()).run("UPDATE entries SET origin = '{}' WHERE seq = 3")

    told(ledger_url)
    run(break_it)
    with pytest.raises(StorageError, match=r"entry 3 of book \w+ does not follow entry 2"):
        backed_up(ledger_url, archive)
    assert archive.segments() == []


@only_sqlite
def test_what_was_broken_off_is_written_anew_but_not_by_two(
    ledger_url: str, archive: LedgerArchive, tmp_path: Path
) -> None:
    folder = tmp_path / "backup"
    folder.mkdir()
    (folder / ".segment-000001.draft").write_text("half of it")
    told(ledger_url)
    with (folder / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ArchiveError, match="another backup is writing to it"):
            backed_up(ledger_url, archive)
    assert backed_up(ledger_url, archive) is not None
    assert sorted(file.name for file in folder.iterdir()) == [".lock", "segment-000001.ndjson"]
    assert (folder / "segment-000001.ndjson").stat().st_mode & 0o777 == 0o600


# Copies of the file


@only_sqlite
def test_a_copy_is_whole_and_can_be_restored_from(
    ledger_url: str, run: Run, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.sqlite"
    told(ledger_url)

    async def make(storage: Storage) -> None:
        await copy_file(await storage.database(), copy)
        with pytest.raises(StorageError, match=r"copy\.sqlite: cannot be made: File exists"):
            await copy_file(await storage.database(), copy)

    run(make)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert tables_of(f"sqlite:///{copy}") == tables_of(ledger_url)
    there = empty_tables(tmp_path)

    async def put_back() -> None:
        source, target = await open_database(f"sqlite:///{copy}"), await open_database(there)
        async with aclosing(ship(source, {}, lambda _: None)) as records:
            await restore_records(target, records, lambda _: None)
        await source.close()
        await target.close()

    asyncio.run(put_back())
    assert tables_of(there) == tables_of(ledger_url)


def test_a_server_is_not_copied(postgresql_url: str, tmp_path: Path) -> None:
    async def copy() -> None:
        await upgrade(postgresql_url)
        database = await open_database(postgresql_url)
        try:
            await copy_file(database, tmp_path / "copy")
        finally:
            await database.close()

    with pytest.raises(StorageError, match="ship the journal to a folder"):
        asyncio.run(copy())
    assert not (tmp_path / "copy").exists()
