"""Journals say how much is known in them, and which counters were reset."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.borrowed_counters import Branch
from tests.support.ratelimit.journals import DictSource
from tollgate.actors.ratelimit.copies.messages import CopyOrigin
from tollgate.actors.ratelimit.copies.shelf import CopyShelf
from tollgate.actors.ratelimit.counting.counters import LimitedHits
from tollgate.actors.ratelimit.lent_counting.partition import LendingPartition
from tollgate.actors.ratelimit.lent_counting.survival import Survival
from tollgate.actors.ratelimit.snapshots.journal_folder import JournalFolder, JournalName
from tollgate.actors.ratelimit.snapshots.keeper import SnapshotKeeper

NOW_S = 1_000_000
END_S = 1_003_600
NAME = JournalName(0, 1)


class KeptBranch(Branch):
    """A branch whose partition keeps a journal, and finds it when it starts again."""

    def __init__(self, folder: Path) -> None:
        super().__init__(ManualClock(NOW_S), fronts=2)
        self._folder = folder
        self._survivals: list[Survival] = []
        self.incarnation = 0
        self.start()

    def start(self) -> None:
        """The next process; the one before writes nothing more."""
        self.end()
        self.incarnation += 1
        partition = LendingPartition(
            self.terms,
            self.incarnation,
            self.clock,
            is_new=self.incarnation == 1,
            keeps_changes=True,
            is_open=False,
        )
        self.partitions[0] = partition
        for channels in self.channels:
            channels[0].partition = partition
        # (written by hand: the thread waits for so long)
        self.keeper = SnapshotKeeper(JournalFolder(self._folder), NAME, 3_600.0, self.clock)
        origin = CopyOrigin(0, self.incarnation, NOW_S, self.keeper.id)
        shelf = CopyShelf(self.terms, self.clock)
        survival = Survival(partition, origin, self.terms, self.clock, self.keeper, None, shelf)
        survival.begin()
        self._survivals.append(survival)

    def end(self) -> None:
        for survival in self._survivals:
            survival.finish()
        self._survivals.clear()

    def hit(self, front: int, by: int) -> None:
        hits = [LimitedHits(END_S, [b"k"], [by], [100])]
        self.fronts[front].hit({0: hits}, NOW_S)

    def known(self) -> int:
        (row,) = self.partitions[0].find_counters([b"k"])
        return row.hits


@pytest.fixture
def branch(tmp_path: Path) -> Iterator[KeptBranch]:
    kept = KeptBranch(tmp_path / "journals")
    yield kept
    kept.end()


def test_a_reset_is_on_disk_and_a_front_that_was_away_does_not_undo_it(branch: KeptBranch) -> None:
    branch.exchange()
    branch.hit(0, 40)
    branch.rest(1)
    branch.channels[0][0].is_cut = True
    for _ in range(3):
        branch.rest(branch.terms.term_s + branch.terms.margin_s)
    with ThreadPoolExecutor(1) as operator:
        asked = operator.submit(branch.partitions[0].reset_counters, [b"k"], 60.0)
        while not asked.done():
            branch.rest(0.02)
    assert [each.failure for each in asked.result()] == [None]
    # Whoever has heard of it is lost, and so is the partition.
    branch.channels[1][0].is_cut = True
    branch.start()
    branch.channels[0][0].is_cut = False
    for _ in range(3):
        branch.rest(branch.terms.term_s + branch.terms.margin_s)
    assert branch.known() == 0
    # It is handed down.
    branch.start()
    for _ in range(3):
        branch.rest(branch.terms.term_s + branch.terms.margin_s)
    assert branch.known() == 0


def test_a_journal_says_how_much_is_in_it(tmp_path: Path) -> None:
    source, clock = DictSource(), ManualClock(NOW_S)
    writer = SnapshotKeeper(JournalFolder(tmp_path), NAME, 1.0, clock)
    list(writer.restored())
    source.set(END_S, b"a", 1)
    writer.write(source)  # (all counters)
    for count in (2, 3):
        source.set(END_S, b"a", count)
        writer.write(source)
    reader = SnapshotKeeper(JournalFolder(tmp_path), NAME, 1.0, clock)
    list(reader.restored())
    left = reader.left
    assert (left.id, left.mark, left.is_behind) == (writer.id, 3, False)


def test_a_journal_without_a_mark_says_that_it_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, clock = DictSource(), ManualClock(NOW_S)
    writer = SnapshotKeeper(JournalFolder(tmp_path), NAME, 1.0, clock)
    list(writer.restored())
    monkeypatch.setattr(source, "_changed", {(END_S, b"a"): None})
    source.counts[END_S, b"a"] = 1
    monkeypatch.setattr(source, "changed", lambda _: [])  # (it does not come to an end with them)
    writer.write(source)
    reader = SnapshotKeeper(JournalFolder(tmp_path), NAME, 1.0, clock)
    list(reader.restored())
    assert (reader.left.mark, reader.left.is_behind) == (None, True)
