"""The file of the master secret: made once, for its owner alone, and never made up again."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tollgate.serve.payments.secrets.master_secret import SecretFileError, load_master_secret

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
