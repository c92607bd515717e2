"""The table of entities: whose an id is, and which merchants wait, on SQLite and PostgreSQL."""

from dataclasses import replace

import pytest

from tests.support.ledger.storage import Book, Run, Storage, book_id, runner
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.storage.store import BrokenCommit, PageBounds


@pytest.fixture
def run(ledger_url: str) -> Run:
    return runner(ledger_url)


def test_two_books_do_not_share_an_id(run: Run) -> None:
    """Ids of books are drawn apart; should two be the same, the later one is not written."""

    async def scenario(storage: Storage) -> None:
        store, first, second = await storage.store(), Book(), Book(book_id(7))
        row = first.entity(document="first")
        await store.append(first.commit(entities=(row,)))
        taken = replace(row, book=second.id, document="second")
        with pytest.raises(BrokenCommit):
            await store.append(second.commit(entities=(taken,)))
        assert await store.heads([second.id]) == {}
        assert await store.entities([row.id]) == {row.id: row}
        changed = replace(row, document="changed")
        await store.append(first.commit(entities=(changed,)))
        assert await store.entities([row.id]) == {row.id: changed}

    run(scenario)


def test_only_live_merchants_that_may_not_charge_wait(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        store, reads = await storage.store(), await storage.reads()
        waits, may = '{"claim":{"canChargeCard":false}}', '{"claim":{"canChargeCard":true}}'
        for number, (document, is_test) in enumerate(
            [(waits, False), (may, False), (waits, True), (waits, False)]
        ):
            book = Book(book_id(number + 1))
            row = book.merchant(
                state="", document=document, is_test=is_test, public_key=f"pk_{number}"
            )
            await store.append(book.commit(entities=(row,)))
        assert await reads.waiting_merchants(PageBounds(10)) == [waits, waits]
        assert await reads.waiting_merchants(PageBounds(10, after=book_id(1))) == [waits]
        assert await reads.waiting_merchants(PageBounds(1)) == [waits]
        for first, count_max, count in ((1, 10, 2), (2, 10, 1), (1, 1, 1)):
            origins = await reads.waiting_origins(EntityId(book_id(first)), count_max)
            assert origins == ['{"app":""}'] * count

    run(scenario)
