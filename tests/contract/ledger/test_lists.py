"""Lists of the ledger's storage against a model in plain Python (part A, Lists; L1 to L4)."""

import asyncio
import random
import re
from collections.abc import Iterator

import pytest

from tests.support.ledger.storage import BOOK, Run, Storage, book_id, runner
from tollgate.actors.ledger.law.rows import Commit, EntityRow
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.storage.connections.statements import QueryStatement
from tollgate.actors.ledger.storage.reading.lists import Shape, apps_of, entities_of, merchants_of
from tollgate.actors.ledger.storage.store import ListFilter, PageBounds, ReadStore

SEED = 20_260_101
KINDS = ("transaction", "dispute")
TRANSACTIONS = tuple(EntityId(f"{number:024x}") for number in (1, 2, 3))
FLAGS = (None, True, False)
FILTERS = [
    ListFilter(transaction, is_test, is_successful)
    for transaction in (None, *TRANSACTIONS)
    for is_test in FLAGS
    for is_successful in FLAGS
]


@pytest.fixture
def run(ledger_url: str) -> Run:
    return runner(ledger_url)


def rows_of(book: BookId, chance: random.Random, count: int) -> Iterator[EntityRow]:
    """Entities of every mix of kind and marks, with gaps between their ids."""
    number = 0
    for _ in range(count):
        number += chance.randint(1, 3)
        is_test = chance.choice(FLAGS)
        id_ = EntityId(f"{0x68000000 + number // 8:08x}{book[8:18]}{number:06x}")
        yield EntityRow(
            kind=chance.choice(KINDS),
            id=id_,
            book=book,
            document=f'{{"id":"{id_}"}}',
            transaction=chance.choice((None, *TRANSACTIONS)),
            is_test=is_test,
            is_successful=None if is_test is None else chance.choice(FLAGS),
        )


def matches(row: EntityRow, wanted: ListFilter) -> bool:
    return (
        wanted.transaction in (None, row.transaction)
        and wanted.is_test in (None, row.is_test)
        and wanted.is_successful in (None, row.is_successful)
    )


def model_page(rows: list[EntityRow], kind: str, page: PageBounds, wanted: ListFilter) -> list[str]:
    found = [row for row in rows if row.kind == kind and matches(row, wanted)]
    found = [row for row in found if page.before is None or row.id < page.before]
    found = [row for row in found if page.after is None or row.id > page.after]
    found.sort(key=lambda row: row.id, reverse=not page.is_ascending)
    return [row.document for row in found[: page.limit]]


def bounds(rows: list[EntityRow], chance: random.Random) -> EntityId | None:
    """An id that is there, one that is not (as clients make from a date), or none."""
    existing = chance.choice(rows).id
    return chance.choice([None, existing, EntityId(existing[:8] + "0" * 16)])


def test_every_page_of_every_filter_is_the_models(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        chance = random.Random(SEED)
        books = {book: list(rows_of(book, chance, 150)) for book in (BOOK, book_id(2))}
        store, reads = await storage.store(), await storage.reads()
        await store.append(Commit(entities=[row for rows in books.values() for row in rows]))
        for wanted in FILTERS:
            for _ in range(12):
                book = chance.choice(list(books))
                page = PageBounds(
                    limit=chance.choice((1, 2, 7, 1000)),
                    before=bounds(books[book], chance),
                    after=bounds(books[book], chance),
                    is_ascending=chance.choice((True, False)),
                )
                kind = chance.choice(KINDS)
                expected = model_page(books[book], kind, page, wanted)
                assert await reads.page(kind, book, page, wanted) == expected, (page, wanted)

    run(scenario)


async def walk(
    reads: ReadStore, wanted: ListFilter, limit: int, *, is_ascending: bool
) -> list[str]:
    """As a client pages: with the last id of each page, until one is empty."""
    found: list[str] = []
    last: EntityId | None = None
    while True:
        page = (
            PageBounds(limit, after=last, is_ascending=True)
            if is_ascending
            else PageBounds(limit, before=last)
        )
        documents = await reads.page("transaction", BOOK, page, wanted)
        if not documents:
            return found
        found += documents
        last = EntityId(documents[-1].split('"')[3])


def test_a_walk_forwards_is_the_walk_backwards_turned_round(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        rows = list(rows_of(BOOK, random.Random(SEED), 200))
        store, reads = await storage.store(), await storage.reads()
        await store.append(Commit(entities=rows))
        for wanted in FILTERS:
            for limit in (1, 7):
                down = await walk(reads, wanted, limit, is_ascending=False)
                up = await walk(reads, wanted, limit, is_ascending=True)
                assert down == up[::-1]
                assert set(down) == {
                    row.document
                    for row in rows
                    if row.kind == "transaction" and matches(row, wanted)
                }

    run(scenario)


def test_a_walk_finds_all_that_was_there_once_whatever_comes_meanwhile(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        everything = [
            row for row in rows_of(BOOK, random.Random(SEED), 600) if row.kind == "transaction"
        ]
        there, coming = everything[:200], everything[200:]
        store, reads = await storage.store(), await storage.reads()
        await store.append(Commit(entities=there))

        async def insert() -> None:
            for row in coming:
                await store.append(Commit(entities=[row]))

        inserting = asyncio.create_task(insert())
        for wanted in (
            ListFilter(),
            ListFilter(is_successful=True),
            ListFilter(transaction=TRANSACTIONS[0]),
        ):
            found = await walk(reads, wanted, 9, is_ascending=False)
            assert len(found) == len(set(found))
            assert {row.document for row in there if matches(row, wanted)} <= set(found)
        await inserting

    run(scenario)


def test_merchants_of_an_app_and_apps_of_a_merchant(run: Run) -> None:
    apps = [EntityId(f"{number:024x}") for number in range(3)]

    async def scenario(storage: Storage) -> None:
        chance = random.Random(SEED)
        books = [book_id(number) for number in range(1, 40)]
        merchants = {
            book: EntityRow("merchant", EntityId(book), book, f"m{book}", is_test=number % 3 == 0)
            for number, book in enumerate(books)
        }
        members = [
            EntityRow("membership", app, book, f"a{app}")
            for book in books
            for app in apps
            if chance.random() < 0.6
        ]
        store, reads = await storage.store(), await storage.reads()
        await store.append(Commit(entities=[*merchants.values(), *members]))
        for app in apps:
            for is_test in FLAGS:
                for page in (
                    PageBounds(1000),
                    PageBounds(5, before=EntityId(books[30])),
                    PageBounds(5, after=EntityId(books[10]), is_ascending=True),
                    PageBounds(1000, before=EntityId(books[30]), after=EntityId(books[10])),
                ):
                    theirs = [
                        merchants[row.book]
                        for row in members
                        if row.id == app and is_test in (None, merchants[row.book].is_test)
                    ]
                    expected = model_page(theirs, "merchant", page, ListFilter())
                    assert (
                        await reads.merchants_of(app, page, ListFilter(is_test=is_test)) == expected
                    )
        for book in books:
            theirs = [row for row in members if row.book == book]
            for page in (PageBounds(2), PageBounds(9, after=apps[0], is_ascending=True)):
                expected = model_page(theirs, "membership", page, ListFilter())
                assert await reads.page("membership", book, page, ListFilter()) == expected

    run(scenario)


# Speed: what the databases do for each shape of query

SHAPES = [
    Shape.of(PageBounds(5, before, after, is_ascending), wanted)
    for before in (None, TRANSACTIONS[0])
    for after in (None, TRANSACTIONS[0])
    for is_ascending in (True, False)
    for wanted in FILTERS
]


def index_of(shape: Shape) -> str:
    if shape.has_transaction:
        return "entities_of_transaction"
    is_marked = shape.is_test is not None or shape.is_successful is not None
    return "entities_marked" if is_marked else "entities_list"


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
def test_every_list_walks_its_index_on_sqlite(run: Run) -> None:
    """No table is scanned; and nothing is sorted, but the merged stretches of an index."""

    async def scenario(storage: Storage) -> None:
        database = await storage.database()

        async def plan(query: QueryStatement) -> str:
            values = [None] * len(query.names)
            async with database.reading() as connection:
                rows = await connection.fetch(f"EXPLAIN QUERY PLAN {query.text}", values)
            return "\n".join(row[3] for row in rows)

        for shape in SHAPES:
            steps = await plan(entities_of(database.dialect, shape))
            assert steps.count("SEARCH entities USING") == steps.count(f"INDEX {index_of(shape)} ")
            assert "SCAN entities" not in steps, steps
            assert "UNION ALL" in steps or "TEMP B-TREE" not in steps, steps
            for make in (apps_of, merchants_of):
                steps = await plan(make(database.dialect, shape))
                assert "SCAN" not in steps, steps
                assert "TEMP B-TREE" not in steps, steps

    run(scenario)


INDEXES = ("entities_list", "entities_marked", "entities_of_transaction")


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)
def test_every_list_can_walk_its_index_on_postgresql(run: Run, index: str) -> None:
    """Without the other indexes, and told not to scan or sort, the server has only this one."""
    others = ", ".join(name for name in INDEXES if name != index)

    async def scenario(storage: Storage) -> None:
        database = await storage.database()
        values = dict.fromkeys(("book", "kind", "transaction", "before", "after"), "0") | {
            "limit": 5
        }
        connection = await storage.writing()
        await connection.run("BEGIN")
        await connection.run(f"DROP INDEX {others}")
        await connection.run("ALTER TABLE entities DROP CONSTRAINT entities_pk CASCADE")
        await connection.run("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        for shape in SHAPES:
            if index_of(shape) != index:
                continue
            query = entities_of(database.dialect, shape)
            rows = await connection.fetch(
                f"EXPLAIN {query.text}", [values[name] for name in query.names]
            )
            steps = "\n".join(row[0] for row in rows)
            walks = len(re.findall(r"Index Scan(?: Backward)? using", steps))
            assert walks == query.text.count("FROM entities"), steps
            assert "Seq Scan" not in steps, steps
            # (the server does not take "is null" for one value, in which ids are in order)
            assert steps.count("Sort  ") <= query.text.count("is_successful IS NULL"), steps

    run(scenario)
