"""Journals of counters after the number of partitions has changed."""

import os
from pathlib import Path

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.journal_keeping import (
    NOW_S,
    Partition,
    Start,
    journals,
    of_month,
    starter,
    with_counts,
)
from tests.support.ratelimit.journals import Counts, DictSource, counts_of
from tollgate.actors.kernel.hashing import stable_hash
from tollgate.actors.ratelimit.snapshots.journal_folder import JournalFolder, JournalName
from tollgate.actors.ratelimit.snapshots.keeper import SnapshotKeeper


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_S)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ratelimit" / "counters"


@pytest.fixture
def start(folder: Path, clock: ManualClock) -> Start:
    return starter(folder, clock)


def keys_of(partition: int, partitions: int, count: int) -> list[bytes]:
    keys = (b"key-%d" % number for number in range(10_000))
    mine = [key for key in keys if stable_hash(key) % partitions == partition]
    return mine[:count]


def run_all(start: Start, partitions: int) -> list[Partition]:
    return [start(number, partitions) for number in range(partitions)]


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (2, 4), (4, 2), (1, 3), (3, 1)])
def test_counters_go_where_their_keys_belong_now(
    start: Start, folder: Path, before: int, after: int
) -> None:
    everything: Counts = {}
    for number, partition in enumerate(run_all(start, before)):
        for key in keys_of(number, before, 20):
            partition.count(number + 1, key)
        everything |= partition.source.counts
        partition.finish()
    heirs = run_all(start, after)
    found: Counts = {}
    for number, heir in enumerate(heirs):
        assert {stable_hash(key) % after for _, key in heir.restored} <= {number}
        found |= heir.restored
    assert found == everything
    for heir in heirs[:-1]:
        heir.write()
        heir.write()
    # The last one may still need them.
    needed = [JournalName(n, before) for n in range(before)]
    last = JournalName(after - 1, after)
    assert {name.file_name for name in needed if name.may_share_keys_with(last)} <= set(
        journals(folder)
    )
    heirs[-1].write()
    assert journals(folder) == [JournalName(n, after).file_name for n in range(after)]
    again: Counts = {}
    for heir in run_all(start, after):
        again |= heir.restored
    assert again == everything


def test_a_change_of_their_number_that_was_cut_off_is_begun_again(
    start: Start, folder: Path
) -> None:
    (key,) = keys_of(0, 6, 1)  # (of the first one of 2, and of 3)
    for partition in run_all(start, 2):
        partition.finish()
    first = start(0, 2)
    first.count(1, key)
    first.finish()
    # Three start, one of them writes and counts on; then the power is gone.
    three = run_all(start, 3)
    three[0].count(2, key)
    three[0].write()
    assert len(journals(folder)) == 3
    # Back to two: the newer count is the one that holds.
    two = run_all(start, 2)
    assert two[0].restored == of_month({key: 2})
    two[0].count(3, key)
    for partition in two:
        partition.write()
    assert journals(folder) == ["counters-0-of-2.journal", "counters-1-of-2.journal"]
    assert start(0, 3).restored == of_month({key: 3})


def test_journals_of_before_that_cannot_be_removed_stop_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with_counts(start, 1)
    two = run_all(start, 2)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(JournalFolder, "remove_taken_over", refuse)
    for partition in two:
        partition.write()
        assert partition.keeper.state.failures == 0
    assert "could not be removed" in caplog.text


def test_a_journal_of_an_earlier_stay_is_left_out(
    start: Start, folder: Path, clock: ManualClock
) -> None:
    with_counts(start, 5)
    name = JournalName(0, 1)
    place = JournalFolder(folder).place(name)
    os.utime(place, (NOW_S, NOW_S))
    keeper = SnapshotKeeper(JournalFolder(folder), name, 1.0, clock)
    assert list(keeper.restored(written_after_s=NOW_S)) == []
    assert counts_of(keeper.restored(written_after_s=NOW_S - 1)) == of_month({b"a": 5})
    # Its successor takes its place, whatever is believed.
    assert list(keeper.restored(written_after_s=NOW_S)) == []
    keeper.write(DictSource())
    assert start().restored == {}
