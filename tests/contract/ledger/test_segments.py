"""Segments that are not as they were written: nothing is restored from them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.json import decode

from tests.support.ledger.backups import backed_up, empty_tables, restored, tables_of, told
from tests.support.ledger.storage import Storage, runner
from tests.support.ledger.stored_story import story, write
from tollgate.actors.ledger.backup.archive import ArchiveError, LedgerArchive
from tollgate.actors.ledger.backup.segments import BrokenSegment, SegmentRecord, SegmentText
from tollgate.actors.ledger.book.chain import BrokenJournal
from tollgate.actors.ledger.law.outcomes import DoneKind
from tollgate.actors.ledger.law.rows import Commit
from tollgate.actors.ledger.storage.errors import StorageError

only_sqlite = pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)


@pytest.fixture
def archive(tmp_path: Path) -> LedgerArchive:
    return LedgerArchive(tmp_path / "backup")


def changed(line: str, old: str, new: str) -> str:
    assert old in line
    return line.replace(old, new, 1)


def first(lines: list[str], kind: str) -> int:
    return next(nr for nr, line in enumerate(lines) if line.startswith(f'{{"{kind}"'))


def change_entry(lines: list[str]) -> None:
    number = next(nr for nr, line in enumerate(lines) if '"seq":2,' in line and '"entry"' in line)
    lines[number] = changed(lines[number], "192.0.2.1", "192.0.2.7")


def change_operation(lines: list[str]) -> None:
    number = first(lines, "operation")
    lines[number] = changed(lines[number], '"status":201', '"status":400')


def drop_last_entries(lines: list[str]) -> None:
    number = max(nr for nr, line in enumerate(lines) if line.startswith('{"entry"'))
    del lines[number]


def cut_off(lines: list[str]) -> None:
    del lines[-3:]


def not_json(lines: list[str]) -> None:
    lines[7] = "\0\0\0"


def another_format(lines: list[str]) -> None:
    lines[0] = changed(lines[0], '"format":1', '"format":2')


def two_in_one(lines: list[str]) -> None:
    head = json.loads(lines[first(lines, "head")])
    lines[1] = json.dumps({**head, "end": {"lines": 1, "sha256": ""}})


def no_header(lines: list[str]) -> None:
    del lines[0]


FAULTS: dict[str, tuple[Callable[[list[str]], None], type[Exception], str]] = {
    "an entry": (change_entry, BrokenJournal, r"entry 2 of book \w+: its hash is"),
    "an operation": (change_operation, BrokenSegment, "segment-000001.* it was changed"),
    "an entry is gone": (drop_last_entries, BrokenSegment, "segment-000001.* it was changed"),
    "cut off": (cut_off, BrokenSegment, "segment-000001.* it has no end: it was cut off"),
    "not JSON": (not_json, BrokenSegment, "segment-000001.*, line 8: is not a line of a segment"),
    "another format": (another_format, BrokenSegment, "has format 2, and this Tollgate reads 1"),
    "two records": (two_in_one, BrokenSegment, "line 2: holds 2 records and not one"),
    "no header": (no_header, BrokenSegment, "line 1: a segment has one header, at its start"),
}


@pytest.mark.parametrize("what", FAULTS)
@only_sqlite
def test_nothing_is_restored_from_a_segment_that_was_changed(
    ledger_url: str, archive: LedgerArchive, tmp_path: Path, what: str
) -> None:
    change, error, message = FAULTS[what]
    shipment = backed_up(told(ledger_url), archive)
    assert shipment is not None
    lines = shipment.file.read_text().splitlines()
    change(lines)
    shipment.file.write_text("\n".join(lines) + "\n")
    there = empty_tables(tmp_path)
    empty = tables_of(there)
    with pytest.raises(error, match=message):
        restored(there, archive)
    assert tables_of(there) == empty


@only_sqlite
def test_segments_form_a_chain(ledger_url: str, archive: LedgerArchive, tmp_path: Path) -> None:
    for part in (story()[:20], story()[20:40], story()[40:]):

        async def tell(storage: Storage, part: tuple[Commit, ...] = part) -> None:
            await write(await storage.store(), part)

        runner(ledger_url)(tell)
        backed_up(ledger_url, archive)
    one, two, three = archive.segments()
    there = empty_tables(tmp_path)
    shutil.copy(one, tmp_path / "one")
    shutil.copy(two, one)
    with pytest.raises(BrokenSegment, match="is segment 2 and not 1"):
        restored(there, archive)
    shutil.copy(tmp_path / "one", one)
    one.write_bytes(one.read_bytes() + b"\n")
    with pytest.raises(BrokenSegment, match=r"000002.* follows another segment 1 than the one"):
        restored(there, archive)
    two.unlink()
    with pytest.raises(ArchiveError, match=r"segment-000002.ndjson: is missing, and later"):
        archive.segments()
    assert three.exists()


@only_sqlite
def test_a_book_that_does_not_end_where_its_head_says_is_not_restored(
    ledger_url: str, archive: LedgerArchive, tmp_path: Path
) -> None:
    """A segment that somebody wrote anew, hashes and all, without the last entry of a book."""
    shipment = backed_up(told(ledger_url), archive)
    assert shipment is not None
    lines = shipment.file.read_bytes().splitlines()
    del lines[max(nr for nr, line in enumerate(lines) if line.startswith(b'{"entry"'))]
    text = SegmentText()
    forged = [text.line(decode(line, type=SegmentRecord)) for line in lines[:-1]]
    shipment.file.write_bytes(b"".join([*forged, text.end()]))
    there = empty_tables(tmp_path)
    empty = tables_of(there)
    with pytest.raises(StorageError, match=r"book \w+: the backup ends with entry \d+, hash"):
        restored(there, archive)
    assert tables_of(there) == empty


@only_sqlite
def test_of_what_is_shipped_whole_the_last_segment_holds(
    ledger_url: str, archive: LedgerArchive, tmp_path: Path
) -> None:
    backed_up(told(ledger_url, *story()[:-3]), archive)

    async def go_on(storage: Storage) -> None:
        await write(await storage.store(), story()[-3:])
        connection = await storage.writing()
        await connection.run("UPDATE webhook_cursors SET cursor = 'later', failures = 0")
        await connection.run("DELETE FROM webhook_dead_letters")

    runner(ledger_url)(go_on)
    backed_up(ledger_url, archive)
    there = empty_tables(tmp_path)
    restored(there, archive)
    assert tables_of(there) == tables_of(ledger_url)
    assert tables_of(there)["webhook_cursors"][0][1] == "later"


def test_a_shipped_operation_is_read_and_written_as_ever() -> None:
    """Segments of earlier versions are restored: a line of theirs, to the byte."""
    line = (
        b'{"operation":{"operation":"op","book":"b","app":"a","key":"","fingerprint":"",'
        b'"status":204,"body":"","at_ms":5}}\n'
    )
    record = decode(line, type=SegmentRecord)
    assert record.operation is not None
    assert record.operation.done is DoneKind.CHANGED
    assert SegmentText().line(record) == line
