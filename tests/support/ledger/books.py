"""Books as a shard keeps them, in memory: heads and entities come from the rows that were written,
as after a restart, and every order goes all the way from `needs` to the commit."""

import json
from dataclasses import dataclass, field
from typing import Any

from tollgate.actors.ledger.book.decisions.approval import merchant_version
from tollgate.actors.ledger.book.entities import Entity, known_of_row
from tollgate.actors.ledger.book.head import Head, head_of_row
from tollgate.actors.ledger.book.machine import OrderEffect, execute, needs, rows
from tollgate.actors.ledger.law.commands import (
    ApproveMerchant,
    Authorise,
    Capture,
    Command,
    CreateApp,
    OpenDispute,
    OpenMerchant,
    Order,
    ReserveMerchant,
)
from tollgate.actors.ledger.law.outcomes import Refusal
from tollgate.actors.ledger.law.rows import MEMBERSHIP, Commit, EntityRow, Entry, HeadRow, KeyRow
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import (
    DIRECTORY,
    NOBODY,
    OPERATOR,
    BookId,
    CardBrand,
    CardSummary,
    Currency,
    EntityId,
    Origin,
    Price,
    Pricing,
    ProcessingError,
    Rate,
)

NOW_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
EUR, USD, DKK, JPY, KWD = (Currency(code) for code in ("EUR", "USD", "DKK", "JPY", "KWD"))
EXPONENTS = {EUR: 2, USD: 2, DKK: 2, JPY: 0, KWD: 3}
ABSENT = EntityId("f" * 24)

CARD = CardSummary(
    bin="410000",
    last4="0000",
    expiry_ms=1_893_455_999_999,  # 2029-12-31T23:59:59.999Z
    scheme=CardBrand.VISA,
    has_code=True,
    network_token="token-1",
)
PRICING = Pricing(rate_ppm=14_500, flat=Price(EUR, 25), dispute=Price(EUR, 2_500))
FREE = Pricing(rate_ppm=0, flat=Price(EUR, 0), dispute=Price(EUR, 0))
DECLINED = ProcessingError(8, "Declined by the cardholder's bank", True, False)


def rate(source: Currency, target: Currency, numerator: int, denominator: int) -> Rate:
    return Rate(source, target, numerator, denominator, "2026-01-01")


@dataclass
class Books:
    """`log`: all entries of all books, in the order of commits."""

    now_ms: int = NOW_MS
    heads: dict[BookId, HeadRow] = field(default_factory=dict)
    tables: dict[tuple[str, BookId, EntityId], EntityRow] = field(default_factory=dict)
    live_keys: dict[str, KeyRow] = field(default_factory=dict)
    log: list[Entry] = field(default_factory=list)
    operations: int = 0

    def order(self, book: BookId, command: Command, app: EntityId, **options: Any) -> Order:
        self.operations += 1
        return Order(
            operation=f"operation-{self.operations}",
            book=book,
            command=command,
            origin=Origin(app, "ab12", "192.0.2.1", f"request-{self.operations}"),
            **{"time_left_ms": 1_000} | options,
        )

    def head(self, book: BookId) -> Head | None:
        row = self.heads.get(book)
        return None if row is None else head_of_row(row)

    def entity(self, entity: EntityId) -> Entity | None:
        return next(
            (
                known_of_row(row)
                for (kind, _, known), row in self.tables.items()
                if known == entity and kind != MEMBERSHIP
            ),
            None,
        )

    def attempt(
        self, book: BookId, command: Command, app: EntityId = NOBODY, **options: Any
    ) -> OrderEffect | Refusal:
        """Execute and commit, or be refused."""
        order = self.order(book, command, app, **options)
        known: dict[EntityId, Entity | None] = {}
        while missing := needs(command, known):
            known |= {entity: self.entity(entity) for entity in missing}
        step = execute(self.head(book), known, order, self.now_ms)
        if isinstance(step, OrderEffect):
            self.commit(rows(order, step))
        return step

    def do(
        self, book: BookId, command: Command, app: EntityId = NOBODY, **options: Any
    ) -> OrderEffect:
        """Execute and commit what is allowed."""
        step = self.attempt(book, command, app, **options)
        assert isinstance(step, OrderEffect), step
        return step

    def commit(self, commit: Commit) -> None:
        self.log += commit.entries
        self.heads |= {row.book: row for row in commit.heads}
        for row in commit.entities:
            if row.is_deleted:
                self.tables.pop((row.kind, row.book, row.id))
            else:
                self.tables[row.kind, row.book, row.id] = row
        for key in commit.keys:
            if key.is_deleted:
                self.live_keys.pop(key.digest)
            else:
                self.live_keys[key.digest] = key

    def documents(self, kind: str, book: BookId | None = None) -> list[Any]:
        """Documents of a kind, the oldest first."""
        found = sorted(
            (row for row in self.tables.values() if row.kind == kind and book in (None, row.book)),
            key=lambda row: row.id,
        )
        return [json.loads(row.document) for row in found]

    def document(self, kind: str, entity: str) -> Any:
        (found,) = (row for row in self.tables.values() if (row.kind, row.id) == (kind, entity))
        return json.loads(found.document)


@dataclass
class Shop:
    """A merchant with one app, and what is usually asked of it."""

    books: Books
    app: EntityId
    book: BookId

    def do(self, command: Command, app: EntityId | None = None, **options: Any) -> OrderEffect:
        return self.books.do(self.book, command, self.app if app is None else app, **options)

    def refusal(self, command: Command, app: EntityId | None = None, **options: Any) -> Refusal:
        """Of a command that must be refused, and change nothing (T8)."""
        before = (dict(self.books.heads), dict(self.books.tables), list(self.books.log))
        origin = self.app if app is None else app
        refused = self.books.attempt(self.book, command, origin, **options)
        assert isinstance(refused, Refusal)
        assert before == (self.books.heads, self.books.tables, self.books.log)
        return refused

    def approval(self) -> ApproveMerchant:
        """Of the merchant as it is now."""
        head = self.books.head(self.book)
        assert head is not None
        assert head.merchant is not None
        return ApproveMerchant(merchant_version(self.book, head.merchant))

    def authorised(
        self, amount: int, currency: Currency = EUR, error: ProcessingError | None = None
    ) -> EntityId:
        """A customer's payment by the public key; the transaction's id."""
        command = authorise(amount, currency, error=error)
        step = self.do(command, NOBODY)
        return next(entity for entity in step.entities)

    def capture(self, transaction: EntityId, amount: int, rate: Rate | None = None) -> OrderEffect:
        return self.do(Capture(transaction, amount, None, "", rate, None))

    def captured(self, amount: int) -> EntityId:
        """A transaction that is captured in full."""
        transaction = self.authorised(amount)
        self.capture(transaction, amount)
        return transaction

    def disputed(self, transaction: EntityId, amount: int) -> EntityId:
        """The id of a dispute that is opened."""
        command = OpenDispute(transaction, amount, 4837, "No authorisation", NOW_MS + 1, None)
        step = self.do(command, OPERATOR)
        return next(entity for entity in step.entities if entity != transaction)

    def transaction(self, transaction: EntityId) -> Transaction:
        found = self.books.entity(transaction)
        assert isinstance(found, Transaction)
        return found

    @property
    def balance(self) -> int:
        balance = self.books.document("merchant", self.book)["balance"]
        assert isinstance(balance, int)
        return balance

    @property
    def lines(self) -> list[Any]:
        return self.books.documents("line", self.book)

    def event_types(self) -> list[str]:
        return [event["type"] for event in self.books.documents("event", self.book)]


def authorise(
    amount: int,
    currency: Currency = EUR,
    *,
    error: ProcessingError | None = None,
    source: EntityId | None = None,
    is_source_card: bool = False,
    card: CardSummary = CARD,
) -> Authorise:
    return Authorise(
        currency=currency,
        exponent=EXPONENTS[currency],
        amount=amount,
        card=card,
        descriptor="",
        custom="",
        error=error,
        source=source,
        is_source_card=is_source_card,
    )


def opening(
    app: EntityId,
    currency: Currency,
    pricing: Pricing,
    *,
    is_test: bool,
    needs_approval: bool = False,
) -> OpenMerchant:
    return OpenMerchant(
        public_key="key-of-the-shop",
        name="",
        currency=currency,
        is_test=is_test,
        email="shop@example.com",
        website="shop.example",
        descriptor="SHOP",
        company_country="DK",
        company_number="",
        iban="",
        pricing=pricing,
        creator=app,
        creator_name="Till",
        creator_created_ms=NOW_MS,
        needs_approval=needs_approval,
    )


def open_shop(
    currency: Currency = EUR,
    pricing: Pricing = PRICING,
    *,
    is_test: bool = True,
    needs_approval: bool = False,
    books: Books | None = None,
) -> Shop:
    """A merchant, opened by an app that was created for it, with the recovery code's digest
    `recovery`."""
    books = Books() if books is None else books
    created = books.do(
        DIRECTORY, CreateApp("Till", f"digest-{books.operations}", "ab12", "recovery")
    )
    (app,) = created.entities
    reserved = books.do(DIRECTORY, ReserveMerchant(), app)
    book = BookId(json.loads(reserved.reply.body)["merchant"]["id"])
    command = opening(app, currency, pricing, is_test=is_test, needs_approval=needs_approval)
    books.do(book, command, app)
    return Shop(books, app, book)
