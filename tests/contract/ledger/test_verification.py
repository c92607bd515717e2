"""A ledger that is verified: sound as it was written, and not when anything in it was changed."""

from dataclasses import replace

import pytest

from tests.support.ledger.storage import Run, Storage, runner
from tests.support.ledger.stored_story import line_written_twice, long_story, story, write
from tollgate.actors.ledger.book.chain import hash_of
from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.law.values import DIRECTORY
from tollgate.actors.ledger.proof.findings import VerificationReport
from tollgate.actors.ledger.proof.recent_verification import verify_recent
from tollgate.actors.ledger.proof.verification import verify_all
from tollgate.actors.ledger.storage.operation_expiry import PROMISED_MS

ENTRIES = sum(len(commit.entries) for commit in story())
NOW_MS = max(entry.at_ms for commit in story() for entry in commit.entries)
# The first merchant's.
BOOK = next(head.book for commit in story() for head in commit.heads if head.book != DIRECTORY)


@pytest.fixture
def run(ledger_url: str) -> Run:
    return runner(ledger_url)


async def verified(storage: Storage, now_ms: int = NOW_MS) -> VerificationReport:
    seen: list[tuple[int, int]] = []
    report = await verify_all(
        await storage.database(), lambda done, total: seen.append((done, total)), now_ms
    )
    assert [done for done, _ in seen[-1:]] == ([report.entries] if report.entries else [])
    return report


async def change(storage: Storage, *statements: str) -> None:
    connection = await storage.writing()
    await connection.run("BEGIN")
    for statement in statements:
        await connection.run(statement)
    await connection.run("COMMIT")


def test_empty_books_are_sound(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        report = await verified(storage)
        assert report == VerificationReport(0, 0, (), (), 0)
        assert report.is_sound

    run(scenario)


def test_a_story_is_sound(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), story())
        report = await verified(storage)
        assert report.findings == ()
        assert report.is_sound
        assert (report.books, report.entries) == (3, ENTRIES)
        assert report.totals == tuple(await (await storage.reads()).trial_balance())
        assert {account for account, _, _ in report.totals} == {
            *("clearing", "fx", "merchant", "fees", "paid_out")
        }

    run(scenario)


def test_thousands_of_entries_with_checkpoints_are_sound(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), long_story(2_100))
        assert len((await storage.tables())["checkpoints"]) == 2
        report = await verified(storage)
        assert report.findings == ()
        await change(storage, "UPDATE checkpoints SET balances = '[]' WHERE seq > 1500")
        report = await verified(storage)
        assert len(report.findings) == 1
        assert "the checkpoint at entry 2046 of book" in report.findings[0]

    run(scenario)


@pytest.mark.parametrize("payments", [0, 2_100])
def test_a_line_that_was_written_twice_is_found(run: Run, payments: int) -> None:
    """In the piece of the journal that has the first, and in a later one."""

    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), line_written_twice(payments))
        report = await verified(storage)
        (finding,) = report.findings
        assert "takes the place of what an earlier entry wrote (M1)" in finding

    run(scenario)


SOME_LINE = "(SELECT max(id) FROM entities WHERE kind = 'line')"
SOME_BOOK = "(SELECT max(book) FROM entries)"


def reply_with(before: str, after: str) -> str:
    """What the first capture was answered with, changed in one place."""
    return (
        f"UPDATE operations SET body = CAST(replace(CAST(body AS TEXT), '{before}', '{after}') "
        "AS BLOB) WHERE operation = 'operation-5'"
    )


CHANGES = {
    "an event": (
        f"UPDATE entries SET event = replace(event, '\"amount\":1000', '\"amount\":1001') "
        f"WHERE book = {SOME_BOOK} AND event LIKE '%\"amount\":1000%'",
        "its hash is",
    ),
    "who asked": (
        f"UPDATE entries SET origin = replace(origin, 'ab12', 'ab13') WHERE book = {SOME_BOOK} "
        "AND seq = 3",
        "entry 3 of book",
    ),
    "an entry is gone": (
        f"DELETE FROM entries WHERE book = {SOME_BOOK} AND seq = 4",
        "found after entry 3",
    ),
    "the last entry is gone": (
        "DELETE FROM entries WHERE (book, seq) IN (SELECT book, max(seq) FROM entries "
        f"WHERE book = {SOME_BOOK} GROUP BY book)",
        "table heads",
    ),
    "a time": (
        f"UPDATE entries SET at_ms = at_ms + 1 WHERE book = {SOME_BOOK} AND seq = 2",
        "entry 2 of book",
    ),
    "a posting": (
        f"UPDATE postings SET amount = amount + 1 WHERE book = {SOME_BOOK} AND account = 'fees'",
        "its hash is",
    ),
    "a posting is gone": (
        f"DELETE FROM postings WHERE book = {SOME_BOOK} AND account = 'fees'",
        "its hash is",
    ),
    "a posting nobody made": (
        "INSERT INTO postings "
        "SELECT book, seq, 9, account, currency, 1 FROM postings WHERE leg = 0",
        "its hash is",
    ),
    "a document": (
        f"UPDATE entities SET document = replace(document, 'balance', 'Balance') "
        f"WHERE id = {SOME_LINE}",
        "(line) differs from the journal in document",
    ),
    "what the machine goes on from": (
        "UPDATE entities SET state = replace(state, '\"refunded\":0', '\"refunded\":-9') "
        "WHERE kind = 'transaction'",
        "(transaction) differs from the journal in state",
    ),
    "a mark": (
        "UPDATE entities SET is_successful = NOT is_successful WHERE kind = 'transaction'",
        "differs from the journal in is_successful",
    ),
    "an entity is gone": (f"DELETE FROM entities WHERE id = {SOME_LINE}", "(line) is missing"),
    "an entity nobody made": (
        "INSERT INTO entities (id, kind, book, document, state) "
        f"SELECT 'ffffffffffffffffffffffff', 'line', {SOME_BOOK}, '{{}}', ''",
        "ffffffffffffffffffffffff (line) is there, and the journal knows nothing of it",
    ),
    "a head": (
        "UPDATE heads SET state = replace(state, '\"seq\"', '\"Seq\"')",
        "table heads: 000000000000000000000000 differs from the journal in state",
    ),
    "a membership": (
        f"INSERT INTO memberships SELECT 'ffffffffffffffffffffffff', {SOME_BOOK}, '', ''",
        "table memberships: ffffffffffffffffffffffff",
    ),
    "a key": (
        "UPDATE keys SET app = 'ffffffffffffffffffffffff'",
        "differs from the journal in app",
    ),
    "what became of an operation": (
        "DELETE FROM operations WHERE operation = 'operation-9'",
        "what became of its operation operation-9 is not kept",
    ),
    "the oldest operation": (
        "DELETE FROM operations WHERE at_ms = (SELECT min(at_ms) FROM operations)",
        "what became of its operation operation-1 is not kept",
    ),
    "all operations": (
        "DELETE FROM operations",
        "what became of its operation operation-1 is not kept",
    ),
    "an amount in a reply": (
        reply_with('"capturedAmount":3333', '"capturedAmount":3330'),
        f"operation operation-5 of book {BOOK}: its stored reply is not what",
    ),
    "a reply about something else": (reply_with('{"transaction":{"id"', '{"line":{"id"'), "reply"),
    "what a reply is about": (
        reply_with('{"transaction":{"id":', '{"transaction":{"di":'),
        "reply",
    ),
    "a trail in a reply": (reply_with('"trail":[', '"trail":[{},'), "its stored reply is not what"),
    "no reply any more": (
        "UPDATE operations SET body = '' WHERE operation = 'operation-5'",
        "its stored reply is not what",
    ),
    "the outcome": (
        "UPDATE operations SET status = 999 WHERE operation = 'operation-5'",
        "its stored outcome is not what",
    ),
    "whose key it was": (
        "UPDATE operations SET app = 'ffffffffffffffffffffffff' WHERE operation = 'operation-5'",
        "its stored app is not what",
    ),
    "the key itself": (
        "UPDATE operations SET key = 'another' WHERE operation = 'operation-5'",
        "its stored idempotency key is not what",
    ),
    "the time of an operation": (
        "UPDATE operations SET at_ms = at_ms + 1 WHERE operation = 'operation-5'",
        "its stored time is not what",
    ),
    "an operation nobody asked for": (
        "INSERT INTO operations SELECT 'forged', book, app, 'key', '', status, body, at_ms "
        "FROM operations WHERE operation = 'operation-5'",
        f"operation forged of book {BOOK}: has a reply, and no entry knows of it",
    ),
}


# (book, seq) of two legs that sum up to zero
STRAYS = {
    "beyond the end of the last book": (SOME_BOOK, 99_999),
    "beyond the end of another book": (f"'{DIRECTORY}'", 99_999),
    "before the first entry": (SOME_BOOK, 0),
    "in a book before all others": ("'0'", 1),
    "in a book behind all others": ("'ffffffffffffffffffffffff'", 1),
}


@pytest.mark.parametrize("where", STRAYS)
def test_postings_without_an_entry_are_found(run: Run, where: str) -> None:
    book, seq = STRAYS[where]

    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), story())
        sound = await verify_recent(await storage.database(), lambda *_: None)
        assert sound.findings == ()
        await change(
            storage,
            f"INSERT INTO postings VALUES ({book}, {seq}, 0, 'merchant', 'EUR', -100000)",
            f"INSERT INTO postings VALUES ({book}, {seq}, 1, 'paid_out', 'EUR', 100000)",
        )
        recent = await verify_recent(await storage.database(), lambda *_: None)
        for report in (await verified(storage), recent):
            (line,) = report.findings
            assert line.startswith("table postings: ")
            assert line.endswith(f" {seq} is there, and the journal has no such entry")

    run(scenario)


ON_POSTGRESQL = ("a posting", "a document", "a mark", "a key", "an entity is gone")


@pytest.mark.parametrize(
    ("ledger_url", "what"),
    [
        *(("sqlite", what) for what in CHANGES),
        *(("postgresql", what) for what in ON_POSTGRESQL),
    ],
    indirect=["ledger_url"],
)
def test_a_change_is_found(run: Run, what: str) -> None:
    statement, finding = CHANGES[what]

    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), story())
        before = await storage.tables()
        await change(storage, statement)
        assert await storage.tables() != before
        report = await verified(storage)
        assert not report.is_sound
        assert any(finding in line for line in report.findings), report.findings

    run(scenario)


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
def test_a_journal_that_was_written_anew_from_one_entry_on_is_found_by_its_tables(run: Run) -> None:
    """Every hash behind a changed entry is computed again, so that the chain holds."""

    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), story())
        reads, writing = await storage.reads(), await storage.writing()
        book = story()[-1].entries[0].book
        entries = [entry async for entry in reads.entries(book)]
        previous = "0" * 64
        await writing.run("BEGIN")
        for entry in entries:
            forged = forge(entry)
            previous = hash_of(previous, forged)
            await writing.run(
                f"UPDATE entries SET origin = '{forged.origin}', hash = '{previous}' "
                f"WHERE book = '{book}' AND seq = {entry.seq}"
            )
        await writing.run("COMMIT")
        report = await verified(storage)
        assert any(f"table heads: {book} differs" in line for line in report.findings)

    run(scenario)


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
def test_operations_that_nobody_may_ask_about_any_more_may_be_forgotten(run: Run) -> None:
    """By the clock, too: books in which nothing was written since are as sound as before."""

    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), story())
        await change(storage, "DELETE FROM operations")
        assert (await verified(storage, NOW_MS + PROMISED_MS)).findings == ()
        assert not (await verified(storage, NOW_MS + PROMISED_MS - 1)).is_sound

    run(scenario)


def forge(entry: Entry) -> Entry:
    return replace(entry, origin=entry.origin.replace("192.0.2.1", "192.0.2.9"))


@pytest.mark.parametrize(
    "statement",
    [
        # Of a release that showed one member more, and one less.
        reply_with('"currency":"JPY"', '"kind":"sale"'),
        # Of an order that found all as it should be: no entry knows of it.
        "INSERT INTO operations SELECT 'unneeded', book, app, 'key', '', 204, CAST('' AS BLOB), "
        "at_ms FROM operations WHERE operation = 'operation-5'",
    ],
)
@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
def test_replies_that_may_be_so_are_sound(run: Run, statement: str) -> None:
    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), story())
        before = await storage.tables()
        await change(storage, statement)
        assert await storage.tables() != before
        assert (await verified(storage)).findings == ()

    run(scenario)


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
def test_what_is_found_is_counted_when_there_is_too_much_to_show(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), long_story(150))
        await change(storage, "UPDATE entities SET document = '' WHERE kind = 'event'")
        report = await verified(storage)
        assert len(report.findings) == 100
        assert report.findings_count == report.entries

    run(scenario)
