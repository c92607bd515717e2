"""Storage that fails: processes that are killed, disks that are full, servers that go away."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.ledger.storage import BOOK, Book, Run, Storage, book_id, move, runner
from tollgate.actors.ledger.storage.connections import sqlite, time_bounds
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ledger.storage.migration import open_database
from tollgate.actors.ledger.storage.store import ListFilter, OutcomeUnknown, PageBounds, StorageDown

ROOT = Path(__file__).resolve().parents[3]
only_sqlite = pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
only_postgresql = pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)


@pytest.fixture
def run(ledger_url: str) -> Run:
    return runner(ledger_url)


@contextmanager
def writer(url: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.support.ledger.writer", url, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def written(storage: Storage) -> list[int]:
    """The numbers of the entries that are stored, each of them whole."""
    reads, store = await storage.reads(), await storage.store("another")
    entries = [entry async for entry in reads.entries(BOOK)]
    assert all(entry.postings == move(1) for entry in entries)
    stored = await storage.tables()
    assert len(stored["operations"]) == len(stored["entities"]) == len(entries)
    heads = await store.heads([BOOK])
    assert [head.seq for head in heads.values()] == [entry.seq for entry in entries[-1:]]
    assert await reads.balance_at(BOOK, None) == (len(entries) if entries else None)
    return [entry.seq for entry in entries]


@pytest.mark.parametrize("commits", [1, 40])
def test_what_was_acknowledged_survives_a_kill(ledger_url: str, run: Run, commits: int) -> None:
    with writer(ledger_url) as process:
        assert process.stdout is not None
        acknowledged = [int(process.stdout.readline()) for _ in range(commits)]
        process.kill()
        acknowledged += [int(line) for line in process.stdout if line.endswith("\n")]

    async def scenario(storage: Storage) -> None:
        seqs = await written(storage)
        assert seqs == list(range(1, len(seqs) + 1))
        assert acknowledged == seqs[: len(acknowledged)]
        assert len(seqs) - len(acknowledged) <= 1

    run(scenario)


@only_sqlite
def test_a_disk_that_takes_no_more_leaves_the_outcome_unknown(ledger_url: str, run: Run) -> None:
    with writer(ledger_url, str(600 * 1024)) as process:
        assert process.stdout is not None
        *lines, end, then = process.stdout.read().splitlines()
    assert end.startswith("OutcomeUnknown: shard shard: storage failed: disk I/O error")
    assert then == "then OutcomeUnknown"

    async def scenario(storage: Storage) -> None:
        seqs = await written(storage)
        assert len(seqs) > 5
        assert seqs in ([int(line) for line in lines], list(range(1, len(lines) + 2)))
        # There is room again: the next process goes on.
        store = await storage.store("shard")
        await store.append(Book(book_id(2)).commit())

    run(scenario)


@only_sqlite
def test_a_full_database_leaves_the_outcome_unknown(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sqlite.SQLITE_PRAGMAS, "max_page_count", ("120", 120))

    async def fill(storage: Storage) -> None:
        store, book = await storage.store(), Book()

        async def fill_up() -> None:
            for _ in range(1000):
                await store.append(book.commit(*move(1), entities=(book.entity("line"),)))

        with pytest.raises(OutcomeUnknown, match="database or disk is full"):
            await fill_up()
        with pytest.raises(OutcomeUnknown):
            await store.append(Book(book_id(2)).commit())
        assert await written(storage) == list(range(1, book.seq))

    run(fill)


@only_sqlite
def test_reading_goes_on_while_another_process_writes(ledger_url: str, run: Run) -> None:
    with writer(ledger_url) as process:
        assert process.stdout is not None
        lines = process.stdout

        async def scenario(storage: Storage) -> None:
            reads = await storage.reads()
            for _ in range(20):
                seq = int(await asyncio.to_thread(lines.readline))
                assert len(await reads.page("line", BOOK, PageBounds(1000), ListFilter())) >= seq

        run(scenario)


# Files and servers that are not fit for use


@pytest.mark.parametrize(
    ("pragma", "text", "wanted"),
    [("journal_mode", "DELETE", "wal"), ("synchronous", "NORMAL", 2), ("foreign_keys", "OFF", 1)],
)
@only_sqlite
def test_a_file_that_does_not_take_a_pragma_is_refused(
    ledger_url: str, monkeypatch: pytest.MonkeyPatch, pragma: str, text: str, wanted: object
) -> None:
    # What the file does instead is read back, whoever made it so.
    monkeypatch.setitem(sqlite.SQLITE_PRAGMAS, pragma, (text, wanted))
    with pytest.raises(StorageError, match=f"does not take PRAGMA {pragma}"):
        asyncio.run(open_database(ledger_url))


@pytest.mark.parametrize("content", [b"", b"no database, but a file of some length" * 100])
def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "other"
    file.write_bytes(content)
    with pytest.raises(StorageError, match=r"no tables|is not a database"):
        asyncio.run(open_database(f"sqlite:///{file}"))


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    file = tmp_path / "none.sqlite"
    with pytest.raises(StorageError, match=r"there is no such file: `tollgate up`"):
        asyncio.run(open_database(f"sqlite:///{file}"))
    assert not file.exists()


@only_postgresql
def test_a_server_that_does_not_wait_for_its_disk_is_refused(ledger_url: str) -> None:
    with pytest.raises(StorageError, match="synchronous_commit = off, so that"):
        asyncio.run(open_database(f"{ledger_url}&options=-csynchronous_commit%3Doff"))


def test_a_server_that_does_not_answer_is_said_to_be_so(tmp_path: Path) -> None:
    url = f"postgresql://tollgate:secret@/postgres?host={tmp_path}"
    with pytest.raises(StorageError, match="cannot be opened") as caught:
        asyncio.run(open_database(url))
    assert "secret" not in str(caught.value)


@only_postgresql
def test_a_connection_that_is_lost_during_a_commit_leaves_the_outcome_unknown(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        store, other, book = await storage.store(), await storage.writing(), Book()
        await store.append(book.commit(*move(1), entities=(book.entity("line"),)))
        await other.run("BEGIN; LOCK TABLE operations IN ACCESS EXCLUSIVE MODE")
        append = asyncio.create_task(
            store.append(book.commit(*move(1), entities=(book.entity("line"),)))
        )
        blocked = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while not (waiting := await other.fetch(blocked)):
            await asyncio.sleep(0)
        await other.fetch("SELECT pg_terminate_backend($1)", waiting[0])
        with pytest.raises(OutcomeUnknown, match="shard-0"):
            await append
        await other.roll_back()
        with pytest.raises(OutcomeUnknown):
            await store.append(Book(book_id(2)).commit())
        assert await written(storage) == [1]

    run(scenario)


@only_postgresql
def test_readers_that_lost_their_server_read_again_when_it_is_back(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        reads, other = await storage.reads(), await storage.writing()
        assert await reads.trial_balance() == []
        await other.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        failures = 0
        while True:
            try:
                assert await reads.trial_balance() == []
                break
            except StorageDown:
                # (the news of the end may be on its way)
                failures += 1
                assert failures < 10

    run(scenario)


@only_postgresql
def test_a_shard_that_is_frozen_in_a_commit_does_not_hold_up_its_successor(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the row of its epoch; the server takes it away, and what it wrote with it."""
    monkeypatch.setattr(time_bounds, "IDLE_IN_TRANSACTION_S", 1)

    async def scenario(storage: Storage) -> None:
        frozen, successor, book = await storage.store(), await storage.untaken(), Book()
        begun = book.commit(*move(1), entities=(book.entity("line"),))
        connection = frozen._connection
        assert connection is not None
        await connection.begin(frozen._database.begin_writing, frozen._fence.hold(), [])
        await frozen._writer.write(connection, begun)
        async with asyncio.timeout(time_bounds.LOCK_TIMEOUT_S):
            epoch = await successor.take_over("shard-0", "the next incarnation")
        assert epoch == 2
        # It thaws, and cannot write any more.
        with pytest.raises(OutcomeUnknown):
            await frozen.append(begun)
        await successor.append(begun)
        assert await written(storage) == [1]

    run(scenario)


@only_postgresql
def test_a_report_may_take_longer_than_what_callers_wait_for(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_bounds, "COMMAND_TIMEOUT_S", 0.5)

    async def scenario(storage: Storage) -> None:
        await (await storage.store()).append(Book().commit(*move(1)))
        reads, other = await storage.reads(), await storage.writing()
        await other.run("BEGIN; LOCK TABLE postings IN ACCESS EXCLUSIVE MODE")
        report = asyncio.create_task(reads.trial_balance())
        # Begun after the report, and given up before it.
        with pytest.raises(StorageDown):
            await reads.balance_at(BOOK, None)
        assert not report.done()
        await other.roll_back()
        assert await report == [("clearing", "EUR", -1), ("merchant", "EUR", 1)]

    run(scenario)
