"""Every arrow of the table in watching/watcher.py, and what a restart finds."""

from collections.abc import Hashable
from functools import partial

import pytest

from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.rules.rule_file import RuleFile, RuleFileError
from tollgate.actors.ratelimit.watching.in_force import GoodRules
from tollgate.actors.ratelimit.watching.watcher import Watcher


class Disk:
    """A rule source whose content and signature are set by hand."""

    def __init__(self, text: str = "") -> None:
        self.error: RuleFileError | None = None
        self.read_error: RuleFileError | None = None
        self.reads = 0
        self.edit(text)

    def edit(self, text: str) -> None:
        self.text = text
        self.mark: Hashable = object()

    def signature(self) -> Hashable:
        if self.error is not None:
            raise self.error
        return self.mark

    def read(self) -> list[RuleFile]:
        self.reads += 1
        error = self.error or self.read_error
        if error is not None:
            raise error
        return [RuleFile("rules.yaml", self.text)] if self.text else []


class Shelf:
    """A rule archive in memory."""

    def __init__(self) -> None:
        self.good: GoodRules | None = None

    def put_away(self, good: GoodRules) -> None:
        self.good = good

    def take_out(self) -> GoodRules | None:
        return self.good


def watcher_of(disk: Disk, shelf: Shelf | None = None, run: str = "run") -> Watcher:
    return Watcher(run, disk, shelf or Shelf(), partial(load_rules, merge_domains=False))


def in_force(watcher: Watcher) -> tuple[int, list[str]]:
    """The number of the generation, and its domains."""
    if watcher.generation is None:
        return 0, []
    return watcher.generation.number, list(watcher.generation.rules.domains)


ONE, OTHER, BROKEN = "domain: one", "domain: other", "domain: [broken"
UNREADABLE = RuleFileError("rules.yaml", None, "cannot be read: Permission denied")


def test_the_first_look_loads_at_once() -> None:
    watcher = watcher_of(Disk(ONE))
    assert in_force(watcher) == (0, [])
    assert watcher.look()
    assert in_force(watcher) == (1, ["one"])
    assert (watcher.error, watcher.loads, watcher.failed_loads) == (None, 1, 0)


def test_no_files_are_rules_without_domains() -> None:
    watcher = watcher_of(Disk())
    assert watcher.look()
    assert in_force(watcher) == (1, [])


def test_nothing_changed_nothing_happens() -> None:
    disk = Disk(ONE)
    watcher = watcher_of(disk)
    watcher.look()
    assert not any(watcher.look() for _ in range(3))
    assert disk.reads == 1


def test_a_change_is_loaded_when_two_looks_agree() -> None:
    disk = Disk(ONE)
    watcher = watcher_of(disk)
    watcher.look()
    disk.edit(OTHER)
    assert not watcher.look()
    assert in_force(watcher) == (1, ["one"])
    assert watcher.look()
    assert in_force(watcher) == (2, ["other"])
    assert not watcher.look()


def test_a_file_that_is_being_written_is_left_alone() -> None:
    disk = Disk(ONE)
    watcher = watcher_of(disk)
    watcher.look()
    for half in ("d", "domain: [", "domain: oth"):
        disk.edit(half)
        assert not watcher.look()
    disk.edit(OTHER)
    assert not watcher.look()
    assert watcher.look()
    assert in_force(watcher) == (2, ["other"])
    assert (watcher.failed_loads, disk.reads) == (0, 2)


def test_a_change_that_is_taken_back_before_it_settles_is_none() -> None:
    disk = Disk(ONE)
    watcher = watcher_of(disk)
    watcher.look()
    before = disk.mark
    disk.edit(OTHER)
    watcher.look()
    disk.text, disk.mark = ONE, before
    assert not any(watcher.look() for _ in range(3))
    assert disk.reads == 1


def test_the_same_content_written_again_does_nothing() -> None:
    disk = Disk(ONE)
    watcher = watcher_of(disk)
    watcher.look()
    generation = watcher.generation
    disk.edit(ONE)
    assert not any(watcher.look() for _ in range(3))
    assert watcher.generation is generation
    assert (watcher.loads, disk.reads) == (1, 2)


def test_a_broken_set_is_told_once_and_the_good_one_stays() -> None:
    disk = Disk(ONE)
    watcher = watcher_of(disk)
    watcher.look()
    disk.edit(BROKEN)
    assert [watcher.look() for _ in range(4)] == [False, True, False, False]
    assert in_force(watcher) == (1, ["one"])
    assert watcher.failed_loads == 1
    assert watcher.error is not None
    assert watcher.error.located.startswith("rules.yaml:")


def test_a_broken_set_is_replaced_by_the_next_good_one() -> None:
    disk = Disk(BROKEN)
    watcher = watcher_of(disk)
    assert watcher.look()
    assert in_force(watcher) == (0, [])
    assert watcher.error is not None
    disk.edit(OTHER)
    assert [watcher.look(), watcher.look()] == [False, True]
    assert in_force(watcher) == (1, ["other"])
    assert watcher.error is None


def test_the_end_of_an_error_is_told_even_if_the_rules_are_the_old_ones() -> None:
    disk = Disk(ONE)
    watcher = watcher_of(disk)
    watcher.look()
    disk.edit(BROKEN)
    watcher.look(), watcher.look()
    disk.edit(ONE)
    assert [watcher.look() for _ in range(3)] == [False, True, False]
    assert in_force(watcher) == (1, ["one"])
    assert (watcher.error, watcher.loads, watcher.failed_loads) == (None, 1, 1)


def test_a_source_that_cannot_be_read_is_a_broken_set() -> None:
    disk = Disk(ONE)
    watcher = watcher_of(disk)
    watcher.look()
    disk.error = UNREADABLE
    assert [watcher.look() for _ in range(3)] == [False, True, False]
    assert in_force(watcher) == (1, ["one"])
    assert watcher.error is UNREADABLE
    disk.error = None
    assert [watcher.look() for _ in range(3)] == [False, True, False]
    assert watcher.error is None


def test_a_source_that_cannot_be_read_at_first() -> None:
    disk = Disk(ONE)
    disk.error = UNREADABLE
    watcher = watcher_of(disk)
    assert watcher.look()
    assert (in_force(watcher), watcher.error) == ((0, []), UNREADABLE)
    disk.error = None
    assert [watcher.look() for _ in range(3)] == [False, True, False]
    assert in_force(watcher) == (1, ["one"])


def test_a_failed_read_is_tried_again_although_no_file_changes() -> None:
    disk = Disk(ONE)
    watcher = watcher_of(disk)
    watcher.look()
    disk.edit(OTHER)
    disk.read_error = UNREADABLE
    assert [watcher.look() for _ in range(4)] == [False, True, False, False]
    assert (in_force(watcher), watcher.failed_loads) == ((1, ["one"]), 1)
    disk.read_error = None
    assert [watcher.look() for _ in range(3)] == [True, False, False]
    assert (in_force(watcher), watcher.error) == ((2, ["other"]), None)
    assert disk.reads == 5  # once read, files that stay as they are are left alone


def test_another_reason_for_a_failed_read_is_told() -> None:
    disk = Disk(ONE)
    disk.read_error = UNREADABLE
    watcher = watcher_of(disk)
    assert [watcher.look(), watcher.look()] == [True, False]
    disk.read_error = RuleFileError("rules.yaml", None, "cannot be read: Input/output error")
    assert [watcher.look(), watcher.look()] == [True, False]
    assert (watcher.error, watcher.failed_loads) == (disk.read_error, 2)


def test_rules_come_into_force_on_a_full_disk() -> None:
    class FullShelf(Shelf):
        def put_away(self, good: GoodRules) -> None:
            raise OSError(28, "No space left on device")

    watcher = watcher_of(Disk(ONE), FullShelf())
    assert watcher.look()
    assert in_force(watcher) == (1, ["one"])
    assert watcher.archive_error is not None


@pytest.mark.parametrize("broken", [False, True], ids=["files are good", "files are broken"])
def test_a_restart_in_the_same_run_goes_on_from_the_last_good_rules(broken: bool) -> None:
    disk, shelf = Disk(ONE), Shelf()
    first = watcher_of(disk, shelf)
    first.look()
    disk.edit(OTHER)
    first.look(), first.look()
    if broken:
        disk.edit(BROKEN)

    second = watcher_of(disk, shelf)
    assert in_force(second) == (2, ["other"])
    assert second.look() is broken
    assert in_force(second) == (2, ["other"])
    assert (second.error is not None) is broken

    disk.edit(ONE)
    assert [second.look(), second.look()] == [False, True]
    assert in_force(second) == (3, ["one"])


def test_another_run_begins_anew() -> None:
    disk, shelf = Disk(ONE), Shelf()
    watcher_of(disk, shelf).look()
    disk.edit(BROKEN)
    other = watcher_of(disk, shelf, run="another")
    assert in_force(other) == (0, [])
    assert other.look()
    assert in_force(other) == (0, [])


def test_only_good_rules_are_put_away() -> None:
    disk, shelf = Disk(ONE), Shelf()
    watcher = watcher_of(disk, shelf)
    watcher.look()
    good = GoodRules("run", 1, (RuleFile("rules.yaml", ONE),))
    assert shelf.good == good
    disk.edit(BROKEN)
    watcher.look(), watcher.look()
    assert shelf.good == good
