"""The wheel: what is in it, and that it is enough to work with."""

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.support.installed_wheel import built_wheel, checkout_files, copied_checkout, installed

# Kept beside the shipped files by an operator; of no concern to others.
SECRETS = ("configs/operator.key", "configs/payments/secret", "configs/ratelimit/.env")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = copied_checkout(tmp_path_factory.mktemp("source"))
    for path in SECRETS:
        (source / path).write_text("s3cret")
    return built_wheel(source, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(wheel, tmp_path_factory.mktemp("environment"))


def run(bin_folder: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of the installed wheel, in a folder of its own, with no setting."""
    return subprocess.run(
        [bin_folder / words[0], *words[1:]],
        cwd=folder,
        env={"PATH": os.defpath, "HOME": str(folder), "TOLLGATE_DATA": str(folder / "data")},
        capture_output=True,
        text=True,
        check=False,
    )


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_it_takes_one_name(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in names(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"tollgate"}


def test_every_shipped_file_is_in_it_and_nothing_else(wheel: Path) -> None:
    expected = {
        f"tollgate/{path}"
        for path in checkout_files()
        if path.startswith(("actors/", "serve/", "configs/"))
    } | {f"tollgate/{name}" for name in ("__init__.py", "py.typed")}
    assert {name for name in names(wheel) if name.startswith("tollgate/")} == expected


def test_it_comes_from_nowhere_else(bin_folder: Path, tmp_path: Path) -> None:
    done = run(bin_folder, tmp_path, "python", "-c", "import tollgate; print(tollgate.__file__)")
    assert Path(done.stdout.strip()).is_relative_to(bin_folder.parent), done.stderr


@pytest.mark.parametrize("words", ["settings", "explain edge path=/limited", "catalog rules R01"])
def test_commands_work_on_the_shipped_files(bin_folder: Path, tmp_path: Path, words: str) -> None:
    done = run(bin_folder, tmp_path, "tollgate", *words.split())
    assert (done.returncode, done.stderr) == (0, "")


def test_the_sample_rules_are_good(bin_folder: Path, tmp_path: Path) -> None:
    described = run(bin_folder, tmp_path, "tollgate", "settings").stdout.splitlines()
    (root,) = (line.split()[1] for line in described if line.startswith("RUNTIME_ROOT "))
    assert Path(root).is_relative_to(bin_folder.parent)
    done = run(bin_folder, tmp_path, "tollgate", "check-config", f"{root}/configs/ratelimit")
    assert done.stdout.splitlines()[-1] == "all rate limit configs ok"
    assert (done.returncode, done.stderr) == (0, "")


def test_a_fresh_ledger_is_made_and_checked(bin_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    books = tmp_path / "data/payments/ledger.sqlite"
    program = "import asyncio, sys; from tollgate.actors.ledger.storage.migration import upgrade;"
    program += "asyncio.run(upgrade(sys.argv[1]))"
    made = run(bin_folder, tmp_path, "python", "-c", program, f"sqlite:///{books}")
    assert (made.returncode, made.stderr) == (0, "")
    checked = run(bin_folder, tmp_path, "tollgate", "ledger", "verify")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_catalog_is_validated(bin_folder: Path, tmp_path: Path) -> None:
    (document,) = (bin_folder.parent / "lib").rglob("catalog_auth/page/example.json")
    done = run(bin_folder, tmp_path, "tollgate", "catalog", "validate", str(document))
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == ""
