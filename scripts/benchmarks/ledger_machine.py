"""What the ledger's pure machine costs: captures of as many transactions, without any storage."""

import gc
from time import process_time

import click

from tollgate.actors.ledger.book.entities import Entity
from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.book.machine import OrderEffect, execute, rows
from tollgate.actors.ledger.law.commands import Authorise, Capture, Command, OpenMerchant, Order
from tollgate.actors.ledger.law.values import (
    OPERATOR,
    BookId,
    CardBrand,
    CardSummary,
    Currency,
    EntityId,
    Origin,
    Price,
    Pricing,
    Rate,
)

NOW_MS = 1_767_225_600_000
TIME_LEFT_MS = 10_000
BOOK = BookId("6955b9000000000001000000")
EUR, USD = Currency("EUR"), Currency("USD")
ORIGIN = Origin(OPERATOR, "ab12", "192.0.2.1", "request-0123456789abcdef")
CARD = CardSummary("410000", "0000", NOW_MS + 10**11, CardBrand.VISA, True, "token")
PRICING = Pricing(14_500, Price(EUR, 25), Price(EUR, 2_500))
_SHOP = ("Shop", EUR, True, "shop@example.com", "shop.example", "SHOP", "DK", "1", "")
OPEN_SHOP = OpenMerchant("key", *_SHOP, PRICING, EntityId("a" * 24), "Till", NOW_MS)
AUTHORISE = Authorise(EUR, 2, 1_000, CARD, "", '{"order":17}', None, "full")


class Book:
    """A book with everything in memory."""

    def __init__(self) -> None:
        self.head: Head | None = None
        self.entities: dict[EntityId, Entity | None] = {}
        self.give(OPEN_SHOP)

    def give(self, command: Command) -> OrderEffect:
        operation = f"operation-{0 if self.head is None else self.head.seq}"
        order = Order(operation, BOOK, command, ORIGIN, TIME_LEFT_MS)
        step = execute(self.head, self.entities, order, NOW_MS)
        assert isinstance(step, OrderEffect), step
        rows(order, step)
        self.head = step.head
        self.entities.update(step.entities)
        return step

    def authorise(self, currency: Currency) -> EntityId:
        command = Authorise(currency, 2, 1_000, CARD, "", '{"order":17}', None, "full")
        (transaction,) = self.give(command).entities
        return transaction


@click.command("ledger-machine")
@click.option("--captures", default=20_000, show_default=True, help="In each round.")
@click.option("--rounds", default=3, show_default=True)
def ledger_machine(captures: int, rounds: int) -> None:
    """Captures per second of processor time, one process: decide, evolve, hash, rows, reply."""
    rates = {EUR: None, USD: Rate(USD, EUR, 92_117, 100_000, "2026-01-01")}
    for currency, rate in rates.items():
        for _ in range(rounds):
            book = Book()
            transactions = [book.authorise(currency) for _ in range(captures)]
            gc.collect()
            begun_s = process_time()
            for transaction in transactions:
                book.give(Capture(transaction, 1_000, None, "", rate, None))
            seconds = process_time() - begun_s
            per_capture_us = seconds / captures * 1e6
            click.echo(f"{currency} {captures / seconds:8,.0f}/s  {per_capture_us:5.1f} us each")
