"""Balances on both storages: at any time, over all books, and beyond 64 bits."""

import pytest

from tests.support.ledger.storage import BOOK, Book, Run, Storage, book_id, move, runner


@pytest.fixture
def run(ledger_url: str) -> Run:
    return runner(ledger_url)


def test_balances_at_every_time_are_the_sums_of_the_postings(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        store, reads, book = await storage.store(), await storage.reads(), Book()
        start = book.at_ms
        for _ in range(23):
            await store.append(book.commit(*move(3), count=100))
        assert len((await storage.tables())["checkpoints"]) == 2
        assert await reads.balance_at(BOOK, None) == 3 * 2300
        for seq in (0, 1, 999, 1000, 1001, 1999, 2000, 2001, 2299, 2300):
            at_ms = start + 10 * seq
            assert await reads.balance_at(BOOK, at_ms) == 3 * seq
            assert await reads.balance_at(BOOK, at_ms + 9) == 3 * seq
            assert await reads.balance_at(BOOK, at_ms - 1) == 3 * max(seq - 1, 0)
        assert await reads.balance_at(book_id(9), None) is None
        assert await reads.balance_at(book_id(9), start) is None

    run(scenario)


def test_the_trial_balance_is_per_account_and_currency_over_all_books(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        store, reads = await storage.store(), await storage.reads()
        assert await reads.trial_balance() == []
        for number in (1, 2, 3):
            book = Book(book_id(number))
            await store.append(book.commit(*move(10), *move(-7, "DKK"), *move(1, account="fees")))
        assert await reads.trial_balance() == [
            ("clearing", "DKK", 21),
            ("clearing", "EUR", -33),
            ("fees", "EUR", 3),
            ("merchant", "DKK", -21),
            ("merchant", "EUR", 30),
        ]

    run(scenario)


def test_sums_beyond_64_bits_are_exact(run: Run) -> None:
    most = 2**53 - 1

    async def scenario(storage: Storage) -> None:
        store, reads, book = await storage.store(), await storage.reads(), Book()
        for _ in range(11):
            await store.append(book.commit(*move(most), count=200))
        assert most * 2200 > 2**63
        assert await reads.balance_at(BOOK, None) == most * 2200
        assert await reads.trial_balance() == [
            ("clearing", "EUR", -most * 2200),
            ("merchant", "EUR", most * 2200),
        ]

    run(scenario)


def test_postings_without_an_entry_are_told_apart(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        store, reads = await storage.store(), await storage.reads()
        await store.append(Book().commit(*move(10)))
        booked = await reads.trial_balance()
        assert await reads.stray_balance() == []
        for place in (f"'{BOOK}', 9", f"'{book_id(2)}', 1"):
            writing = await storage.writing()
            await writing.run(f"INSERT INTO postings VALUES ({place}, 0, 'merchant', 'EUR', -500)")
            await writing.run(f"INSERT INTO postings VALUES ({place}, 1, 'paid_out', 'EUR', 500)")
        assert await reads.trial_balance() == booked
        assert await reads.stray_balance() == [
            ("merchant", "EUR", -1_000),
            ("paid_out", "EUR", 1_000),
        ]

    run(scenario)
