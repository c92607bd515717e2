"""Test data into the books: the orders that a file leads to, one after another.

Each has an operation id that follows from what it makes, so a file that is imported again does
nothing, and one that failed half-way goes on where it stopped. What Tollgate has under one of the
given ids or keys already, and did not come from here, is left alone: the import is refused.
"""

from tollgate.actors.kernel.hashing import digest
from tollgate.actors.ledger.book.entities import App, entity_of_row
from tollgate.actors.ledger.law.commands import (
    AddApp,
    Authorise,
    Capture,
    Command,
    CreateApp,
    Import,
    PayOut,
    Refund,
    SaveCard,
    Void,
)
from tollgate.actors.ledger.law.values import DIRECTORY, BookId, EntityId
from tollgate.serve.payments.api.bodies.model_reader import RequestBody
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.rejections import BadRequest, FieldError, NotFound
from tollgate.serve.payments.api.routes.merchants import opening
from tollgate.serve.payments.imports.files import (
    ImportedApp,
    ImportedData,
    ImportedMerchant,
    ImportedMove,
    ImportedTransaction,
)

KINDS = [
    "app",
    "merchant",
    "transaction",
    "line",
    "card",
    "dispute",
    "fraud",
    "settlement",
    "settled_day",
    "notice",
    "authorisation",
    "user",
    "webhook",
    "event",
]
# The parts of an entry that are orders of their own.
PARTS = {"transactions", "cards", "payouts", "trail"}


async def import_data(context: ApiContext, call: Call, data: ImportedData) -> dict[str, int]:
    """The numbers of entities that are in the books because of a file. Raises BadRequest and
    whatever an order may be answered with."""
    importer = _Importer(context, call)
    for app in data.apps:
        await importer.app(app)
    for merchant in data.merchants:
        await importer.merchant(merchant)
    transactions = [each for merchant in data.merchants for each in merchant.transactions]
    lines = [move for each in transactions for move in each.trail if move.line]
    return {
        "apps": len(data.apps),
        "merchants": len(data.merchants),
        "transactions": len(transactions),
        "lines": len(lines) + sum(len(each.payouts) for each in data.merchants),
        "cards": sum(len(each.cards) for each in data.merchants),
    }


class _Importer:
    def __init__(self, context: ApiContext, call: Call) -> None:
        self._context = context
        self._call = call

    async def app(self, app: ImportedApp) -> None:
        stored = self._context.digests.stored(app.key)
        owner = await self._context.store.key_owner(stored.digest)
        if owner is not None and owner.app != app.id:
            raise _taken("the key of an app", app.id)
        command = CreateApp(app.name, stored.digest, stored.last4)
        await self._import("app", DIRECTORY, command, app.id, app)

    async def merchant(self, merchant: ImportedMerchant) -> None:
        book = BookId(merchant.id)
        owner = await self._context.store.merchant_by_public_key(merchant.key)
        if owner is not None and owner.id != merchant.id:
            raise _taken("the public key", merchant.id)
        await self._require_free("merchant", book, merchant.id)
        first, *others = [await self._app(app) for app in merchant.apps]
        command = opening(merchant, self._context.reference, first, merchant.key)
        await self._order(book, command, "merchant", merchant)
        for app in others:
            added = AddApp(app.id, app.name, app.created_ms)
            await self._order(book, added, f"app {app.id}", merchant)
        for transaction in merchant.transactions:
            await self._transaction(merchant, transaction)
        for card in merchant.cards:
            await self._import("card", book, SaveCard(card.transaction, card.notes), card.id, card)
        for payout in merchant.payouts:
            paid = PayOut(payout.amount, payout.description)
            await self._import("line", book, paid, payout.line, payout)

    async def _transaction(
        self, merchant: ImportedMerchant, transaction: ImportedTransaction
    ) -> None:
        command = Authorise(
            currency=transaction.currency.code,
            exponent=transaction.currency.exponent,
            amount=transaction.amount,
            card=transaction.card.summary(),
            descriptor=transaction.descriptor,
            custom=transaction.custom,
            error=transaction.error,
            tds=transaction.tds,
            source=transaction.source,
        )
        book = BookId(merchant.id)
        await self._import("transaction", book, command, transaction.id, transaction)
        voids = iter(await self._voids(book, transaction))
        for move in transaction.trail:
            moved = self._moved(merchant, transaction, move)
            if isinstance(moved, Void):
                await self._order(book, moved, next(voids), move)
            else:
                assert move.line is not None, "captures and refunds have one"
                await self._import("line", book, moved, move.line, move)

    async def _voids(self, book: BookId, transaction: ImportedTransaction) -> list[str]:
        """A name for each void, which has no id: its number among those of the transaction, so that
        one is the same though captures and refunds of the file change places with it. Another
        amount under the same number is refused. Those that were imported while voids were named by
        their place in the trail keep these names."""
        count = sum(1 for move in transaction.trail if move.void)
        before = [f"void {place} of {transaction.id}" for place in range(len(transaction.trail))]
        app, operation = self._call.caller.app, self._context.store.operation
        kept = [
            name
            for name in (before if count else ())
            if await operation((app, book, _key(book, name))) is not None
        ]
        numbers = range(len(kept), count)
        return [*kept, *(f"void number {number} of {transaction.id}" for number in numbers)]

    def _moved(
        self, merchant: ImportedMerchant, transaction: ImportedTransaction, move: ImportedMove
    ) -> Capture | Refund | Void:
        if move.void:
            return Void(transaction.id, move.void)
        if move.refund:
            return Refund(transaction.id, move.refund, move.descriptor)
        context, funding = self._context, merchant.currency
        return Capture(
            transaction=transaction.id,
            amount=move.capture,
            currency=None,
            descriptor=move.descriptor,
            rate=context.exchange_rate(transaction.currency.code, funding),
            flat_rate=context.exchange_rate(context.reference.pricing.flat.currency, funding),
        )

    async def _app(self, app: EntityId) -> App:
        try:
            found = entity_of_row(await self._context.entities.row("app", app))
        except NotFound:
            raise BadRequest(FieldError("apps", f"there is no app {app}")) from None
        assert isinstance(found, App), "an app's row holds an app"
        return found

    async def _import(
        self,
        kind: str,
        book: BookId,
        command: CreateApp | Authorise | Capture | Refund | SaveCard | PayOut,
        given: EntityId,
        entry: RequestBody,
    ) -> None:
        await self._require_free(kind, book, given)
        await self._order(book, Import(command, given), f"{kind} {given}", entry)

    async def _order(self, book: BookId, command: Command, what: str, entry: RequestBody) -> None:
        """An import is the same one again by its `entry`, so without rates and fees, which are of
        the day."""
        body = Body({"import": entry.model_dump(mode="json", exclude=PARTS, serialize_as_any=True)})
        await self._context.execute(
            self._call, book, command, body, idempotency_key=_key(book, what), is_test=True
        )

    async def _require_free(self, kind: str, book: BookId, given: EntityId) -> None:
        """Checks that nothing else has the id; within its kind and book, the book itself does."""
        for found_kind in KINDS:
            row = await self._context.store.entity(found_kind, given)
            if row is not None and (found_kind, row.book) != (kind, book):
                raise _taken(f"the id of a {found_kind}", given)


def _key(book: BookId, what: str) -> str:
    return f"import {digest(book.encode(), what.encode())}"


def _taken(what: str, entity: EntityId) -> BadRequest:
    return BadRequest(FieldError(entity, f"{what} is in use already, and not of this import"))
