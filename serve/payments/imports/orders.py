"""Test data into the books: the orders that a file leads to, one after another.

Each has an operation id that follows from what it makes, so a file that is imported again does
nothing, and one that failed half-way goes on where it stopped. What Tollgate has under one of the
given ids or keys already, and did not come from here, is left alone: the import is refused.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from tollgate.actors.kernel.hashing import digest
from tollgate.actors.ledger.book.entities import App, entity_of_row
from tollgate.actors.ledger.law.commands import (
    AddApp,
    Authorise,
    Capture,
    Command,
    CreateApp,
    Import,
    OpenMerchant,
    PayOut,
    Refund,
    SaveCard,
    Void,
)
from tollgate.actors.ledger.law.outcomes import Done
from tollgate.actors.ledger.law.values import DIRECTORY, BookId, EntityId
from tollgate.serve.payments.api.bodies.constraints import FieldError
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.rejections import BadRequest, NotFound
from tollgate.serve.payments.imports.drafts import (
    AppDraft,
    ImportDraft,
    MerchantDraft,
    MoveDraft,
    TransactionDraft,
)

KINDS = ("app", "merchant", "transaction", "line", "card")
OTHER_KINDS = ("dispute", "fraud", "user", "webhook", "event")


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """The numbers of entities that are in the books because of a file."""

    apps: int = 0
    merchants: int = 0
    transactions: int = 0
    lines: int = 0
    cards: int = 0


async def import_draft(context: ApiContext, call: Call, draft: ImportDraft) -> ImportCounts:
    """Raises BadRequest and whatever an order may be answered with."""
    importer = _Importer(context, call)
    for app in draft.apps:
        await importer.app(app)
    for merchant in draft.merchants:
        await importer.merchant(merchant)
    return importer.made


class _Importer:
    def __init__(self, context: ApiContext, call: Call) -> None:
        self._context = context
        self._call = call
        self.made = ImportCounts()

    async def app(self, draft: AppDraft) -> None:
        stored = self._context.digests.stored(draft.key)
        owner = await self._context.store.key_owner(stored.digest)
        if owner is not None and owner.app != draft.id:
            raise _taken("the key of an app", draft.id)
        command = CreateApp(draft.name, stored.digest, stored.last4)
        await self._import("app", DIRECTORY, command, draft.id, stored)
        self.made = replace(self.made, apps=self.made.apps + 1)

    async def merchant(self, draft: MerchantDraft) -> None:
        book = draft.id
        owner = await self._context.store.merchant_by_public_key(draft.public_key)
        if owner is not None and owner.id != EntityId(book):
            raise _taken("the public key", EntityId(book))
        await self._require_free("merchant", book, EntityId(book))
        first, *others = [await self._app(app) for app in draft.apps]
        shown = replace(draft, transactions=(), cards=(), payouts=())
        await self._order(book, _opening(self._context, draft, first), "merchant", shown)
        for app in others:
            added = AddApp(app.id, app.name, app.created_ms)
            await self._order(book, added, f"app {app.id}", app.id)
        self.made = replace(self.made, merchants=self.made.merchants + 1)
        for transaction in draft.transactions:
            await self._transaction(draft, transaction)
        for card in draft.cards:
            await self._import("card", book, SaveCard(card.transaction, card.notes), card.id, card)
            self.made = replace(self.made, cards=self.made.cards + 1)
        for payout in draft.payouts:
            await self._line(book, PayOut(payout.amount, payout.description), payout.line, payout)

    async def _transaction(self, merchant: MerchantDraft, draft: TransactionDraft) -> None:
        book = merchant.id
        command = Authorise(
            currency=draft.currency.code,
            exponent=draft.currency.exponent,
            amount=draft.amount,
            card=draft.card,
            descriptor=draft.descriptor,
            custom=draft.custom,
            error=draft.error,
            tds=draft.tds,
            source=draft.source,
        )
        await self._import("transaction", book, command, draft.id, replace(draft, trail=()))
        self.made = replace(self.made, transactions=self.made.transactions + 1)
        for number, move in enumerate(draft.trail):
            await self._move(merchant, draft, number, move)

    async def _move(
        self, merchant: MerchantDraft, transaction: TransactionDraft, number: int, move: MoveDraft
    ) -> None:
        book = merchant.id
        if move.line is None:
            void = Void(transaction.id, move.amount)
            await self._order(book, void, f"void {number} of {transaction.id}", move)
        elif move.kind == "refund":
            refund = Refund(transaction.id, move.amount, move.descriptor)
            await self._line(book, refund, move.line, move)
        else:
            context, code = self._context, transaction.currency.code
            capture = Capture(
                transaction=transaction.id,
                amount=move.amount,
                currency=None,
                descriptor=move.descriptor,
                rate=context.exchange_rate(code, merchant.currency),
                flat_rate=context.exchange_rate(
                    context.reference.pricing.flat.currency, merchant.currency
                ),
            )
            await self._line(book, capture, move.line, move)

    async def _line(
        self, book: BookId, command: Capture | Refund | PayOut, line: EntityId, shown: object
    ) -> None:
        await self._import("line", book, command, line, shown)
        self.made = replace(self.made, lines=self.made.lines + 1)

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
        shown: object,
    ) -> None:
        await self._require_free(kind, book, given)
        await self._order(book, Import(command, given), f"{kind} {given}", shown)

    async def _order(self, book: BookId, command: Command, what: str, shown: object) -> Done:
        """`shown`: what the file says, without rates and fees, which are of the day: by it an
        import is the same one again."""
        body = Body({"import": repr(shown)})
        key = f"import {digest(book.encode(), what.encode())}"
        return await self._context.execute(self._call, book, command, body, idempotency_key=key)

    async def _require_free(self, kind: str, book: BookId, given: EntityId) -> None:
        """Checks that nothing else has the id; within its kind and book, the book itself does."""
        async for found_kind, found_book in self._found(given):
            if (found_kind, found_book) != (kind, book):
                raise _taken(f"the id of a {found_kind}", given)

    async def _found(self, given: EntityId) -> AsyncIterator[tuple[str, BookId]]:
        for kind in (*KINDS, *OTHER_KINDS):
            row = await self._context.store.entity(kind, given)
            if row is not None:
                yield kind, row.book


def _opening(context: ApiContext, draft: MerchantDraft, creator: App) -> OpenMerchant:
    return OpenMerchant(
        public_key=draft.public_key,
        name=draft.name,
        currency=draft.currency,
        is_test=True,
        email=draft.email,
        website=draft.website,
        descriptor=draft.descriptor,
        company_country=draft.company_country,
        company_number=draft.company_number,
        iban=draft.iban,
        pricing=context.reference.pricing,
        creator=creator.id,
        creator_name=creator.name,
        creator_created_ms=creator.created_ms,
        exponent=context.reference.currencies.exponent(draft.currency),
    )


def _taken(what: str, entity: EntityId) -> BadRequest:
    return BadRequest(FieldError(entity, f"{what} is in use already, and not of this import"))
