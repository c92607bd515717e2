"""Journals of counters that are not as they were written: torn, damaged, foreign, in the way."""

import os
from pathlib import Path

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.journal_keeping import (
    NOW_S,
    Start,
    journals,
    of_month,
    starter,
    with_counts,
)
from tollgate.actors.ratelimit.snapshots.frames import HEAD_BYTES

MARK_BYTES = HEAD_BYTES + 8
# Of one counter with a key of one byte, and its mark.
DELTA_BYTES = HEAD_BYTES + 25 + MARK_BYTES


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_S)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ratelimit" / "counters"


@pytest.fixture
def start(folder: Path, clock: ManualClock) -> Start:
    return starter(folder, clock)


def test_a_torn_tail_is_cut_and_told(
    start: Start, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with_counts(start, 1, 2)
    place = folder / "counters-0-of-1.journal"
    os.truncate(place, place.stat().st_size - MARK_BYTES - 1)
    second = start()
    assert second.restored == of_month({b"a": 1})
    (line,) = caplog.messages
    assert f"of {place} were never written to their end" in line
    second.write()
    assert journals(folder) == [place.name]


def test_a_damaged_journal_is_believed_up_to_the_damage_and_kept(
    start: Start, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with_counts(start, 1, 2, 3)
    place = folder / "counters-0-of-1.journal"
    data = bytearray(place.read_bytes())
    data[-DELTA_BYTES - MARK_BYTES - 1] ^= 1  # (in the delta before the last)
    place.write_bytes(data)
    second = start()
    assert second.restored == of_month({b"a": 1})
    (line,) = caplog.messages
    assert "is damaged from byte" in line
    assert "kept as counters-0-of-1.journal.damaged" in line
    second.count(8)
    second.write()
    assert (folder / "counters-0-of-1.journal.damaged").read_bytes() == data
    caplog.clear()
    assert start().restored == of_month({b"a": 8})
    assert caplog.messages == []


@pytest.mark.parametrize("content", [b"", b"anything else", b"tollgate counters 2\n" + bytes(99)])
def test_a_foreign_file_is_set_aside_and_told(
    start: Start, folder: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir(parents=True)
    place = folder / "counters-0-of-1.journal"
    place.write_bytes(content)
    first = start()
    assert first.restored == {}
    assert "is no counter journal of this version" in caplog.text
    assert (folder / "counters-0-of-1.journal.damaged").read_bytes() == content
    first.count(1)
    first.write()
    assert start().restored == of_month({b"a": 1})


def test_a_journal_under_another_name_is_set_aside(start: Start, folder: Path) -> None:
    with_counts(start, 1)
    (folder / "counters-0-of-1.journal").rename(folder / "counters-1-of-2.journal")
    assert start(1, 2).restored == {}
    assert journals(folder) == ["counters-1-of-2.journal.damaged"]


def test_a_folder_in_its_place_is_told_and_set_aside(
    start: Start, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "counters-0-of-1.journal").mkdir(parents=True)
    first = start()
    assert "cannot be read, so its counters begin at 0" in caplog.text
    first.count(1)
    first.write()
    assert first.keeper.state.failures == 0
    assert start().restored == of_month({b"a": 1})


def test_other_files_are_nobodys_journal(start: Start, folder: Path) -> None:
    folder.mkdir(parents=True)
    others = ["counters-2-of-2.journal", "counters-x-of-1.journal", "notes.txt"]
    for name in others:
        (folder / name).write_text("mine")
    assert start().restored == {}
    assert journals(folder) == sorted(others)
