"""Transactions that a server makes, what is done with them, saved cards (part A; T5 to T7, T12)."""

from msgspec.json import decode

from tollgate.actors.ledger.book.entities import SavedCard, entity_of_row
from tollgate.actors.ledger.law.commands import Authorise, Capture, Refund, SaveCard, Void
from tollgate.actors.ledger.law.outcomes import DoneKind
from tollgate.actors.ledger.law.roles import Act
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import CardSummary, Currency, EntityId, NetworkAction
from tollgate.serve.payments.api.bodies.model_reader import REQUIRED
from tollgate.serve.payments.api.bodies.requests import (
    CaptureCreate,
    CardCreate,
    RefundCreate,
    TransactionCreate,
    VoidCreate,
)
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext, entity_of, list_of
from tollgate.serve.payments.api.entity_cache import CachedMerchant, CachedTransaction
from tollgate.serve.payments.api.rejections import BadRequest, FieldError
from tollgate.serve.payments.api.replies import Reply, done_reply
from tollgate.serve.payments.api.router import Route
from tollgate.serve.payments.api.routes.network_moves import follow, move
from tollgate.serve.payments.network.card_network import Charge, PaymentRefused

TRANSACTION_FILTERS = frozenset({"merchantId", "transactionId", "test", "successful"})
MEMBERS_ONLY = frozenset({403, 404})
CHANGES = frozenset({403, 404, 409})


async def create_transaction(context: ApiContext, call: Call) -> Reply:
    """From an earlier transaction or a saved card, without its holder."""
    merchant = await context.access_merchant(call, call.ids[0])
    body = await call.body()
    if (told := await context.first_reply(call, merchant.id, body)) is not None:
        return told
    wanted = context.read(body, TransactionCreate)
    await context.require_approval(merchant)
    source, is_card = _source(wanted)
    currency, amount = wanted.currency, wanted.amount
    network = context.networks.of(is_test=merchant.is_test)
    if isinstance(network, PaymentRefused):
        raise BadRequest(FieldError(network.field, network.message))
    card = await _card_of(context, merchant, source, is_card=is_card)
    charge = Charge(currency.code, currency.exponent, amount, context.now_ms)
    verdict = await network.authorise_again(card, charge)
    if isinstance(verdict, PaymentRefused):
        raise BadRequest(FieldError(verdict.field, verdict.message))
    command = Authorise(
        currency=currency.code,
        exponent=currency.exponent,
        amount=amount,
        card=verdict.card,
        descriptor=wanted.descriptor,
        custom=wanted.custom,
        error=verdict.error,
        tds=verdict.tds,
        source=source,
        is_source_card=is_card,
    )
    is_immediate = network.is_immediate(NetworkAction.AUTHORISE, amount)
    if verdict.error is None and not is_immediate:
        return done_reply(await move(context, call, merchant.id, command, body, network))
    done = await context.execute(call, merchant.id, command, body)
    if done.kind is DoneKind.MADE:
        made = decode(done.body, type=dict[str, dict[str, str]])["transaction"]["id"]
        context.entities.learn(made, CachedTransaction(merchant.id, currency.code))
    return done_reply(done)


def _source(wanted: TransactionCreate) -> tuple[EntityId, bool]:
    """The earlier transaction, by either of its names, or the card; and whether it is a card."""
    names = {wanted.transactionId, wanted.authorizationId} - {None}
    if len(names) > 1:
        why = "is another than transactionId: give one of the two"
        raise BadRequest(FieldError("authorizationId", why))
    transaction = wanted.transactionId or wanted.authorizationId
    if transaction and wanted.cardId:
        raise BadRequest(FieldError("cardId", "give either it or transactionId"))
    source = transaction or wanted.cardId
    if source is None:
        raise BadRequest(FieldError("transactionId", REQUIRED))
    return source, wanted.cardId is not None


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


async def create_capture(context: ApiContext, call: Call) -> Reply:
    entered = await context.access_transaction(call, call.ids[0])
    body = await call.body()
    wanted = context.read(body, CaptureCreate)
    funding = entered.merchant.currency
    command = Capture(
        transaction=EntityId(call.ids[0]),
        amount=wanted.amount,
        currency=wanted.currency,
        descriptor=wanted.descriptor,
        rate=context.exchange_rate(entered.transaction.currency, funding),
        flat_rate=context.exchange_rate(entered.merchant.pricing.flat.currency, funding),
        table=context.rate_table(),
    )
    state = entered.state
    is_checked = state is not None and state.refuse_capture(wanted.amount, wanted.currency) is None
    return done_reply(await follow(context, call, entered, command, body, is_checked=is_checked))


async def create_refund(context: ApiContext, call: Call) -> Reply:
    entered = await context.access_transaction(call, call.ids[0], Act.REFUND)
    body = await call.body()
    wanted = context.read(body, RefundCreate)
    _require_currency(entered.transaction, wanted.currency)
    command = Refund(EntityId(call.ids[0]), wanted.amount, wanted.descriptor)
    state = entered.state
    is_checked = state is not None and state.refuse_refund(wanted.amount) is None
    return done_reply(await follow(context, call, entered, command, body, is_checked=is_checked))


async def create_void(context: ApiContext, call: Call) -> Reply:
    entered = await context.access_transaction(call, call.ids[0])
    body = await call.body()
    wanted = context.read(body, VoidCreate)
    _require_currency(entered.transaction, wanted.currency)
    amount = wanted.amount
    command = Void(EntityId(call.ids[0]), amount)
    is_checked = entered.state is not None and entered.state.refuse_void(amount) is None
    return done_reply(await follow(context, call, entered, command, body, is_checked=is_checked))


def _require_currency(transaction: CachedTransaction, currency: Currency | None) -> None:
    """Refuses a currency that is not the transaction's, as a capture does (T6, T7). That of a
    transaction never changes (T3), so this needs no look at the book. Raises BadRequest."""
    if currency is not None and currency != transaction.currency:
        why = f"the transaction is in {transaction.currency}, not in {currency}"
        raise BadRequest(FieldError("currency", why))


async def create_card(context: ApiContext, call: Call) -> Reply:
    merchant = await context.access_merchant(call, call.ids[0])
    body = await call.body()
    wanted = context.read(body, CardCreate)
    command = SaveCard(wanted.transactionId, wanted.notes)
    return done_reply(await context.execute(call, merchant.id, command, body))


async def create_card_of_transaction(context: ApiContext, call: Call) -> Reply:
    """The same, by a call that names no merchant: the transaction tells."""
    body = await call.body()
    wanted = context.read(body, CardCreate)
    entered = await context.access_transaction(call, wanted.transactionId)
    command = SaveCard(wanted.transactionId, wanted.notes)
    return done_reply(await context.execute(call, entered.merchant.id, command, body))


ROUTES = (
    Route(
        "POST",
        "/merchants/{merchantId}/transactions",
        create_transaction,
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
        list_of("transaction"),
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
        entity_of("transaction"),
        "transactions",
        "Fetch a transaction",
        reply="TransactionReply",
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "POST",
        "/transactions/{transactionId}/captures",
        create_capture,
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
        create_refund,
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
        create_void,
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
        create_card,
        "cards",
        "Save the card of a transaction (deprecated)",
        request="CardCreate",
        reply="CardCreated",
        status=201,
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "POST",
        "/cards",
        create_card_of_transaction,
        "cards",
        "Save the card of a transaction, whose merchant it names (deprecated)",
        request="CardCreate",
        reply="CardCreated",
        status=201,
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "GET",
        "/cards/{cardId}",
        entity_of("card"),
        "cards",
        "Fetch a card (deprecated)",
        reply="CardReply",
        statuses=MEMBERS_ONLY,
    ),
)
