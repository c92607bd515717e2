"""The file of the master secret: made once, for its owner alone, and never made up again."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.payments.api import PaymentsApi
from tollgate.actors.ledger.storage.key_uses import SqlInstallation
from tollgate.serve.payments.secrets.master_secret import (
    SecretFileError,
    load_master_secret,
    open_master_secret,
)

MAKERS = 4
PRINT_A_KEY = (
    "import sys; from pathlib import Path; "
    "from tollgate.serve.payments.secrets.master_secret import load_master_secret; "
    "sys.stdout.write(load_master_secret(Path(sys.argv[1])).key_for('x').hex())"
)


def test_it_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "payments" / "secret"
    first = load_master_secret(path)
    assert load_master_secret(path).key_for("x") == first.key_for("x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["secret"]


def test_two_installations_have_two(tmp_path: Path) -> None:
    one, other = (load_master_secret(tmp_path / name).key_for("x") for name in ("a", "b"))
    assert one != other


def test_of_processes_that_start_together_one_makes_it(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    command = [sys.executable, "-c", PRINT_A_KEY, str(path)]
    makers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(MAKERS)]
    keys = {maker.communicate()[0] for maker in makers}
    assert keys == {load_master_secret(path).key_for("x").hex().encode()}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["", "abc", "00" * 31, "00" * 33, "zz" * 32, "é" * 32])
def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "secret"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(
        SecretFileError, match="does not hold 32 bytes in hex: restore it"
    ) as caught:
        load_master_secret(path)
    assert path.read_text() == text
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    load_master_secret(path)
    path.chmod(mode)
    with pytest.raises(SecretFileError, match="others may read it: chmod 600"):
        load_master_secret(path)


def test_a_place_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SecretFileError, match=r"Not a directory|File exists"):
        load_master_secret(tmp_path / "file" / "secret")


def test_the_books_know_their_secret(api: PaymentsApi, tmp_path: Path) -> None:
    """A file that is lost or another is refused, and none is made in its place."""
    marks, path = SqlInstallation(api.database), tmp_path / "secret"
    first = api.runner.run(open_master_secret(path, marks))
    assert api.runner.run(open_master_secret(path, marks)).mark == first.mark
    kept = path.rename(tmp_path / "kept")
    with pytest.raises(SecretFileError, match=f"is not there.*its mark is {first.mark}"):
        api.runner.run(open_master_secret(path, marks))
    assert not path.exists()
    other = load_master_secret(path)
    with pytest.raises(SecretFileError, match=f"mark is {other.mark}, and theirs is {first.mark}"):
        api.runner.run(open_master_secret(path, marks))
    kept.rename(path)
    assert api.runner.run(open_master_secret(path, marks)).mark == first.mark


def test_books_of_before_marks_make_no_new_secret(api: PaymentsApi, tmp_path: Path) -> None:
    api.new_app()
    with pytest.raises(SecretFileError, match="is not there, and the books were written"):
        api.runner.run(open_master_secret(tmp_path / "secret", SqlInstallation(api.database)))


def test_of_two_first_nodes_with_files_of_their_own_one_starts(
    api: PaymentsApi, tmp_path: Path
) -> None:
    marks = SqlInstallation(api.database)
    api.runner.run(open_master_secret(tmp_path / "one", marks))
    load_master_secret(tmp_path / "two")
    with pytest.raises(SecretFileError, match="is not the file"):
        api.runner.run(open_master_secret(tmp_path / "two", marks))
