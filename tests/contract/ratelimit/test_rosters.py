"""Rosters on disk: the next process knows all fronts of the one before, or that it does not."""

from pathlib import Path

import pytest

from tollgate.actors.ratelimit.snapshots.journal_folder import JournalFolder, JournalName
from tollgate.actors.ratelimit.snapshots.roster_file import RosterFile

NAME = JournalName(0, 2)


def roster(folder: Path, incarnation: int, name: JournalName = NAME) -> RosterFile:
    return JournalFolder(folder / "new").roster(name, incarnation)


def test_the_next_process_knows_who_was_there(tmp_path: Path) -> None:
    first = roster(tmp_path, 1)
    assert first.left() is None
    assert first.write({"a"})
    assert first.write({"a", "b"})
    assert roster(tmp_path, 2).left() == {"a", "b"}


def test_nobody_was_there(tmp_path: Path) -> None:
    assert roster(tmp_path, 1).write(())
    assert roster(tmp_path, 2).left() == frozenset()


@pytest.mark.parametrize("incarnation", [1, 3, 4])
def test_it_counts_for_the_very_next_process_alone(tmp_path: Path, incarnation: int) -> None:
    roster(tmp_path, 1).write({"a"})
    assert roster(tmp_path, incarnation).left() is None


def test_each_partition_has_its_own(tmp_path: Path) -> None:
    roster(tmp_path, 1).write({"a"})
    assert roster(tmp_path, 2, JournalName(1, 2)).left() is None
    assert roster(tmp_path, 2, JournalName(0, 3)).left() is None
    assert JournalFolder(tmp_path / "new").names() == []


@pytest.mark.parametrize("content", [b"", b"[", b"[]", b"{}", b"1", b'[1, "a", 2]', b"\xff"])
def test_what_is_no_roster_says_nothing(tmp_path: Path, content: bytes) -> None:
    roster(tmp_path, 1).write({"a"})
    (file,) = (tmp_path / "new").iterdir()
    file.write_bytes(content)
    assert roster(tmp_path, 2).left() is None


def test_one_that_cannot_be_written_is_not_there(tmp_path: Path) -> None:
    first = roster(tmp_path, 1)
    first.write({"a"})
    (file,) = (tmp_path / "new").iterdir()
    # (nobody can write to a folder)
    file.with_name(file.name + ".draft").mkdir()
    assert not first.write({"a", "b"})
    assert roster(tmp_path, 2).left() is None
