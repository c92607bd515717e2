"""Files that are whole at every moment, on a real disk."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tollgate.actors.kernel.atomic_file import create_file, replace_file


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_file_makes_room_for_another(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    replace_file(file, b"new", mode=0o664)
    assert file.read_bytes() == b"new"
    assert mode_of(file) == 0o664
    assert list(tmp_path.iterdir()) == [file]


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    create_file(file, b"new")
    assert mode_of(file) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_new_file_takes_nobodys_place(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        create_file(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_of_many_one_makes_the_file(tmp_path: Path) -> None:
    file = tmp_path / "file"

    def attempt(number: int) -> int | None:
        try:
            create_file(file, str(number).encode())
        except FileExistsError:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        made = [number for number in pool.map(attempt, range(32)) if number is not None]
    assert file.read_bytes() == str(made[0]).encode()
    assert len(made) == 1


@pytest.mark.parametrize("write", [replace_file, create_file])
def test_the_content_is_durable_before_the_name_is_there_and_the_name_at_the_end(
    write: Callable[[Path, bytes], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    synced: list[tuple[str, bool]] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        fsync(descriptor)
        synced.append((os.readlink(f"/proc/self/fd/{descriptor}"), file.exists()))

    monkeypatch.setattr(os, "fsync", watched)
    write(file, b"content")
    (draft, had_name), (folder, has_name) = synced
    assert Path(draft).parent == tmp_path
    assert not had_name
    assert (folder, has_name) == (str(tmp_path), True)


def test_what_cannot_be_written_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        replace_file(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]
