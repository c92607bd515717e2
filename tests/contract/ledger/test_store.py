"""The ledger's storage: one suite for SQLite and PostgreSQL, both real."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.support.ledger.storage import (
    APP,
    BOOK,
    Book,
    Run,
    Storage,
    book_id,
    move,
    operation_row,
    runner,
)
from tollgate.actors.ledger.law.rows import Commit, EntityRow, KeyRow, Posting
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.shard.routing import ShardMap
from tollgate.actors.ledger.storage.store import (
    BrokenCommit,
    Fenced,
    KeyOwner,
    ListFilter,
    PageBounds,
)

ANY = ListFilter()


@pytest.fixture
def run(ledger_url: str) -> Run:
    return runner(ledger_url)


# What was written is what is read


def test_a_commit_is_read_back_whole(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        store, book = await storage.store(), Book()
        rows = (
            book.merchant(state="{}", is_test=False, public_key="pk_1"),
            book.entity(state='{"a":1}', is_test=True, is_successful=False),
            book.entity("dispute", transaction=EntityId("5" * 24)),
        )
        commit = book.commit(*move(97), entities=rows)
        await store.append(commit)
        assert await store.heads([BOOK, book_id(7)]) == {BOOK: commit.heads[0]}
        wanted = [row.id for row in rows]
        assert await store.entities([*wanted, APP]) == {row.id: row for row in rows}
        operation = commit.operations[0]
        assert await store.operations([operation.operation, "none"], []) == [operation]
        reads = await storage.reads()
        assert [entry async for entry in reads.entries(BOOK)] == commit.entries
        assert [await reads.entity(row.kind, row.id) for row in rows] == list(rows)
        assert await reads.entity("line", rows[1].id) is None
        assert await reads.merchant_by_public_key("pk_1") == rows[0]
        assert await reads.merchant_by_public_key("pk_2") is None

    run(scenario)


def test_the_last_of_several_rows_of_one_commit_holds(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        store, book = await storage.store(), Book()
        first, second = book.commit(), book.commit()
        row = book.entity(document="first")
        last = EntityRow(row.kind, row.id, row.book, "second")
        await store.append(
            Commit(
                entries=first.entries + second.entries,
                heads=first.heads + second.heads,
                entities=[row, last],
                keys=[KeyRow("d", APP, "1234", 5), KeyRow("d", APP, "1234", 5, is_deleted=True)],
            )
        )
        assert (await store.entities([row.id]))[row.id] == last
        assert (await store.heads([BOOK]))[BOOK].seq == 2
        assert await (await storage.reads()).key_owner("d") is None

    run(scenario)


def test_rows_change_and_go(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        store, reads, book = await storage.store(), await storage.reads(), Book()
        user, webhook = book.entity("user"), book.entity("webhook")
        await store.append(book.commit(entities=(book.merchant(), user, webhook)))
        member = EntityRow("membership", APP, BOOK, '{"app":1}')
        key = KeyRow("digest", APP, "1234", 5)
        await store.append(Commit(entities=[member], keys=[key]))
        assert await reads.membership(BOOK, APP) is not None
        assert await reads.page("membership", BOOK, PageBounds(9), ANY) == ['{"app":1}']
        assert await reads.key_owner("digest") == KeyOwner(APP, "1234", "digest")
        # A membership has its app's id, and is no entity by it.
        assert await store.entities([APP]) == {}
        gone = [
            EntityRow(row.kind, row.id, row.book, "", is_deleted=True) for row in (user, member)
        ]
        changed = EntityRow("webhook", webhook.id, BOOK, "changed")
        await store.append(
            Commit(entities=[*gone, changed], keys=[KeyRow("digest", APP, "1234", 5, True)])
        )
        assert await reads.membership(BOOK, APP) is None
        assert await reads.key_owner("digest") is None
        assert await store.entities([user.id, webhook.id]) == {webhook.id: changed}
        assert await reads.page("user", BOOK, PageBounds(9), ANY) == []

    run(scenario)


def test_entries_come_in_order_in_pieces_of_one_book_or_of_all(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        store, reads = await storage.store(), await storage.reads()
        books = [Book(book_id(number)) for number in (1, 2, 3)]
        written = {}
        for book in books:
            commits = [book.commit(*move(5), count=count) for count in (1, 700, 2)]
            for commit in commits:
                await store.append(commit)
            written[book.id] = [entry for commit in commits for entry in commit.entries]
        second = written[books[1].id]
        assert [entry async for entry in reads.entries(books[1].id)] == second
        assert [entry async for entry in reads.entries(books[1].id, 650)] == second[650:]
        assert [entry async for entry in reads.entries(books[1].id, 703)] == []
        everything = [entry for entries in written.values() for entry in entries]
        assert [entry async for entry in reads.entries(None)] == everything

    run(scenario)


# Everything or nothing


@pytest.mark.parametrize("bad", ["operation", "key", "posting", "number", "text", "public key"])
def test_a_commit_with_one_bad_row_leaves_no_trace(run: Run, bad: str) -> None:
    async def scenario(storage: Storage) -> None:
        store, book = await storage.store(), Book()
        await store.append(
            book.commit(*move(5), entities=(book.merchant(is_test=True, public_key="pk"),))
        )
        await store.append(Commit(operations=[operation_row(BOOK, "one", 5, "key")]))
        before = await storage.tables()
        commit = book.commit(*move(9), entities=(book.entity(),))
        commit.keys.append(KeyRow("d", APP, "1234", 5))
        if bad == "operation":
            commit.operations.append(operation_row(BOOK, "one", 6))
        elif bad == "key":
            commit.operations.append(operation_row(BOOK, "two", 6, "key"))
        elif bad == "posting":
            nowhere: Any = None
            leg = Posting("merchant", nowhere, 1)
            commit.entries[0] = replace(commit.entries[0], postings=(leg,))
        elif bad == "number":
            commit.entries[0] = replace(commit.entries[0], postings=move(2**70))
        elif bad == "text":
            commit.entries[0] = replace(commit.entries[0], event="\ud800")
        else:
            commit.entities.append(book.entity("merchant", is_test=True, public_key="pk"))
        with pytest.raises(BrokenCommit):
            await store.append(commit)
        assert await storage.tables() == before
        # It was the commit that was broken, and not the store.
        sound = Book(book_id(2)).commit()
        await store.append(sound)
        assert await store.heads([book_id(2)]) == {book_id(2): sound.heads[0]}

    run(scenario)


def test_readers_see_whole_commits_and_all_that_was_acknowledged(run: Run) -> None:
    commits = 60

    async def scenario(storage: Storage) -> None:
        store, reads, book = await storage.store(), await storage.reads(), Book()
        acknowledged = 0

        async def write() -> None:
            nonlocal acknowledged
            for _ in range(commits):
                pair = tuple(book.entity("line") for _ in range(2))
                await store.append(book.commit(*move(1), entities=pair))
                acknowledged += 1

        async def read() -> int:
            seen = 0
            while seen < 2 * commits:
                floor = acknowledged
                lines = await reads.page("line", BOOK, PageBounds(1000), ANY)
                assert len(lines) % 2 == 0
                assert len(lines) >= max(seen, 2 * floor)
                seen = len(lines)
                balance = await reads.balance_at(BOOK, None)
                assert balance is None or balance >= floor
            return seen

        results = await asyncio.gather(write(), *(read() for _ in range(4)))
        assert results[1:] == [2 * commits] * 4

    run(scenario)


# Fencing


def test_epochs_rise_shard_by_shard(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        stores = [await storage.untaken() for _ in range(3)]
        assert [await store.take_over("a", f"i{nr}") for nr, store in enumerate(stores)] == [
            1,
            2,
            3,
        ]
        assert await (await storage.untaken()).take_over("b", "i") == 1
        assert ("a", 3, "i2") in (await storage.tables())["owners"]

    run(scenario)


def test_shards_of_another_number_can_neither_write_nor_answer(run: Run) -> None:
    """Their books belong to other shards now, which know nothing of theirs."""

    async def scenario(storage: Storage) -> None:
        older = [await storage.untaken() for _ in range(2)]
        newer = [await storage.untaken() for _ in range(2)]
        books = [Book(book_id(number)) for number in range(2)]
        for stores, count in ((older, 12), (newer, 2)):
            for number, store in enumerate(stores):
                await store.take_over(ShardMap(count).name(number), f"{number} of {count}")
            for store, book in zip(stores, books, strict=True):
                await store.append(book.commit())
                await store.check_epoch()
        for store in older:
            with pytest.raises(Fenced):
                await store.check_epoch()
            with pytest.raises(Fenced):
                await store.append(Book(book_id(3)).commit())

    run(scenario)


def test_the_older_incarnation_can_neither_write_nor_answer(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        older, book = await storage.store(), Book()
        await older.append(book.commit())
        await older.check_epoch()
        newer = await storage.store()
        await newer.check_epoch()
        before = await storage.tables()
        for _ in range(2):
            with pytest.raises(Fenced, match="shard-0"):
                await older.append(Book(book_id(2)).commit())
        with pytest.raises(Fenced, match="epoch 2"):
            await older.check_epoch()
        assert await storage.tables() == before
        await newer.append(book.commit())
        assert (await newer.heads([BOOK]))[BOOK].seq == 2

    run(scenario)


def test_two_shards_cannot_write_the_same_entry(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        one, other = await storage.store("a"), await storage.store("b")
        await one.append(Book().commit(*move(1), count=2))
        before = await storage.tables()
        late = Book()
        late.seq = 1
        with pytest.raises(Fenced, match="another incarnation has written"):
            await other.append(late.commit(*move(2), entities=(late.entity(),)))
        assert await storage.tables() == before
        with pytest.raises(Fenced):
            await other.append(Book(book_id(2)).commit())

    run(scenario)


def test_after_a_take_over_nothing_of_the_older_one_is_written(run: Run) -> None:
    """Take-overs fall between, before and into commits; each winner writes its name."""
    rounds = 12

    async def scenario(storage: Storage) -> None:
        stores = [await storage.untaken() for _ in range(rounds)]
        acknowledged: list[tuple[int, str]] = []

        async def write(epoch: int) -> None:
            store, reads = stores[epoch - 1], await storage.reads()
            assert await store.take_over("shard", f"i{epoch}") == epoch
            seq = max([entry.seq async for entry in reads.entries(BOOK)], default=0)
            while True:
                seq += 1
                book = Book(seq=seq - 1)
                book.hash = f"epoch {epoch}"
                commit = book.commit()
                await store.append(commit)
                acknowledged.append((seq, commit.entries[0].hash))

        async def until_fenced(epoch: int) -> None:
            with pytest.raises(Fenced):
                await write(epoch)

        last = asyncio.create_task(until_fenced(1))
        for epoch in range(2, rounds + 1):
            written = len(acknowledged)
            while len(acknowledged) < written + 3:
                await asyncio.sleep(0)
            following = asyncio.create_task(until_fenced(epoch))
            await last
            last = following
        await (await storage.untaken()).take_over("shard", "the end")
        await last
        reads = await storage.reads()
        stored = [(entry.seq, entry.hash) async for entry in reads.entries(BOOK)]
        assert [seq for seq, _ in stored] == list(range(1, len(stored) + 1))
        # One commit was on its way at each take-over: it may be there without a word.
        assert set(acknowledged) <= set(stored)
        assert len(stored) - len(acknowledged) <= rounds

    run(scenario)


@pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)
def test_a_take_over_waits_for_the_commit_that_has_checked_its_epoch(run: Run) -> None:
    """On SQLite, writing itself is locked; a server holds the row of the epoch."""

    async def scenario(storage: Storage) -> None:
        older, newer = await storage.store(), await storage.untaken()
        other = await storage.writing()
        await other.run("BEGIN; LOCK TABLE operations IN ACCESS EXCLUSIVE MODE")

        async def until_waiting(count: int, task: asyncio.Task[Any]) -> None:
            blocked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            while len(await other.fetch(blocked)) < count and not task.done():
                # (connections that came since are not in this transaction's list otherwise)
                await other.fetch("SELECT pg_stat_clear_snapshot()")

        append = asyncio.create_task(older.append(Book().commit()))
        await until_waiting(1, append)
        take_over = asyncio.create_task(newer.take_over("shard-0", "newer"))
        await until_waiting(2, take_over)
        assert not take_over.done()
        await other.roll_back()
        await append
        assert await take_over == 2
        assert (await newer.heads([BOOK]))[BOOK].seq == 1

    run(scenario)
