"""Operations as stores keep them for idempotency (F5): one suite for SQLite and PostgreSQL."""

import pytest
from msgspec import structs
from sqlalchemy import insert, select

from tests.support.ledger.storage import APP, BOOK, Run, Storage, book_id, operation_row, runner
from tollgate.actors.ledger.law.outcomes import DoneKind
from tollgate.actors.ledger.law.rows import Commit
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.storage import tables


@pytest.fixture
def run(ledger_url: str) -> Run:
    return runner(ledger_url)


def test_operations_are_found_by_the_idempotency_key_of_their_app_and_book(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        store = await storage.store()
        other = EntityId("7" * 24)
        kept = [operation_row(BOOK, f"op-{key}", 5, key) for key in ("a", "b", "ключ'\"\\")]
        kept += [operation_row(BOOK, "keyless", 5), operation_row(BOOK, "keyless too", 5)]
        await store.append(Commit(operations=kept))
        assert await store.operations([], [(APP, BOOK, "b")]) == [kept[1]]
        assert await store.operations([], [(APP, BOOK, "ключ'\"\\")]) == [kept[2]]
        found = await store.operations(["op-a"], [(APP, BOOK, "a"), (APP, BOOK, "b")])
        assert sorted(row.operation for row in found) == ["op-a", "op-b"]
        nowhere = [(other, BOOK, "a"), (APP, book_id(2), "a"), (APP, BOOK, ""), (APP, BOOK, "c")]
        assert await store.operations([], nowhere) == []
        assert await store.operations([], []) == []

    run(scenario)


@pytest.mark.parametrize(
    ("number", "kind"), [(201, "MADE"), (204, "CHANGED"), (400, "ATTEMPT_FAILED")]
)
def test_what_was_stored_of_operations_keeps_its_numbers(run: Run, number: int, kind: str) -> None:
    """Rows of earlier data folders answer replays for a month after an upgrade."""

    async def scenario(storage: Storage) -> None:
        store = await storage.store()
        database = await storage.database()
        row = {"operation": "old", "book": BOOK, "app": APP, "key": "k", "fingerprint": "f"}
        row |= {"status": number, "body": b'{"a":1}', "at_ms": 7}
        async with database.writer.begin() as connection:
            await connection.execute(insert(tables.operations).values(row))
        (found,) = await store.operations(["old"], [])
        assert (found.done, found.body) == (DoneKind[kind], b'{"a":1}')
        await store.append(Commit(operations=[structs.replace(found, operation="new", key="l")]))
        async with database.reader.connect() as connection:
            stored = await connection.execute(select(tables.operations.c.status))
            assert set(stored.scalars()) == {number}

    run(scenario)
