"""Test merchants' own world: payments by card, disputes, frauds, payouts, as they come (part H).

Nothing here works for a live merchant. A card's number and code are read, asked about and let go
of: what is ordered, logged and stored is the network's summary.
"""

from collections.abc import Mapping

from tollgate.actors.ledger.law.commands import (
    DecideDispute,
    OpenDispute,
    PayOut,
    ReportFraud,
)
from tollgate.actors.ledger.law.values import EntityId
from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.bodies.requests import (
    PayoutCreate,
    SandboxDispute,
    SandboxFraud,
    SandboxPayment,
    behaviour_of,
)
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.checkout.card_payments import CardPayment, network_of, take_payment
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.entity_cache import CachedMerchant
from tollgate.serve.payments.api.limits.calls import per_call
from tollgate.serve.payments.api.orders import attempt_failed
from tollgate.serve.payments.api.rejections import BadRequest, FieldError, Forbidden
from tollgate.serve.payments.api.replies import Reply, done_reply
from tollgate.serve.payments.api.router import Access, Route
from tollgate.serve.payments.network.card import CardProblem, PlainCard, read_card
from tollgate.serve.payments.network.card_network import Charge
from tollgate.serve.payments.reference.currencies import CurrencyEntry

INVALID_CURRENCY, MISSING_CURRENCY = 1, 16
INVALID_AMOUNT, MISSING_AMOUNT = 14, 15
INVALID_KEY = 26
PUBLIC_KEY_LENGTH_MAX = 256
DISPUTE_DAYS = 14
# Of callers without credentials: custom data of the largest, each byte percent-encoded, and a card.
PAYMENT_BODY_BYTES_MAX = 192 * 1024
DAY_MS = 86_400_000
CHANGES = frozenset({403, 404, 409})


async def create_sandbox_payment(context: ApiContext, call: Call) -> Reply:
    """A customer's payment, by the merchant's public key."""
    await context.limits.admit(per_call("payments", address=call.address))
    body = await call.body()
    merchant = await _merchant(context, call, body.fields.get("key"))
    shown = _without_number(body)
    if (told := await context.first_reply(call, merchant.id, shown)) is not None:
        return told
    network_of(context, merchant)
    currency, amount = _money(context, body)
    card = _card(context, body)
    wanted = context.read(body, SandboxPayment)
    charge = Charge(currency.code, currency.exponent, amount, context.now_ms)
    payment = CardPayment(merchant, card, charge, behaviour_of(wanted.test), wanted.custom)
    return done_reply(await take_payment(context, call, payment, shown))


async def _merchant(context: ApiContext, call: Call, key: object) -> CachedMerchant:
    if not isinstance(key, str) or not 0 < len(key) <= PUBLIC_KEY_LENGTH_MAX:
        raise attempt_failed(context.reference.errors, INVALID_KEY)
    await context.limits.admit(per_call("payments", key=key, address=call.address))
    merchant = await context.entities.merchant_by_public_key(key)
    if merchant is None:
        raise attempt_failed(context.reference.errors, INVALID_KEY)
    if not merchant.is_test:
        why = "is of a live merchant, which has no card network yet: the sandbox is for test ones"
        raise BadRequest(FieldError("key", why))
    return merchant


def _without_number(body: Body) -> Body:
    """The request as its fingerprint is made of it, which is stored: of the card's number what a
    summary keeps, and no code."""
    card = body.fields.get("card")
    if not isinstance(card, Mapping):
        return body
    digits = "".join(filter(str.isdecimal, str(card.get("number"))))
    kept = {**card, "number": [digits[:6], digits[-4:]], "code": bool(card.get("code"))}
    return Body({**body.fields, "card": kept})


def _money(context: ApiContext, body: Body) -> tuple[CurrencyEntry, int]:
    errors = context.reference.errors
    code, amount = body.fields.get("currency"), body.fields.get("amount")
    if code is None or code == "":
        raise attempt_failed(errors, MISSING_CURRENCY)
    currency = constraints.currency(code, context.reference.currencies)
    if isinstance(currency, FieldError):
        raise attempt_failed(errors, INVALID_CURRENCY)
    if amount is None or amount == "":
        raise attempt_failed(errors, MISSING_AMOUNT)
    minor = constraints.amount(amount, is_form=body.is_form)
    if isinstance(minor, FieldError):
        raise attempt_failed(errors, INVALID_AMOUNT)
    return currency, minor


def _card(context: ApiContext, body: Body) -> PlainCard:
    card = body.fields.get("card")
    fields = card if isinstance(card, Mapping) else {}
    expiry = fields.get("expiry")
    parts = expiry if isinstance(expiry, Mapping) else {}
    found = read_card(
        fields.get("number"), parts.get("month"), parts.get("year"), fields.get("code")
    )
    if isinstance(found, CardProblem):
        raise attempt_failed(context.reference.errors, found.code)
    return found


async def create_sandbox_dispute(context: ApiContext, call: Call) -> Reply:
    body = await call.body()
    wanted = context.read(body, SandboxDispute)
    merchant = await _of_transaction(context, call, wanted.transactionId)
    command = OpenDispute(
        transaction=wanted.transactionId,
        amount=wanted.amount,
        reason_code=wanted.reason.code,
        reason_title=wanted.reason.title or "Disputed in the sandbox",
        due_ms=context.now_ms + DISPUTE_DAYS * DAY_MS,
        dispute_rate=context.exchange_rate(merchant.pricing.dispute.currency, merchant.currency),
    )
    return done_reply(await context.execute(call, merchant.id, command, body))


async def win_sandbox_dispute(context: ApiContext, call: Call) -> Reply:
    return await _decide(context, call, is_won=True)


async def lose_sandbox_dispute(context: ApiContext, call: Call) -> Reply:
    return await _decide(context, call, is_won=False)


async def _decide(context: ApiContext, call: Call, *, is_won: bool) -> Reply:
    row = await context.access_entity(call, "dispute", call.ids[0])
    merchant = await context.entities.merchant(row.book)
    _require_test(merchant)
    return done_reply(await context.execute(call, row.book, DecideDispute(row.id, is_won)))


async def create_sandbox_fraud(context: ApiContext, call: Call) -> Reply:
    body = await call.body()
    wanted = context.read(body, SandboxFraud)
    merchant = await _of_transaction(context, call, wanted.transactionId)
    command = ReportFraud(wanted.transactionId, context.now_ms, wanted.reason)
    return done_reply(await context.execute(call, merchant.id, command, body))


async def create_sandbox_payout(context: ApiContext, call: Call) -> Reply:
    body = await call.body()
    wanted = context.read(body, PayoutCreate)
    merchant = await context.access_merchant(call, wanted.merchantId)
    _require_test(merchant)
    command = PayOut(wanted.amount, wanted.description)
    return done_reply(await context.execute(call, merchant.id, command, body))


async def _of_transaction(context: ApiContext, call: Call, transaction: EntityId) -> CachedMerchant:
    entered = await context.access_transaction(call, transaction)
    _require_test(entered.merchant)
    return entered.merchant


def _require_test(merchant: CachedMerchant) -> None:
    if not merchant.is_test:
        raise Forbidden("the sandbox is for test merchants")


ROUTES = (
    Route(
        "POST",
        "/sandbox/payments",
        create_sandbox_payment,
        "sandbox",
        "Pay by card, as a customer of a test merchant",
        request="SandboxPayment",
        reply="TransactionCreated",
        status=201,
        description="Takes no credentials: `key` is the merchant's public key. Cards: "
        "4100 0000 0000 0000 is good, 4200 0000 0000 0000 is not; real numbers are refused.",
        access=Access.NOBODY,
        body_bytes_max=PAYMENT_BODY_BYTES_MAX,
    ),
    Route(
        "POST",
        "/sandbox/disputes",
        create_sandbox_dispute,
        "sandbox",
        "Open a dispute",
        request="SandboxDispute",
        reply="DisputeReply",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/sandbox/disputes/{disputeId}/won",
        win_sandbox_dispute,
        "sandbox",
        "Win a dispute",
        reply="DisputeReply",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/sandbox/disputes/{disputeId}/lost",
        lose_sandbox_dispute,
        "sandbox",
        "Lose a dispute",
        reply="DisputeReply",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/sandbox/frauds",
        create_sandbox_fraud,
        "sandbox",
        "Report a fraud",
        request="SandboxFraud",
        reply="FraudReply",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/sandbox/payouts",
        create_sandbox_payout,
        "sandbox",
        "Pay out of the balance",
        request="PayoutCreate",
        reply="LineReply",
        status=201,
        statuses=CHANGES,
    ),
)
