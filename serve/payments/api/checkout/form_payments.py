"""A customer's payment in one call, the card in it: the plain form, and the sandbox's (part H).

Nobody can be asked here: a bank that would ask is error 30 for the plain form. In the sandbox the
verdict of 3-D Secure is the one of the `test` object, as if somebody had been asked.
"""

from collections.abc import Mapping
from dataclasses import replace

from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.bodies.requests import SandboxPayment, behaviour_of
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.checkout.card_payments import (
    CardPayment,
    network_of,
    take_payment,
)
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.entity_cache import CachedMerchant
from tollgate.serve.payments.api.limits.calls import per_call
from tollgate.serve.payments.api.orders import attempt_failed
from tollgate.serve.payments.api.rejections import BadRequest, FieldError
from tollgate.serve.payments.api.replies import Reply, done_reply
from tollgate.serve.payments.api.router import Access, Route
from tollgate.serve.payments.network.card import CardProblem, PlainCard, read_card
from tollgate.serve.payments.network.card_network import Charge
from tollgate.serve.payments.network.simulated_behaviour import CardBehaviour, TdsStatus
from tollgate.serve.payments.reference.currencies import CurrencyEntry

INVALID_CURRENCY, MISSING_CURRENCY = 1, 16
INVALID_AMOUNT, MISSING_AMOUNT = 14, 15
INVALID_KEY = 26
PUBLIC_KEY_LENGTH_MAX = 256
# Of callers without credentials: custom data of the largest, each byte percent-encoded, and a card.
PAYMENT_BODY_BYTES_MAX = 192 * 1024


async def create_sandbox_payment(context: ApiContext, call: Call) -> Reply:
    """A test merchant's, by its public key."""
    body, merchant = await _entered(context, call)
    if not merchant.is_test:
        why = "is of a live merchant, and the sandbox is for test ones"
        raise BadRequest(FieldError("key", why))
    return await _pay(context, call, body, merchant, is_asked=True)


async def create_form_payment(context: ApiContext, call: Call) -> Reply:
    """Any merchant's, by its public key."""
    body, merchant = await _entered(context, call)
    if not merchant.is_test and body.fields.get("test"):
        raise BadRequest(FieldError("test", "is for test merchants; the key is of a live one"))
    return await _pay(context, call, body, merchant, is_asked=False)


async def _entered(context: ApiContext, call: Call) -> tuple[Body, CachedMerchant]:
    await context.limits.admit(per_call("payments", address=call.address))
    body = await call.body()
    key = body.fields.get("key")
    if not isinstance(key, str) or not 0 < len(key) <= PUBLIC_KEY_LENGTH_MAX:
        raise attempt_failed(context.reference.errors, INVALID_KEY)
    await context.limits.admit(per_call("payments", key=key, address=call.address))
    merchant = await context.entities.merchant_by_public_key(key)
    if merchant is None:
        raise attempt_failed(context.reference.errors, INVALID_KEY)
    return body, merchant


async def _pay(
    context: ApiContext, call: Call, body: Body, merchant: CachedMerchant, *, is_asked: bool
) -> Reply:
    shown = _without_number(body)
    if (told := await context.first_reply(call, merchant.id, shown)) is not None:
        return told
    network_of(context, merchant)
    await context.require_approval(merchant)
    currency, amount = _money(context, body)
    card = _card(context, body)
    wanted = context.read(body, SandboxPayment)
    test = behaviour_of(wanted.test)
    charge = Charge(currency.code, currency.exponent, amount, context.now_ms)
    payment = CardPayment(
        merchant, card, charge, test if is_asked else _unasked(test), wanted.custom
    )
    return done_reply(await take_payment(context, call, payment, shown))


def _unasked(test: CardBehaviour) -> CardBehaviour:
    """The same bank, where the holder cannot be asked."""
    if test.tds is None or not test.tds.has_challenge:
        return test
    return replace(test, tds=replace(test.tds, status=TdsStatus.UNAVAILABLE))


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


ROUTES = (
    Route(
        "POST",
        "/transactions",
        create_form_payment,
        "checkout",
        "Pay by card, as a customer, with a plain form",
        request="SandboxPayment",
        reply="TransactionCreated",
        status=201,
        description="Takes no credentials: `key` is the merchant's public key. A bank that wants "
        "to ask the holder is error 30: then POST /payments is the way.",
        access=Access.NOBODY,
        body_bytes_max=PAYMENT_BODY_BYTES_MAX,
    ),
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
)
