"""The journal of a partition on a real disk: what one process writes, the next one reads."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.journal_keeping import (
    MONTH_END_S,
    NOW_S,
    Start,
    journals,
    of_month,
    starter,
    with_counts,
)
from tests.support.ratelimit.journals import Counts, DictSource, columns, counts_of
from tests.support.waiting import until
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.lending.messages import CounterColumns
from tollgate.actors.ratelimit.snapshots import keeper as keeping
from tollgate.actors.ratelimit.snapshots.journal_folder import JournalFolder, JournalName
from tollgate.actors.ratelimit.snapshots.keeper import (
    DELTAS_BYTES_MIN,
    LIFE_LEFT_MIN_S,
    SnapshotKeeper,
)
from tollgate.actors.ratelimit.snapshots.restoration import Restoration
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


def test_the_next_process_goes_on_where_the_last_write_was(start: Start, folder: Path) -> None:
    first = start()
    assert first.restored == {}
    first.count(3, b"a")
    first.count(5, b"b")
    first.write()
    first.count(4, b"a")
    first.write()
    first.count(9, b"b")  # (not written any more)

    second = start()
    assert second.restored == of_month({b"a": 4, b"b": 5})
    assert journals(folder) == ["counters-0-of-1.journal"]


def test_a_stop_in_order_writes_everything(start: Start, folder: Path) -> None:
    first = start()
    first.write()
    first.count(1, b"a")
    first.count(2, b"soon", int(NOW_S) + 5)
    first.write()
    first.count(3, b"sooner", int(NOW_S) + 1)
    first.finish()
    assert start().restored == {
        **of_month({b"a": 1}),
        (int(NOW_S) + 5, b"soon"): 2,
        (int(NOW_S) + 1, b"sooner"): 3,
    }


def test_a_stop_without_any_write_before_writes_everything(start: Start) -> None:
    first = start()
    first.count(1)
    first.finish()
    assert start().restored == of_month({b"a": 1})


def test_what_was_restored_survives_processes_that_counted_nothing(start: Start) -> None:
    first = start()
    first.count(7)
    first.finish()
    for _ in range(3):
        again = start()
        assert again.restored == of_month({b"a": 7})
        again.write()


def test_windows_that_end_soon_are_left_out(start: Start) -> None:
    first = start()
    first.write()
    first.count(1, b"soon", int(NOW_S) + LIFE_LEFT_MIN_S)
    first.count(2, b"later", int(NOW_S) + LIFE_LEFT_MIN_S + 1)
    first.write()
    first.count(3, b"soon", int(NOW_S) + LIFE_LEFT_MIN_S)
    first.write()
    assert start().restored == {(int(NOW_S) + LIFE_LEFT_MIN_S + 1, b"later"): 2}


def test_nothing_is_written_when_nothing_has_changed(start: Start, clock: ManualClock) -> None:
    first = start()
    first.count(1)
    first.write()
    size = first.keeper.state.bytes
    clock.advance(5)
    first.write()
    assert first.keeper.state.bytes == size > 0
    assert first.keeper.state.age_s == 0
    clock.advance(5)
    assert first.keeper.state.age_s == 5


def test_a_reset_counter_stays_at_zero(start: Start) -> None:
    first = start()
    first.count(7)
    first.write()
    first.count(0)
    first.write()
    assert start().restored == of_month({b"a": 0})


A_YEAR_S = 365 * 86_400


def test_a_clock_that_was_ahead_at_a_base_costs_nothing(
    start: Start, folder: Path, clock: ManualClock
) -> None:
    first = start()
    first.count(7)
    clock.turn(A_YEAR_S)
    first.write()
    clock.turn(-A_YEAR_S)
    for _ in range(5):
        clock.advance(1)
        first.write()
    assert start().restored == of_month({b"a": 7})


def test_a_clock_that_was_ahead_at_a_delta_costs_nothing(start: Start, clock: ManualClock) -> None:
    first = start()
    first.count(7)
    first.write()
    clock.turn(A_YEAR_S)
    first.count(8)
    first.write()
    clock.turn(-A_YEAR_S)
    first.write()
    assert start().restored == of_month({b"a": 8})


def test_a_window_that_comes_again_when_a_clock_is_put_back_is_a_new_one(
    start: Start, clock: ManualClock
) -> None:
    first = start()
    first.write()
    first.count(1, b"a", int(NOW_S) + 11)
    first.write()
    clock.advance(12)
    first.write()
    clock.turn(-12)
    first.count(2, b"a", int(NOW_S) + 11)
    first.write()
    assert start().restored == {(int(NOW_S) + 11, b"a"): 2}


# Growth


def test_a_journal_that_has_outgrown_its_base_begins_anew(start: Start, folder: Path) -> None:
    first = start()
    first.count(1, b"kept")
    first.write()
    key = b"k" * 200_000
    sizes = []
    for number in range(60):
        first.count(number, key)
        first.write()
        sizes.append(first.keeper.state.bytes)
    assert max(sizes) < 2 * DELTAS_BYTES_MIN
    assert min(sizes[1:]) < max(sizes) / 4, "it has begun anew"
    assert start().restored == of_month({b"kept": 1, key: 59})
    assert journals(folder) == ["counters-0-of-1.journal"]


def test_the_old_journal_goes_on_while_a_new_base_is_written(
    start: Start, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "DELTAS_BYTES_MIN", 0)
    first = start()
    first.count(1, b"a")
    first.write()
    read: list[Counts] = []

    def slow_base() -> Iterator[list[CounterColumns]]:
        first.count(77, b"c")
        clock.advance(1)
        yield columns({(MONTH_END_S, b"a"): 2})
        # Somebody pulls the plug now.
        read.append(start().restored)
        yield columns({(MONTH_END_S, b"c"): 77})

    monkeypatch.setattr(first.source, "everything", slow_base)
    while not read:
        first.count(2, b"a")
        first.write()
    assert read[-1][MONTH_END_S, b"c"] == 77
    assert start().restored[MONTH_END_S, b"c"] == 77


def test_what_a_killed_writer_was_drafting_is_removed(start: Start, folder: Path) -> None:
    with_counts(start, 1)
    (folder / ".counters-0-of-1.journal.0123.draft").write_bytes(b"half")
    second = start()
    second.write()
    assert journals(folder) == ["counters-0-of-1.journal"]


def test_only_the_owner_may_read_the_keys(start: Start, folder: Path) -> None:
    with_counts(start, 1)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "counters-0-of-1.journal").stat().st_mode & 0o777 == 0o600


# The thread


def keep(folder: Path, interval_s: float) -> tuple[DictSource, SnapshotThread]:
    """A partition with a keeper's thread, by the machine's clock."""
    source = DictSource()
    keeper = SnapshotKeeper(JournalFolder(folder), JournalName(0, 1), interval_s, SystemClock())
    return source, SnapshotThread.begin(keeper, source)


FAR_S = 2**40


def test_the_thread_writes_again_and_again_and_everything_at_its_end(folder: Path) -> None:
    source, thread = keep(folder, 0.01)
    for count in (1, 2):
        source.set(FAR_S, b"a", count)
        until(lambda: read_all(folder) == {(FAR_S, b"a"): count}, "it is on disk")  # noqa: B023
    source.set(FAR_S, b"a", 3)
    assert thread.finish()
    assert read_all(folder) == {(FAR_S, b"a"): 3}
    assert thread.describe()["snapshot_failures"] == 0
    assert thread.describe()["snapshot_bytes"] == 0, "it has let go"


def test_the_end_waits_for_no_interval(folder: Path) -> None:
    source, thread = keep(folder, 3_600)
    source.set(FAR_S, b"a", 3)
    thread.finish()
    thread.finish()
    again, thread = keep(folder, 3_600)
    assert again.counts == {(FAR_S, b"a"): 3}
    thread.finish()


def test_a_process_that_counts_from_the_start_writes_everything_once(start: Start) -> None:
    first = start()
    first.count(1, b"k" * 1_000)
    first.write()
    assert first.keeper.state.bytes < 2_000


def read_all(folder: Path) -> Counts:
    return counts_of(Restoration(JournalFolder(folder), JournalName(0, 1)).counters())
