"""A story in the tables: what a shard would have written, commit by commit."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import count
from unittest.mock import patch

from tests.support.ledger import books as memory_books
from tests.support.ledger.books import EUR, FREE, Books, open_shop
from tests.support.ledger.story import tell
from tollgate.actors.ledger.book.machine import OrderEffect, execute, rows
from tollgate.actors.ledger.law.commands import Capture, Command, Import
from tollgate.actors.ledger.law.rows import Commit
from tollgate.actors.ledger.law.values import OPERATOR, Currency, EntityId, Pricing
from tollgate.actors.ledger.law.webhook_law import (
    AddWebhook,
    RemoveWebhook,
    ReplaceWebhookSecret,
)
from tollgate.actors.ledger.storage.writer import SqlJournalStore

BATCH = 64


@lru_cache
def story() -> tuple[Commit, ...]:
    """Everything that can happen, in two merchants' books and the directory."""
    with _recorded() as commits:
        tell()
    return tuple(commits)


@lru_cache
def long_story(payments: int) -> tuple[Commit, ...]:
    """One merchant with this many payments, which have an entry each, and one capture."""
    with _recorded() as commits:
        shop = open_shop(EUR, FREE)
        shop.captured(500)
        for number in range(payments):
            shop.authorised(100 + number)
    return tuple(commits)


@lru_cache
def line_written_twice(payments: int) -> tuple[Commit, ...]:
    """A merchant whose first line was imported again after this many payments, by a book that did
    not know of it."""
    with _recorded() as commits:
        shop = open_shop(EUR, FREE)
        transaction = shop.authorised(1_000)
        shop.capture(transaction, 300)
        (line,) = (each["id"] for each in shop.lines)
        for _ in range(payments):
            shop.authorised(100)
        command = Import(Capture(transaction, 300, None, "", None, None), line)
        order = shop.books.order(shop.book, command, OPERATOR)
        known = {transaction: shop.transaction(transaction), line: None}
        step = execute(shop.books.head(shop.book), known, order, shop.books.now_ms)
        assert isinstance(step, OrderEffect)
        shop.books.commit(rows(order, step))
    return tuple(commits)


@lru_cache
def webhooks_of_before() -> tuple[Commit, ...]:
    """A merchant with a webhook whose secret was replaced, as there were before webhooks could be
    disabled; another one was removed."""
    with _recorded() as commits:
        shop = open_shop()
        (webhook,) = shop.do(AddWebhook("https://example.com/hook", "sealed")).entities
        shop.do(ReplaceWebhookSecret(webhook, "sealed again", replaces="sealed"))
        (removed,) = shop.do(AddWebhook("https://example.com/other", "sealed")).entities
        shop.do(RemoveWebhook(removed))
    return tuple(commits)


@contextmanager
def _recorded() -> Iterator[list[Commit]]:
    """Every commit of every book, as it is made."""
    commits: list[Commit] = []
    keep, opening, keys = Books.commit, memory_books.opening, count(1)

    def recorded(books: Books, commit: Commit) -> None:
        commits.append(commit)
        keep(books, commit)

    def opened(app: EntityId, currency: Currency, pricing: Pricing, **options: bool) -> Command:
        command = opening(app, currency, pricing, **options)
        return replace(command, public_key=f"key-{next(keys)}")

    # (the story gives two shops one public key, which the tables do not let pass)
    with (
        patch.object(Books, "commit", recorded),
        patch.object(memory_books, "opening", opened),
    ):
        yield commits


async def write(store: SqlJournalStore, commits: tuple[Commit, ...]) -> None:
    """All of it in batches, as under load."""
    for start in range(0, len(commits), BATCH):
        batch = commits[start : start + BATCH]
        await store.append(
            Commit(
                entries=[row for commit in batch for row in commit.entries],
                entities=[row for commit in batch for row in commit.entities],
                keys=[row for commit in batch for row in commit.keys],
                heads=[row for commit in batch for row in commit.heads],
                operations=[row for commit in batch for row in commit.operations],
            )
        )
