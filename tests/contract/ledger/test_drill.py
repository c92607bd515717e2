"""The drill of docs/operations.md: what may happen to the books, their secret and their anchors.
Each is refused or found, and what is said tells what to do."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.ledger.forgery import Change, forge
from tests.support.ledger.storage import Storage, emptied, runner
from tests.support.ledger.stored_story import story, write
from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.storage.key_uses import SqlInstallation
from tollgate.serve.commands.ledger.command import ledger
from tollgate.serve.payments.secrets.master_secret import (
    SecretFileError,
    load_master_secret,
    open_master_secret,
)

BOOK = story()[-1].entries[0].book
LAST = story()[-1].entries[-1].seq


class Installation:
    """Books with a story in them and a mark of their secret, a backup, and anchors elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = emptied(f"sqlite:///{folder}/ledger.sqlite")
        self.secret = folder / "data" / "payments" / "secret"
        self.mark = ""
        runner(self.url)(self._begin)
        self.call("make-anchor-key", str(folder / "anchor-key"))
        self.public_key = self.call("make-anchor-key", str(folder / "key")).stdout.split()[-1]
        assert self.call("anchor", "--to", str(self.kept)).exit_code == 0
        assert self.call("backup", str(self.backup)).exit_code == 0

    async def _begin(self, storage: Storage) -> None:
        await write(await storage.store(), story())
        marks = SqlInstallation(await storage.database())
        load_master_secret(self.secret)  # (made here, as if on another node)
        self.mark = (await open_master_secret(self.secret, marks)).mark

    @property
    def kept(self) -> Path:
        """Where nobody who can write to the rest may delete or change."""
        return self.folder / "kept"

    @property
    def backup(self) -> Path:
        return self.folder / "backup"

    def call(self, *arguments: str, url: str = "") -> Result:
        environment = {
            "TOLLGATE_STORAGE_URL": url or self.url,
            "TOLLGATE_DATA": str(self.folder / "data"),
            "LEDGER_ANCHOR_KEY_FILE": str(self.folder / "key"),
        }
        return CliRunner().invoke(ledger, list(arguments), env=environment)

    def verify(self, *options: str, url: str = "") -> Result:
        """As on another machine: with the public key alone."""
        arguments = ("--anchors", str(self.kept), "--public-key", self.public_key)
        return self.call("verify", *arguments, *options, url=url)

    def forged(self, change: Change) -> str:
        """Such books, with whatever of the anchors' table can be made to fit."""
        url = forge(self.url, f"sqlite:///{self.folder}/forged.sqlite", change)
        day = max(self.kept.iterdir()).stem.removeprefix("anchor-")
        assert self.call("anchor", "--day", day, url=url).exit_code == 0
        assert self.call("verify", url=url).exit_code == 0, "its hashes fit"
        return url


@pytest.fixture
def here(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def started(here: Installation) -> None:
    """What a start does first: it opens the secret of the books."""

    async def open_it(storage: Storage) -> None:
        await open_master_secret(here.secret, SqlInstallation(await storage.database()))

    runner(here.url)(open_it)


def test_before_anything_happens_all_is_sound(here: Installation) -> None:
    started(here)
    done = here.verify()
    assert (done.exit_code, done.stdout[:14]) == (0, "sound: 3 books")
    (first,) = re.findall("anchors of (.+) to ", done.stdout)
    assert here.verify("--since", first).exit_code == 0
    done = here.verify("--since", "2001-01-01")
    assert (done.exit_code, "it was begun anew" in done.stderr) == (1, True)


def test_a_lost_secret_is_not_made_up(here: Installation) -> None:
    here.secret.unlink()
    with pytest.raises(SecretFileError, match=f"its mark is {here.mark}.: put the file back"):
        started(here)
    assert not here.secret.exists()


def test_books_are_not_restored_beside_a_wrong_secret(here: Installation) -> None:
    right = here.secret.rename(here.folder / "right")
    wrong = load_master_secret(here.secret).mark
    there = f"sqlite:///{here.folder}/there.sqlite"
    done = here.call("restore", str(here.backup), url=there)
    assert done.exit_code == 1
    assert done.stderr == (
        "tollgate: nothing was restored: these books belong to the payments secret with the mark "
        f"{here.mark}, and the file of the one here has {wrong}: put theirs in its place, from its "
        "own backup, and restore again\n"
    )
    here.secret.unlink()
    right.rename(here.secret)
    done = here.call("restore", str(here.backup), url=there)
    assert (done.exit_code, done.stderr) == (0, "")
    # What was anchored is there again, but for days since the backup.
    assert here.verify(url=there).exit_code == 0


def test_a_restore_says_which_secret_is_still_to_come(here: Installation) -> None:
    here.secret.unlink()
    there = f"sqlite:///{here.folder}/there.sqlite"
    done = here.call("restore", str(here.backup), url=there)
    assert done.exit_code == 0
    assert done.stderr == (
        f"{here.secret}: is not there: put the secret of these books in its place, whose mark is "
        f"{here.mark}, before Tollgate starts\n"
    )


def rewritten(entry: Entry) -> Entry:
    if entry.book != BOOK:
        return entry
    return replace(entry, origin=entry.origin.replace("192.0.2.1", "192.0.2.9"))


def without_its_end(entry: Entry) -> Entry | None:
    return None if (entry.book, entry.seq) == (BOOK, LAST) else entry


FORGERIES: dict[str, tuple[Change, str]] = {
    "rewritten": (rewritten, f"entry {LAST} of book {BOOK}: its hash is "),
    "cut off": (without_its_end, f"book {BOOK}: had entry {LAST} when "),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_books_whose_hashes_fit_do_not_pass(here: Installation, what: str) -> None:
    change, finding = FORGERIES[what]
    done = here.verify(url=here.forged(change))
    assert done.exit_code == 1
    assert done.stderr.startswith(finding)
    assert "docs/operations.md, When books are not sound" in done.stderr.splitlines()[-1]


def _delete_row(here: Installation) -> None:
    async def delete(storage: Storage) -> None:
        await (await storage.writing()).run("DELETE FROM anchors")

    runner(here.url)(delete)


def _delete_file(here: Installation) -> None:
    for file in here.kept.iterdir():
        file.unlink()


ANCHORS: dict[str, tuple[Callable[[Installation], None], str]] = {
    "in the table": (_delete_row, "` makes it again"),
    "in the folder": (_delete_file, "it is another folder, or all were deleted"),
}


@pytest.mark.parametrize("where", ANCHORS)
def test_an_anchor_that_was_deleted_is_missed(here: Installation, where: str) -> None:
    delete, finding = ANCHORS[where]
    delete(here)
    done = here.verify()
    assert done.exit_code == 1
    assert finding in done.stderr
    assert "docs/operations.md, When books are not sound" in done.stderr


def test_the_books_and_their_anchors_are_not_signed_anew(here: Installation) -> None:
    """Whoever has the books and the data folder, and not the key, signs with one of their own."""
    forged = here.forged(rewritten)
    _delete_file(here)
    environment = {
        "TOLLGATE_STORAGE_URL": forged,
        "TOLLGATE_DATA": str(here.folder / "data"),
        "LEDGER_ANCHOR_KEY_FILE": str(here.folder / "anchor-key"),
    }
    CliRunner().invoke(ledger, ["anchor", "--to", str(here.kept)], env=environment)
    done = here.verify(url=forged)
    assert done.exit_code == 1
    assert "which is not one of yours" in done.stderr


def test_backups_refuse_books_that_were_changed(here: Installation) -> None:
    """What came after the last anchor is held by the last segment."""
    done = here.call("backup", str(here.backup), url=here.forged(without_its_end))
    assert done.exit_code == 1
    assert f"the backup has entry {LAST} of book {BOOK}, and here it ends with" in done.stderr


def test_the_manual_has_what_findings_point_to() -> None:
    manual = (Path(__file__).parents[3] / "docs" / "operations.md").read_text(encoding="utf-8")
    assert "### When books are not sound\n" in manual
