"""The link to the data folder, and the folders below it, where somebody else was before us."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tollgate.serve.node.socket_folder import (
    exposures,
    private_folder,
    ray_folder,
    remove_socket_folder,
    socket_folder,
)


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A data folder as Tollgate makes it."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    yield folder
    remove_socket_folder(str(folder))


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_link_of_our_own_is_used_again_and_mended(data: Path) -> None:
    link = socket_folder(str(data))
    assert socket_folder(str(data)) == link
    link.unlink()
    link.symlink_to(data.parent)
    assert socket_folder(str(data)).readlink() == data
    assert list(exposures(str(data))) == []


def test_a_link_of_somebody_else_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # For the next user whatever this one makes is a stranger's, the right link ahead of them too.
    ours = os.getuid()
    with monkeypatch.context() as other:
        other.setattr(os, "getuid", lambda: ours + 1)
        with pytest.raises(PermissionError, match=rf"\(uid {ours}\) has made this .*") as refused:
            socket_folder(str(data))
        remove_socket_folder(str(data))
    link = Path(refused.value.strerror.partition(":")[0])
    assert link.readlink() == data, "what is not ours stays"
    link.unlink()


def test_a_data_folder_of_somebody_else_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = os.getuid()
    monkeypatch.setattr("tollgate.serve.node.socket_folder.ROOT", ours + 2)
    monkeypatch.setattr(os, "getuid", lambda: ours + 1)
    (line,) = exposures(str(data))
    assert line.startswith(f"{data}: the data folder belongs to somebody else (uid {ours})")


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_data_folder_that_others_can_write_to_is_refused(data: Path, mode: int) -> None:
    data.chmod(mode)
    with pytest.raises(PermissionError, match="others can write to the data folder: chmod go-w"):
        socket_folder(str(data))


def test_a_folder_above_in_which_everybody_can_rename_is_refused(data: Path) -> None:
    data.parent.chmod(0o777)
    (line,) = exposures(str(data))
    assert line.startswith(f"{data.parent}: everybody can rename")
    data.parent.chmod(0o1777)
    assert list(exposures(str(data))) == []


def test_what_is_not_there_yet_is_no_exposure(data: Path) -> None:
    assert list(exposures(str(data / "later" / "still"))) == []


def test_a_folder_of_our_own_is_closed_however_it_was(data: Path) -> None:
    (data / "haproxy").mkdir()
    (data / "haproxy").chmod(0o755)
    assert mode_of(private_folder(data / "haproxy")) == 0o700


def test_nobody_else_enters_the_folder_that_ray_opens_to_all(data: Path) -> None:
    (data / "ray" / "session_before").mkdir(parents=True)
    sessions = ray_folder(data)
    sessions.chmod(0o777)  # (as Ray does)
    assert ray_folder(data) == sessions == data / "ray"
    assert (sessions / "session_before").is_dir()
    assert mode_of(sessions.resolve().parent) == 0o700
