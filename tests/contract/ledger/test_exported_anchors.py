"""Anchors kept outside: what they find though every hash in the books fits (F7)."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.ledger.forgery import Change, forge
from tests.support.ledger.storage import Storage, emptied, runner
from tests.support.ledger.stored_story import long_story, story, write
from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.proof.anchor_export import export_anchors
from tollgate.actors.ledger.proof.anchor_file import anchor_files, public_key_of
from tollgate.actors.ledger.proof.anchor_series import AnchorSeries
from tollgate.actors.ledger.proof.anchors import Anchor, anchor_day, end_of, kept_anchors
from tollgate.actors.ledger.proof.findings import VerificationReport
from tollgate.actors.ledger.proof.verification import verify_all
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ledger.storage.migration import open_database

KEY, ANOTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
# The story is told on this day; nothing happens later.
DAY = date(2026, 1, 1)
DAY_MS = 86_400_000
SETTLED_MS = end_of(DAY) + 600_000
BOOK = story()[-1].entries[0].book
LAST = max(entry.seq for commit in story() for entry in commit.entries if entry.book == BOOK)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Books with a story in them."""
    return told(tmp_path / "ledger.sqlite")


def told(file: Path) -> str:
    url = emptied(f"sqlite:///{file}")
    runner(url)(_tell)
    return url


async def _tell(storage: Storage) -> None:
    await write(await storage.store(), story())


def exported(
    url: str, folder: Path, *, days: int = 1, first: int = 0, key: Ed25519PrivateKey = KEY
) -> list[Path]:
    """Written on one day after the other, as Tollgate does."""

    async def export() -> list[Path]:
        database = await open_database(url)
        try:
            return [
                file
                for day in range(first, days)
                for file in await export_anchors(database, folder, key, SETTLED_MS + day * DAY_MS)
            ]
        finally:
            await database.close()

    return asyncio.run(export())


def verified(
    url: str,
    folder: Path,
    *,
    days: int = 1,
    key: Ed25519PrivateKey = KEY,
    since: date | None = None,
) -> VerificationReport:
    now_ms = SETTLED_MS + (days - 1) * DAY_MS
    series = AnchorSeries(folder, frozenset({public_key_of(key)}), now_ms, since)

    async def verify() -> VerificationReport:
        database = await open_database(url)
        try:
            return await verify_all(database, lambda *_: None, now_ms, series)
        finally:
            await database.close()

    return asyncio.run(verify())


def forged(url: str, tmp_path: Path, change: Change) -> str:
    """Books that were changed, with anchors of their own, which pass without those kept outside."""
    target = forge(url, f"sqlite:///{tmp_path}/forged.sqlite", change)

    async def anchor_anew() -> VerificationReport:
        real, false = await open_database(url), await open_database(target)
        try:
            async with real.report() as connection:
                kept = await kept_anchors(connection, real.dialect)
            for each in kept:
                await anchor_day(false, date.fromisoformat(each.day), SETTLED_MS + 9 * DAY_MS)
            return await verify_all(false, lambda *_: None, SETTLED_MS)
        finally:
            await real.close()
            await false.close()

    assert asyncio.run(anchor_anew()).findings == ()
    return target


def test_sound_books_agree_with_their_anchors(url: str, tmp_path: Path) -> None:
    files = exported(url, tmp_path / "kept", days=3)
    assert [file.name for file in files] == [
        "anchor-2026-01-01.ndjson",
        "anchor-2026-01-02.ndjson",
        "anchor-2026-01-03.ndjson",
    ]
    assert exported(url, tmp_path / "kept", days=3) == []
    assert verified(url, tmp_path / "kept", days=3).findings == ()
    # All books' heads are in the first, and none that did not move in the next.
    heads = [sum("head" in json.loads(line) for line in file.open()) for file in files]
    assert heads == [3, 0, 0]


def test_a_series_that_was_begun_anew_in_an_emptied_folder_is_told(
    url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    for file in exported(url, folder, days=2):
        file.unlink()
    exported(url, folder, first=2, days=4)
    report = verified(url, folder, days=4)
    assert (report.findings, report.anchored) == ((), ("2026-01-03", "2026-01-04"))
    assert verified(url, folder, days=4, since=date(2026, 1, 3)).findings == ()
    (finding,) = verified(url, folder, days=4, since=date(2026, 1, 1)).findings
    assert "begins with anchor-2026-01-03.ndjson, and has had 2026-01-01" in finding


def test_days_without_tollgate_are_written_when_it_runs_again(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    exported(url, folder)

    assert len(exported(url, folder, first=4, days=5)) == 4
    assert len(anchor_files(folder)) == 5
    assert verified(url, folder, days=5).findings == ()


def test_who_writes_a_day_is_of_no_matter(url: str, tmp_path: Path) -> None:
    """Of two processes that write at once, both make the same bytes, and one file is there."""
    one = exported(url, tmp_path / "one", days=2)
    other = exported(url, tmp_path / "other", days=2)
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in other]


def test_a_book_that_was_written_anew_is_found(url: str, tmp_path: Path) -> None:
    exported(url, tmp_path / "kept", days=2)
    false = forged(url, tmp_path, _from_elsewhere)
    report = verified(false, tmp_path / "kept", days=2)
    first, *others = report.findings
    assert first.startswith(f"entry {LAST} of book {BOOK}: its hash is ")
    assert first.endswith("when 2026-01-01 was anchored: the book was written anew since")
    # The table's own anchors, made anew with the book, betray it as well.
    rows = [line for line in others if line.startswith("table anchors: the row of 2026-01-0")]
    assert len(rows) == 2
    assert len([line for line in others if "the journal gives" in line]) == 2


def _from_elsewhere(entry: Entry) -> Entry:
    if entry.book != BOOK:
        return entry
    return replace(entry, origin=entry.origin.replace("192.0.2.1", "192.0.2.9"))


def test_a_tail_that_was_cut_off_is_found(url: str, tmp_path: Path) -> None:
    exported(url, tmp_path / "kept")
    false = forged(url, tmp_path, lambda e: None if (e.book, e.seq) == (BOOK, LAST) else e)
    report = verified(false, tmp_path / "kept")
    assert (
        f"book {BOOK}: had entry {LAST} when 2026-01-01 was anchored, and now entry {LAST - 1} is "
        "its last one before that: its tail was cut off"
    ) in report.findings


def test_a_book_that_is_gone_is_found(url: str, tmp_path: Path) -> None:
    exported(url, tmp_path / "kept")
    false = forged(url, tmp_path, lambda entry: None if entry.book == BOOK else entry)
    report = verified(false, tmp_path / "kept")
    assert any(f"book {BOOK}: had entry {LAST}" in line for line in report.findings)
    assert any("nothing is left of it" in line for line in report.findings)


def test_entries_that_were_added_to_an_old_day_are_found(tmp_path: Path) -> None:
    """The heads of that day are there still, but they were the last ones."""
    url = emptied(f"sqlite:///{tmp_path}/ledger.sqlite")
    longer = long_story(3)

    async def tell(storage: Storage) -> None:
        await write(await storage.store(), longer)

    runner(url)(tell)
    book = longer[-1].entries[0].book
    last = longer[-1].entries[-1].seq
    shorter = forged(url, tmp_path, lambda e: None if (e.book, e.seq) == (book, last) else e)
    exported(shorter, tmp_path / "kept")
    report = verified(url, tmp_path / "kept")
    assert any("the journal gives" in line for line in report.findings)


def test_rows_that_were_deleted_or_changed_are_found(url: str, tmp_path: Path) -> None:
    exported(url, tmp_path / "kept", days=3)

    async def change(storage: Storage) -> None:
        writing = await storage.writing()
        await writing.run("DELETE FROM anchors WHERE day = '2026-01-01'")
        await writing.run("UPDATE anchors SET root = 'x' WHERE day = '2026-01-02'")

    runner(url)(change)
    report = verified(url, tmp_path / "kept", days=3)
    root, missing, changed = report.findings
    assert root.startswith("the anchor of 2026-01-02 is x over 3 books, the journal gives")
    assert missing.startswith("table anchors: the row of 2026-01-01 is missing, and ")
    assert "`tollgate ledger anchor --day 2026-01-01` makes it again" in missing
    assert changed.startswith("table anchors: the row of 2026-01-02 is not what its file in ")


def _delete(day: int) -> Callable[[Path], None]:
    return lambda folder: (folder / f"anchor-2026-01-{day:02}.ndjson").unlink()


def _change(folder: Path) -> None:
    file = folder / "anchor-2026-01-02.ndjson"
    file.write_text(file.read_text().replace('"books":3', '"books":2'))


def _cut(folder: Path) -> None:
    file = folder / "anchor-2026-01-02.ndjson"
    file.write_text(file.read_text().splitlines(keepends=True)[0])


def _add(folder: Path) -> None:
    with (folder / "anchor-2026-01-02.ndjson").open("a") as file:
        file.write("{}\n")


def _rename(folder: Path) -> None:
    (folder / "anchor-2026-01-04.ndjson").rename(folder / "anchor-2026-01-05.ndjson")


def _sign_with_another_key(folder: Path) -> None:
    """As somebody does who has the books and not the key; the chain of files fits again."""
    url = told(folder.parent / "again.sqlite")
    for file in anchor_files(folder):
        file.unlink()
    exported(url, folder, days=4, key=ANOTHER)


def _exchange(folder: Path) -> None:
    """Of the right key and day, and of another series: it lacks what its predecessor has."""
    (file,) = exported(told(folder.parent / "again.sqlite"), folder.parent / "o", first=1, days=2)
    file.replace(folder / file.name)


FILES = {
    "in the middle": (_delete(2), "the anchors of 2026-01-02 to 2026-01-02 are missing: they were"),
    "the first": (_delete(1), "anchor-2026-01-02.ndjson: the anchors of the days before it are mi"),
    "changed": (_change, "anchor-2026-01-02.ndjson: it was changed: its end does not fit"),
    "cut off": (_cut, "anchor-2026-01-02.ndjson: has no end: it was cut off after line 1"),
    "longer": (_add, "anchor-2026-01-02.ndjson: something was added behind its end"),
    "renamed": (_rename, "anchor-2026-01-05.ndjson: is the anchor of 2026-01-04, and was renamed"),
    "exchanged": (
        _exchange,
        "anchor-2026-01-02.ndjson: was signed after another file of 2026-01-01 than anchor-2026",
    ),
    "another key": (_sign_with_another_key, "which is not one of yours"),
}


@pytest.mark.parametrize("what", FILES)
def test_files_that_are_missing_or_changed_are_found(url: str, tmp_path: Path, what: str) -> None:
    change, finding = FILES[what]
    exported(url, tmp_path / "kept", days=4)
    change(tmp_path / "kept")
    report = verified(url, tmp_path / "kept", days=4)
    assert any(finding in line for line in report.findings), report.findings


def test_files_are_late_for_a_day_and_missing_after_two(url: str, tmp_path: Path) -> None:
    exported(url, tmp_path / "kept", days=2)
    assert verified(url, tmp_path / "kept", days=3).is_sound
    (line,) = verified(url, tmp_path / "kept", days=4).findings
    assert "ends with anchor-2026-01-02.ndjson, and the last day that is over is 2026-01-04" in line


def test_an_empty_folder_proves_nothing(url: str, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "anchor-2026-13-99.ndjson").write_text("no day")
    (line,) = verified(url, tmp_path / "kept").findings
    assert "holds no anchors: it is another folder, or all were deleted" in line


def test_a_forged_signature_is_found(url: str, tmp_path: Path) -> None:
    (file,) = exported(url, tmp_path / "kept", key=ANOTHER)
    mine, theirs = public_key_of(KEY), public_key_of(ANOTHER)
    file.write_text(file.read_text().replace(theirs, mine))
    (line,) = verified(url, tmp_path / "kept").findings
    assert "its signature is not the key's: it was forged" in line


def test_no_later_day_is_signed_on_books_that_were_changed(url: str, tmp_path: Path) -> None:
    exported(url, tmp_path / "kept")
    false = forged(url, tmp_path, _from_elsewhere)
    with pytest.raises(StorageError, match=r"anchor-2026-01-01\.ndjson: has the root .* changed"):
        exported(false, tmp_path / "kept", days=2)
    assert len(anchor_files(tmp_path / "kept")) == 1


def test_books_that_lost_the_end_of_an_anchored_day_begin_another_series(
    url: str, tmp_path: Path
) -> None:
    """As after a lost disk: the newest segment is older than the newest anchor."""
    kept, another = tmp_path / "kept", tmp_path / "another"
    exported(url, kept)
    restored = forge(
        url,
        f"sqlite:///{tmp_path}/restored.sqlite",
        lambda entry: None if (entry.book, entry.seq) == (BOOK, LAST) else entry,
    )
    for _ in range(2):
        with pytest.raises(StorageError, match=r"anchor-2026-01-01\.ndjson: has the root .* chang"):
            exported(restored, kept, first=1, days=2)

    # Nothing was written by looking at them: no day is anchored that could not be.
    async def rows() -> list[Anchor]:
        database = await open_database(restored)
        try:
            async with database.report() as connection:
                return await kept_anchors(connection, database.dialect)
        finally:
            await database.close()

    assert asyncio.run(rows()) == []
    assert [file.name for file in exported(restored, another, first=1, days=2)] == [
        "anchor-2026-01-02.ndjson"
    ]
    assert len(exported(restored, another, first=2, days=3)) == 1
    assert verified(restored, another, days=3).findings == ()
