"""Transactions that a server makes, what is done with them, saved cards (part A; T5 to T7, T12)."""

from msgspec.json import decode

from tollgate.actors.ledger.book.entities import SavedCard, entity_of_row
from tollgate.actors.ledger.law.commands import Authorise, Capture, Refund, SaveCard, Void
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import CardSummary, Currency, EntityId
from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.bodies.constraints import FieldError
from tollgate.serve.payments.api.bodies.fields import REQUIRED, BodyFields
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.entity_cache import CachedMerchant, CachedTransaction
from tollgate.serve.payments.api.orders import done_reply
from tollgate.serve.payments.api.rejections import BadRequest
from tollgate.serve.payments.api.replies import Reply
from tollgate.serve.payments.api.router import Route
from tollgate.serve.payments.network.port import Charge, PaymentRefused
from tollgate.serve.payments.reference.currencies import CurrencyEntry

NOTES_LENGTH_MAX = 1_024
TRANSACTION_FILTERS = frozenset({"merchantId", "transactionId", "test", "successful"})
MEMBERS_ONLY = frozenset({403, 404})
CHANGES = frozenset({403, 404, 409})
_NO_CURRENCY = CurrencyEntry(Currency(""), 0)


async def create(context: ApiContext, call: Call) -> Reply:
    """From an earlier transaction or a saved card, without its holder."""
    merchant = await context.enter(call, call.ids[0])
    body = await call.body()
    fields = BodyFields(body)
    source, is_card = _source(fields)
    currency = fields.need(
        "currency",
        lambda value, field: constraints.currency(value, context.reference.currencies, field),
        _NO_CURRENCY,
    )
    amount = fields.amount()
    descriptor = fields.may("descriptor", constraints.descriptor, "")
    custom = fields.may("custom", constraints.custom, "")
    fields.check()
    card = await _card_of(context, merchant, source, is_card=is_card)
    network = context.networks.of(is_test=merchant.is_test)
    if isinstance(network, PaymentRefused):
        raise BadRequest(FieldError(network.field, network.message))
    charge = Charge(currency.code, currency.exponent, amount, context.now_ms)
    verdict = await network.authorise_again(card, charge)
    command = Authorise(
        currency=currency.code,
        exponent=currency.exponent,
        amount=amount,
        card=verdict.card,
        descriptor=descriptor,
        custom=custom,
        error=verdict.error,
        tds=verdict.tds,
        source=source,
        is_source_card=is_card,
    )
    done = await context.order(call, merchant.id, command, body)
    if done.status == 201:
        made = decode(done.body, type=dict[str, dict[str, str]])["transaction"]["id"]
        context.entities.learn(made, CachedTransaction(merchant.id, currency.code))
    return done_reply(done)


def _source(fields: BodyFields) -> tuple[EntityId, bool]:
    """The earlier transaction, by either of its names, or the card; and whether it is a card."""
    given = {
        name: found
        for name in ("transactionId", "authorizationId", "cardId")
        if (found := fields.optional_reference(name)) is not None
    }
    transactions = {given[name] for name in given if name != "cardId"}
    card = given.get("cardId")
    if len(transactions) > 1:
        fields.refuse("authorizationId", "is another than transactionId: give one of the two")
    elif transactions and card:
        fields.refuse("cardId", "give either it or transactionId")
    fields.check()
    if card:
        return card, True
    if not transactions:
        raise BadRequest(FieldError("transactionId", REQUIRED))
    return transactions.pop(), False


async def _card_of(
    context: ApiContext, merchant: CachedMerchant, source: EntityId, *, is_card: bool
) -> CardSummary:
    """The card of a source of this merchant; whether it may be used again is the book's to say."""
    kind, field = ("card", "cardId") if is_card else ("transaction", "transactionId")
    row = await context.store.entity(kind, source)
    if row is None or row.book != merchant.id:
        raise BadRequest(FieldError(field, f"{source} is not one of this merchant's"))
    match entity_of_row(row):
        case Transaction(card=card, error=None):
            return card
        case SavedCard(summary=card):
            return card
    raise BadRequest(
        FieldError(field, f"the transaction {source} was not successful: it cannot be repeated")
    )


async def page(context: ApiContext, call: Call) -> Reply:
    return await context.listed(call, "transaction", call.ids[0], TRANSACTION_FILTERS)


async def find(context: ApiContext, call: Call) -> Reply:
    return await context.one(call, "transaction", call.ids[0])


async def capture(context: ApiContext, call: Call) -> Reply:
    entered = await context.access_transaction(call, call.ids[0])
    body = await call.body()
    fields = BodyFields(body)
    amount = fields.amount()
    currency = fields.may("currency", _currency_code, None)
    descriptor = fields.may("descriptor", constraints.descriptor, "")
    fields.check()
    funding = entered.merchant.currency
    command = Capture(
        transaction=EntityId(call.ids[0]),
        amount=amount,
        currency=currency,
        descriptor=descriptor,
        rate=context.rate(entered.transaction.currency, funding),
        flat_rate=context.rate(entered.merchant.pricing.flat.currency, funding),
    )
    state = entered.state
    is_checked = state is not None and state.refuse_capture(amount, currency) is None
    book = entered.merchant.id
    return done_reply(await context.order(call, book, command, body, is_checked=is_checked))


async def refund(context: ApiContext, call: Call) -> Reply:
    entered = await context.access_transaction(call, call.ids[0])
    body = await call.body()
    fields = BodyFields(body)
    amount = fields.amount()
    descriptor = fields.may("descriptor", constraints.descriptor, "")
    fields.check()
    command = Refund(EntityId(call.ids[0]), amount, descriptor)
    is_checked = entered.state is not None and entered.state.refuse_refund(amount) is None
    book = entered.merchant.id
    return done_reply(await context.order(call, book, command, body, is_checked=is_checked))


async def void(context: ApiContext, call: Call) -> Reply:
    entered = await context.access_transaction(call, call.ids[0])
    body = await call.body()
    fields = BodyFields(body)
    amount = fields.amount()
    fields.check()
    command = Void(EntityId(call.ids[0]), amount)
    is_checked = entered.state is not None and entered.state.refuse_void(amount) is None
    book = entered.merchant.id
    return done_reply(await context.order(call, book, command, body, is_checked=is_checked))


async def save_card(context: ApiContext, call: Call) -> Reply:
    merchant = await context.enter(call, call.ids[0])
    body = await call.body()
    fields = BodyFields(body)
    transaction = fields.reference("transactionId")
    notes = fields.may("notes", _notes, "")
    fields.check()
    return done_reply(await context.order(call, merchant.id, SaveCard(transaction, notes), body))


async def find_card(context: ApiContext, call: Call) -> Reply:
    return await context.one(call, "card", call.ids[0])


def _currency_code(value: object, field: str) -> Currency | FieldError:
    """Any text: what it must be is known to the book alone."""
    if not isinstance(value, str) or len(value) != 3:
        return FieldError(field, "must be a currency code of ISO 4217, such as EUR")
    return Currency(value)


def _notes(value: object, field: str) -> str | FieldError:
    return constraints.text(value, field, NOTES_LENGTH_MAX)


ROUTES = (
    Route(
        "POST",
        "/merchants/{merchantId}/transactions",
        create,
        "transactions",
        "Create a transaction from an earlier one or a saved card",
        request="TransactionCreate",
        reply="TransactionCreated",
        status=201,
        statuses=MEMBERS_ONLY,
        description="A processing error is answered with 400 and an object; the attempt is "
        "stored as an unsuccessful transaction. Retrying is pointless after the errors 6 and "
        "10; after others wait 24 hours, and ask for a manual payment after five attempts.",
    ),
    Route(
        "GET",
        "/merchants/{merchantId}/transactions",
        page,
        "transactions",
        "Transactions of a merchant",
        reply="Transaction[]",
        is_paged=True,
        filters=TRANSACTION_FILTERS,
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "GET",
        "/transactions/{transactionId}",
        find,
        "transactions",
        "Fetch a transaction",
        reply="TransactionReply",
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "POST",
        "/transactions/{transactionId}/captures",
        capture,
        "transactions",
        "Capture all or part of what is pending",
        request="CaptureCreate",
        reply="TransactionReply",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/transactions/{transactionId}/refunds",
        refund,
        "transactions",
        "Refund all or part of what was captured",
        request="RefundCreate",
        reply="TransactionReply",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/transactions/{transactionId}/voids",
        void,
        "transactions",
        "Void all or part of what is pending",
        request="VoidCreate",
        reply="TransactionReply",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/merchants/{merchantId}/cards",
        save_card,
        "cards",
        "Save the card of a transaction (deprecated)",
        request="CardCreate",
        reply="CardCreated",
        status=201,
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "GET",
        "/cards/{cardId}",
        find_card,
        "cards",
        "Fetch a card (deprecated)",
        reply="CardReply",
        statuses=MEMBERS_ONLY,
    ),
)
