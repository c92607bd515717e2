"""What outlasts a ledger's own word: anchors of days, checkpoints; and what is forgotten."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.ledger.storage import BOOK, Book, Run, Storage, book_id, operation_row, runner
from tests.support.ledger.stored_story import long_story, story, write
from tests.support.manual_clock import ManualClock
from tollgate.actors.ledger.book.chain import hash_of
from tollgate.actors.ledger.law.commands import CreateApp, Order, Origin
from tollgate.actors.ledger.law.outcomes import Done, Indefinite, OrderOutcome
from tollgate.actors.ledger.law.rows import Commit, Entry
from tollgate.actors.ledger.law.values import DIRECTORY, NOBODY
from tollgate.actors.ledger.proof.anchor_export import export_anchors
from tollgate.actors.ledger.proof.anchor_file import public_key_of
from tollgate.actors.ledger.proof.anchor_series import AnchorSeries
from tollgate.actors.ledger.proof.anchors import anchor_day, end_of, last_settled_day
from tollgate.actors.ledger.proof.findings import VerificationReport
from tollgate.actors.ledger.proof.recent_verification import verify_recent
from tollgate.actors.ledger.proof.verification import verify_all
from tollgate.actors.ledger.shard.pipeline import Shard
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ledger.storage.operation_expiry import (
    FORGOTTEN_PER_RUN_MS,
    KEPT_MS,
    OPERATIONS_PER_BATCH,
    forget_operations,
)
from tollgate.actors.ledger.storage.store import Fenced

DAY = date(2026, 1, 1)
DAY_MS = 86_400_000
START_MS = end_of(DAY) - DAY_MS
only_sqlite = pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)


@pytest.fixture
def run(ledger_url: str) -> Run:
    return runner(ledger_url)


def merkle(leaves: Sequence[bytes]) -> bytes:
    """The definition, as it is: split at the largest power of two below the number of leaves."""
    if not leaves:
        return sha256().digest()
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\1" + merkle(leaves[:split]) + merkle(leaves[split:])).digest()


def root_of(last: Sequence[Entry]) -> str:
    leaves = [f"{e.book}:{e.seq}:{e.hash}".encode() for e in sorted(last, key=lambda e: e.book)]
    return merkle(leaves).hex()


def days_of(book: Book, days: Sequence[int]) -> Commit:
    """An entry on each of these days."""
    commit = Commit()
    for day in days:
        book.at_ms = START_MS + day * DAY_MS + DAY_MS - 1_000
        part = book.commit()
        commit.entries.extend(part.entries)
        commit.operations.extend(part.operations)
        commit.heads[:] = part.heads
    return commit


@pytest.mark.parametrize("books", [0, 1, 2, 3, 7, 8, 13])
def test_an_anchor_is_the_root_over_the_last_entries_of_all_books(run: Run, books: int) -> None:
    async def scenario(storage: Storage) -> None:
        store, last = await storage.store(), []
        for number in range(1, books + 1):
            # The first ones begin on the first day, the others later.
            days = [0, 1, 3] if number % 3 else [2]
            commit = days_of(Book(book_id(number)), days)
            await store.append(commit)
            by_then = [entry for entry in commit.entries if entry.at_ms < end_of(date(2026, 1, 2))]
            last += by_then[-1:]
        made = await anchor_day(await storage.database(), date(2026, 1, 2), START_MS + 9 * DAY_MS)
        assert (made.day, made.at_ms) == ("2026-01-02", START_MS + 2 * DAY_MS)
        assert (made.books, made.root) == (len(last), root_of(last))

    run(scenario)


def test_an_anchor_stays_what_it_is(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        store, database, book = await storage.store(), await storage.database(), Book()
        await store.append(days_of(book, [0, 1]))
        now_ms = START_MS + 5 * DAY_MS
        first = await anchor_day(database, DAY, now_ms)
        await store.append(days_of(book, [2, 3]))
        assert await anchor_day(database, DAY, now_ms) == first
        assert await anchor_day(database, date(2026, 1, 2), now_ms) != first
        writing = await storage.writing()
        await writing.run("UPDATE entries SET hash = 'another' WHERE seq = 1")
        with pytest.raises(StorageError, match=r"2026-01-01: the anchor was .* it was changed"):
            await anchor_day(database, DAY, now_ms)

    run(scenario)


def test_a_clock_that_is_set_back_does_not_reach_into_an_anchored_day(
    run: Run, tmp_path: Path
) -> None:
    key = Ed25519PrivateKey.generate()
    settled_ms = end_of(DAY) + 600_000

    async def scenario(storage: Storage) -> None:
        database, clock = await storage.database(), ManualClock(START_MS / 1000)
        ends: list[BaseException] = []

        async def shard() -> Shard:
            return Shard(await storage.store(), clock, ends.append)

        async def outcome(shard: Shard, name: str) -> OrderOutcome:
            command = CreateApp(name, name * 64, name * 4)
            order = Order(name * 32, DIRECTORY, command, Origin(NOBODY, "", "", ""), 10_000)
            (told,) = await shard.execute([order])
            return told

        async def export(days: int) -> int:
            now_ms = settled_ms + days * DAY_MS
            return len(await export_anchors(database, tmp_path / "kept", key, now_ms))

        first = await shard()
        assert isinstance(await outcome(first, "a"), Done)
        assert await export(0) == 1
        clock.advance(DAY_MS / 2000)
        assert isinstance(await outcome(first, "b"), Indefinite)
        assert [type(end) for end in ends] == [Fenced]
        assert isinstance(await outcome(await shard(), "c"), Done)

        assert (await export(1), await export(2)) == (1, 1)
        series = AnchorSeries(
            tmp_path / "kept", frozenset({public_key_of(key)}), settled_ms + 2 * DAY_MS
        )
        assert (await verify_all(database, lambda *_: None, series.now_ms, series)).findings == ()

    run(scenario)


@only_sqlite
def test_a_day_is_anchored_when_all_of_it_has_been_written(run: Run) -> None:
    midnight_ms = end_of(DAY)
    assert last_settled_day(midnight_ms + 600_000) == DAY
    assert last_settled_day(midnight_ms + 599_999) == date(2025, 12, 31)
    assert (
        datetime.fromtimestamp(midnight_ms / 1000, tz=UTC).isoformat().startswith("2026-01-02T00")
    )

    async def scenario(storage: Storage) -> None:
        with pytest.raises(StorageError, match="2026-01-01: the day is not over"):
            await anchor_day(await storage.database(), DAY, midnight_ms)

    run(scenario)


def test_verification_finds_the_anchors_in_the_journal(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), story())
        database = await storage.database()
        # The story is told on the first day of the year.
        for day in (date(2025, 12, 31), DAY, date(2026, 1, 2)):
            await anchor_day(database, day, START_MS + 9 * DAY_MS)
        assert (await verify_all(database, lambda *_: None, START_MS)).is_sound
        writing = await storage.writing()
        await writing.run("UPDATE anchors SET books = 2 WHERE day = '2026-01-02'")
        report = await verify_all(database, lambda *_: None, START_MS)
        assert [line[:24] for line in report.findings] == ["the anchor of 2026-01-02"]

    run(scenario)


# Verification of what is recent


async def recent(storage: Storage) -> VerificationReport:
    return await verify_recent(await storage.database(), lambda *_: None)


def test_recent_entries_are_sound(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        assert await recent(storage) == VerificationReport(0, 0, (), (), 0)
        await write(await storage.store(), story())
        report = await recent(storage)
        assert report.findings == ()
        full = await verify_all(await storage.database(), lambda *_: None, START_MS)
        assert report == full

    run(scenario)


@only_sqlite
def test_a_book_is_verified_from_its_newest_sound_checkpoint_on(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        commits = long_story(2_100)
        await write(await storage.store(), commits)
        entries = sum(len(commit.entries) for commit in commits)
        writing = await storage.writing()
        (_, first), (book, second) = await writing.fetch(
            "SELECT book, seq FROM checkpoints ORDER BY seq"
        )
        of_book = max(entry.seq for commit in commits for entry in commit.entries)
        of_others = entries - of_book
        assert (await recent(storage)).entries == of_others + of_book - second
        # What is old is not looked at, ...
        await writing.run("UPDATE entries SET origin = '{}' WHERE seq = 900")
        assert (await recent(storage)).is_sound
        # ... nor is a checkpoint relied on that was changed.
        await writing.run(f"UPDATE checkpoints SET balances = '[]' WHERE seq = {second}")
        report = await recent(storage)
        assert report.entries == of_others + of_book - first
        assert report.findings == (
            f"the checkpoint at entry {second} of book {book} is not as it was written (F6)",
        )

    run(scenario)


CHANGES = {
    "UPDATE entries SET event = '{}' WHERE seq = 5": "its hash is",
    "DELETE FROM entries WHERE seq = 5": "found after entry 4",
    "UPDATE entries SET at_ms = 1 WHERE seq = 5": "its time 1 is not after",
    "UPDATE postings SET amount = amount + 1 WHERE leg = 0": "its hash is",
    "UPDATE heads SET seq = seq + 1": "its head says entry",
}


@pytest.mark.parametrize(("statement", "finding"), CHANGES.items())
@only_sqlite
def test_a_recent_change_is_found(run: Run, statement: str, finding: str) -> None:
    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), story())
        await (await storage.writing()).run(statement)
        assert any(finding in line for line in (await recent(storage)).findings)

    run(scenario)


@only_sqlite
def test_entries_that_create_money_are_found_though_their_hashes_are_right(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        store, writing = await storage.store(), await storage.writing()
        commits = long_story(1)
        await write(store, commits)
        book = commits[-1].entries[0].book
        reads = await storage.reads()
        entries = [entry async for entry in reads.entries(book)]
        last = next(entry for entry in entries if entry.postings)
        assert last == entries[2], "the capture"
        legs = (replace(last.postings[0], amount=last.postings[0].amount + 1), *last.postings[1:])
        forged = replace(last, postings=legs)
        await writing.run("UPDATE postings SET amount = amount + 1 WHERE leg = 0")
        hash_ = hash_of(entries[1].hash, forged)
        await writing.run(f"UPDATE entries SET hash = '{hash_}' WHERE seq = 3 AND book = '{book}'")
        report = await recent(storage)
        assert f"entry 3 of book {book}: its postings do not sum up to zero (M4)" in report.findings

    run(scenario)


# What is forgotten


def test_operations_are_forgotten_when_nobody_may_ask_for_them_any_more(run: Run) -> None:
    assert KEPT_MS - FORGOTTEN_PER_RUN_MS >= 31 * DAY_MS

    async def scenario(storage: Storage) -> None:
        store, database = await storage.store(), await storage.database()
        count = 2 * OPERATIONS_PER_BATCH + 7
        old = [operation_row(BOOK, f"old-{nr}", START_MS - nr - 1) for nr in range(count)]
        young = [operation_row(BOOK, f"young-{nr}", START_MS + nr, f"key-{nr}") for nr in range(9)]
        await store.append(Commit(operations=[*old, *young]))
        newest = Book(at_ms=START_MS + KEPT_MS - 10).commit()
        await store.append(newest)
        assert await forget_operations(database, START_MS + KEPT_MS) == count
        assert await forget_operations(database, START_MS + KEPT_MS) == 0
        kept = [row.operation for row in [*old, *young, *newest.operations]]
        assert len(await store.operations(kept, [])) == 10

    run(scenario)


def test_a_clock_that_is_ahead_forgets_no_operation_that_is_young_by_the_journal(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        store, database = await storage.store(), await storage.database()
        book = Book(at_ms=START_MS)
        commits = [book.commit(), book.commit()]
        for commit in commits:
            await store.append(commit)
        for days in (40, 400):
            assert await forget_operations(database, START_MS + days * DAY_MS) == 0
        made = [row.operation for commit in commits for row in commit.operations]
        assert len(await store.operations(made, [])) == 2

    run(scenario)


def test_a_clock_that_was_ahead_for_an_entry_too_loses_a_day_at_most(run: Run) -> None:
    """Of 32 days, so that those which are promised are there still."""

    async def scenario(storage: Storage) -> None:
        store, database = await storage.store(), await storage.database()
        days = [Book(at_ms=START_MS + day * DAY_MS) for day in range(32)]
        for number, book in enumerate(days):
            book.id = book_id(number + 1)
            await store.append(book.commit())
        ahead = Book(book_id(99), at_ms=START_MS + 80 * DAY_MS)
        await store.append(ahead.commit())
        assert await forget_operations(database, START_MS + 80 * DAY_MS) == 1
        assert await forget_operations(database, START_MS + 31 * DAY_MS) == 0

    run(scenario)
