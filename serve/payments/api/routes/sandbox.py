"""Test merchants' own world: payments by card, disputes, frauds, payouts, as they come (part H).

Nothing here works for a live merchant. A card's number and code are read, asked about and let go
of: what is ordered, logged and stored is the network's summary.
"""

from collections.abc import Mapping

from msgspec.json import decode

from tollgate.actors.ledger.law.commands import (
    Authorise,
    DecideDispute,
    OpenDispute,
    PayOut,
    ReportFraud,
)
from tollgate.actors.ledger.law.values import EntityId
from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.bodies.constraints import FieldError
from tollgate.serve.payments.api.bodies.fields import BodyFields
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.call_limits import per_public_key
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.entity_cache import CachedMerchant, CachedTransaction
from tollgate.serve.payments.api.orders import attempt_failed, done_reply
from tollgate.serve.payments.api.rejections import BadRequest, Forbidden
from tollgate.serve.payments.api.replies import Reply
from tollgate.serve.payments.api.router import Access, Route
from tollgate.serve.payments.network.card import CardProblem, PlainCard, read_card
from tollgate.serve.payments.network.port import CardNetwork, Charge, PaymentRefused
from tollgate.serve.payments.network.simulated_behaviour import CardBehaviour, read_card_behaviour
from tollgate.serve.payments.reference.currencies import CurrencyEntry

INVALID_CURRENCY, MISSING_CURRENCY = 1, 16
INVALID_AMOUNT, MISSING_AMOUNT = 14, 15
INVALID_KEY = 26
PUBLIC_KEY_LENGTH_MAX = 256
DISPUTE_DAYS = 14
DAY_MS = 86_400_000
FRAUD_REASON_MAX = 8
DIGITS_MAX = 4
CHANGES = frozenset({403, 404, 409})


async def pay(context: ApiContext, call: Call) -> Reply:
    """A customer's payment, by the merchant's public key."""
    body = await call.body()
    merchant = await _merchant(context, call, body)
    network = context.networks.of(is_test=True)
    if isinstance(network, PaymentRefused):
        raise BadRequest(FieldError(network.field, network.message))
    currency, amount = _money(context, body)
    card = _card(context, body)
    fields = BodyFields(body)
    custom = fields.may("custom", constraints.custom, "")
    behaviour = _behaviour(fields, is_form=body.is_form)
    fields.check()
    charge = Charge(currency.code, currency.exponent, amount, context.now_ms)
    command = await _authorised(network, card, charge, behaviour, custom)
    # The fingerprint is made of what is ordered: of the card that is its summary.
    shown = Body({"key": body.fields.get("key"), "order": repr(command)})
    done = await context.order(call, merchant.id, command, shown)
    if done.status == 201:
        made = decode(done.body, type=dict[str, dict[str, str]])["transaction"]["id"]
        context.entities.learn(made, CachedTransaction(merchant.id, currency.code))
    return done_reply(done)


async def _merchant(context: ApiContext, call: Call, body: Body) -> CachedMerchant:
    key = body.fields.get("key")
    if not isinstance(key, str) or not 0 < len(key) <= PUBLIC_KEY_LENGTH_MAX:
        raise attempt_failed(context.reference.errors, INVALID_KEY)
    await context.limits.admit(per_public_key(key, call.address))
    merchant = await context.entities.merchant_by_public_key(key)
    if merchant is None:
        raise attempt_failed(context.reference.errors, INVALID_KEY)
    if not merchant.is_test:
        raise BadRequest(FieldError("key", "is of a live merchant: the sandbox is for test ones"))
    return merchant


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


def _behaviour(fields: BodyFields, *, is_form: bool) -> CardBehaviour:
    def read(value: object, field: str) -> CardBehaviour | FieldError:
        del field  # (its fields are named below `test`)
        return read_card_behaviour(value, is_form=is_form)

    return fields.may("test", read, CardBehaviour())


async def _authorised(
    network: CardNetwork,
    card: PlainCard,
    charge: Charge,
    behaviour: CardBehaviour,
    custom: str,
) -> Authorise:
    verdict = await network.authorise(card, charge, behaviour)
    if isinstance(verdict, PaymentRefused):
        raise BadRequest(FieldError(verdict.field, verdict.message))
    return Authorise(
        currency=charge.currency,
        exponent=charge.exponent,
        amount=charge.amount,
        card=verdict.card,
        descriptor="",
        custom=custom,
        error=verdict.error,
        tds=verdict.tds,
    )


async def open_dispute(context: ApiContext, call: Call) -> Reply:
    body = await call.body()
    fields = BodyFields(body)
    transaction = fields.reference("transactionId")
    amount = fields.amount()
    code = fields.may("reason.code", _reason_code, 0)
    title = fields.may("reason.title", constraints.text, "")
    fields.check()
    merchant = await _of_transaction(context, call, transaction)
    command = OpenDispute(
        transaction=transaction,
        amount=amount,
        reason_code=code,
        reason_title=title or "Disputed in the sandbox",
        due_ms=context.now_ms + DISPUTE_DAYS * DAY_MS,
        dispute_rate=context.rate(merchant.pricing.dispute.currency, merchant.currency),
    )
    return done_reply(await context.order(call, merchant.id, command, body))


async def win_dispute(context: ApiContext, call: Call) -> Reply:
    return await _decide(context, call, is_won=True)


async def lose_dispute(context: ApiContext, call: Call) -> Reply:
    return await _decide(context, call, is_won=False)


async def _decide(context: ApiContext, call: Call, *, is_won: bool) -> Reply:
    row = await context.access_entity(call, "dispute", call.ids[0])
    merchant = await context.entities.merchant(row.book)
    _require_test(merchant)
    return done_reply(await context.order(call, row.book, DecideDispute(row.id, is_won)))


async def report_fraud(context: ApiContext, call: Call) -> Reply:
    body = await call.body()
    fields = BodyFields(body)
    transaction = fields.reference("transactionId")
    reason = fields.may("reason", _fraud_reason, None)
    fields.check()
    merchant = await _of_transaction(context, call, transaction)
    command = ReportFraud(transaction, context.now_ms, reason)
    return done_reply(await context.order(call, merchant.id, command, body))


async def pay_out(context: ApiContext, call: Call) -> Reply:
    body = await call.body()
    fields = BodyFields(body)
    wanted = fields.reference("merchantId")
    amount = fields.amount()
    description = fields.may("description", constraints.text, "")
    fields.check()
    merchant = await context.enter(call, wanted)
    _require_test(merchant)
    return done_reply(await context.order(call, merchant.id, PayOut(amount, description), body))


async def _of_transaction(context: ApiContext, call: Call, transaction: EntityId) -> CachedMerchant:
    entered = await context.access_transaction(call, transaction)
    _require_test(entered.merchant)
    return entered.merchant


def _require_test(merchant: CachedMerchant) -> None:
    if not merchant.is_test:
        raise Forbidden("the sandbox is for test merchants")


def _reason_code(value: object, field: str) -> int | FieldError:
    return _whole(value, field, 9_999)


def _fraud_reason(value: object, field: str) -> int | FieldError | None:
    return _whole(value, field, FRAUD_REASON_MAX)


def _whole(value: object, field: str, highest: int) -> int | FieldError:
    """In forms, digits."""
    number = (
        int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 5 else value
    )
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= highest:
        return FieldError(field, f"must be a whole number from 0 to {highest}")
    return number


ROUTES = (
    Route(
        "POST",
        "/sandbox/payments",
        pay,
        "sandbox",
        "Pay by card, as a customer of a test merchant",
        request="SandboxPayment",
        reply="TransactionCreated",
        status=201,
        description="Takes no credentials: `key` is the merchant's public key. Cards: "
        "4100 0000 0000 0000 is good, 4200 0000 0000 0000 is not; real numbers are refused.",
        access=Access.NOBODY,
    ),
    Route(
        "POST",
        "/sandbox/disputes",
        open_dispute,
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
        win_dispute,
        "sandbox",
        "Win a dispute",
        reply="DisputeReply",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/sandbox/disputes/{disputeId}/lost",
        lose_dispute,
        "sandbox",
        "Lose a dispute",
        reply="DisputeReply",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/sandbox/frauds",
        report_fraud,
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
        pay_out,
        "sandbox",
        "Pay out of the balance",
        request="PayoutCreate",
        reply="LineReply",
        status=201,
        statuses=CHANGES,
    ),
)
