"""Journals on a disk that fails: counters go on in memory, and are written when it is back."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.journal_keeping import NOW_S, Start, journals, of_month, starter
from tests.support.ratelimit.journals import DictSource
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.lending.messages import CounterColumns
from tollgate.actors.ratelimit.snapshots.journal_file import JournalFile
from tollgate.actors.ratelimit.snapshots.journal_folder import JournalFolder, JournalName
from tollgate.actors.ratelimit.snapshots.keeper import RETRY_EVERY_S, SnapshotKeeper
from tollgate.actors.ratelimit.snapshots.snapshot_thread import SnapshotThread


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_S)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ratelimit" / "counters"


@pytest.fixture
def start(folder: Path, clock: ManualClock) -> Start:
    return starter(folder, clock)


def no_space(*_: object) -> int:
    raise OSError(28, "No space left on device")


def test_a_full_disk_is_told_once_a_minute_and_what_was_missed_follows(
    start: Start,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    first = start()
    first.count(1)
    first.write()
    with monkeypatch.context() as patch:
        patch.setattr(JournalFile, "_write", no_space)
        first.count(2)
        for _ in range(7):
            clock.advance(RETRY_EVERY_S)
            first.write()
        assert len(caplog.messages) == 1
        assert caplog.messages[0].endswith("counters-0-of-1.journal: No space left on device")
        assert first.keeper.state.failures == 7
        assert first.keeper.state.age_s == 7 * RETRY_EVERY_S
        assert start().restored == of_month({b"a": 1}), "what was on disk is there"
        clock.advance(60)
        first.write()
        assert len(caplog.messages) == 2
    clock.advance(RETRY_EVERY_S)
    first.write()
    assert first.keeper.state.age_s == 0
    assert start().restored == of_month({b"a": 2})


def test_a_disk_that_fails_is_left_alone_for_a_while(
    start: Start, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start()
    monkeypatch.setattr(JournalFile, "_write", no_space)
    first.write()
    clock.advance(RETRY_EVERY_S - 1)
    first.write()
    assert first.keeper.state.failures == 1
    first.finish()
    assert first.keeper.state.failures == 2, "the end does not wait"


def read_only(*_: object, **__: object) -> None:
    raise OSError(30, "Read-only file system")


def test_a_read_only_disk_is_written_to_again_when_it_is_back(
    start: Start, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start()
    first.count(1)
    first.write()
    with monkeypatch.context() as patch:
        patch.setattr(JournalFile, "_write", read_only)
        patch.setattr(Path, "unlink", read_only)  # (also of what is not there)
        first.count(2)
        first.write()
        clock.advance(RETRY_EVERY_S)
        first.write()
    assert first.keeper.state.failures == 2
    clock.advance(RETRY_EVERY_S)
    first.write()
    assert start().restored == of_month({b"a": 2})


def test_a_full_disk_costs_no_descriptors_and_no_drafts(
    start: Start, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start()
    monkeypatch.setattr(JournalFile, "_write", no_space)
    for _ in range(20):
        first.write()
        clock.advance(RETRY_EVERY_S)
    assert first.keeper.state.failures == 20
    assert journals(folder) == []
    opened = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    assert not [path for path in opened if path.startswith(str(folder.resolve()))]


def test_want_of_memory_is_a_failure_like_others(
    start: Start,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = start()
    first.count(1)
    with monkeypatch.context() as patch:
        patch.setattr(first.source, "everything", no_memory)
        first.write()
    assert first.keeper.state.failures == 1
    assert caplog.messages[-1].endswith("counters-0-of-1.journal: there is no memory")
    clock.advance(RETRY_EVERY_S)
    first.write()
    assert start().restored == of_month({b"a": 1})


def no_memory() -> Iterator[list[CounterColumns]]:
    raise MemoryError


def test_a_stop_says_whether_all_is_on_disk(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = start()
    assert first.keeper.finish(first.source)
    second = start()
    monkeypatch.setattr(JournalFile, "_write", no_space)
    second.write()
    assert not second.keeper.finish(second.source)
    assert len(caplog.messages) == 2, "the end is told even within the minute"


def test_a_folder_that_cannot_be_made_stops_nothing(
    folder: Path, clock: ManualClock, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    folder.parent.mkdir()
    folder.write_text("in the way")
    first = start()
    assert first.restored == {}
    assert "cannot be read, so counters begin at 0: Not a directory" in caplog.text
    first.write()
    assert first.keeper.state.failures == 1
    folder.unlink()
    clock.advance(RETRY_EVERY_S)
    first.count(1)
    first.write()
    assert start().restored == of_month({b"a": 1})


def test_a_journal_that_somebody_removed_is_written_anew(start: Start, folder: Path) -> None:
    first = start()
    first.count(1)
    first.write()
    (folder / "counters-0-of-1.journal").unlink()
    first.write()
    assert start().restored == of_month({b"a": 1})


def test_a_process_that_was_replaced_writes_no_more(
    start: Start, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    frozen = start()
    frozen.count(1)
    frozen.write()
    successor = start()
    successor.count(5)
    successor.write()
    frozen.count(2)
    frozen.write()
    assert "another process writes them now" in caplog.text
    clock.advance(100)
    frozen.write()
    frozen.finish()
    successor.write()
    assert successor.keeper.state.failures == 0
    assert start().restored == of_month({b"a": 5})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_broke_is_a_failure_and_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("a fault of the keeper")

    monkeypatch.setattr(SnapshotKeeper, "write", broken)
    keeper = SnapshotKeeper(JournalFolder(folder), JournalName(0, 1), 3_600, SystemClock())
    thread = SnapshotThread.begin(keeper, DictSource())
    assert not thread.finish()
    assert thread.describe()["snapshot_failures"] == 1
    assert "counters are not written to disk any more" in caplog.text
