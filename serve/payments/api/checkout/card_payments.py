"""A customer's payment by card, whichever way it came in: authorise it, then order the transaction.

Step by step, by a plain form, in the sandbox: the ways differ in how they come to a card and an
amount, and in how they say no. From here on there is one.
"""

from dataclasses import dataclass

from msgspec.json import decode

from tollgate.actors.ledger.law.commands import Authorise
from tollgate.actors.ledger.law.outcomes import Done, DoneKind
from tollgate.actors.ledger.law.values import NetworkAction
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.entity_cache import CachedMerchant, CachedTransaction
from tollgate.serve.payments.api.rejections import BadRequest, FieldError
from tollgate.serve.payments.api.routes.network_moves import move
from tollgate.serve.payments.network.card import PlainCard
from tollgate.serve.payments.network.card_network import CardNetwork, Charge, PaymentRefused
from tollgate.serve.payments.network.simulated_behaviour import CardBehaviour


@dataclass(frozen=True, slots=True)
class CardPayment:
    """A payment that can be tried. `custom`: the merchant's data, as it is kept."""

    merchant: CachedMerchant
    card: PlainCard
    charge: Charge
    test: CardBehaviour
    custom: str


def network_of(context: ApiContext, merchant: CachedMerchant) -> CardNetwork:
    """The card network of a merchant. Raises BadRequest: there is none."""
    network = context.networks.of(is_test=merchant.is_test)
    if isinstance(network, PaymentRefused):
        raise BadRequest(FieldError(network.field, network.message))
    return network


async def take_payment(
    context: ApiContext,
    call: Call,
    payment: CardPayment,
    shown: Body,
    idempotency_key: str | None = None,
) -> Done:
    """The transaction, or the failed attempt, which is stored as one. `shown`: the request as its
    fingerprint is made of it, without card data. Raises the refusal of what was not tried."""
    network, charge = network_of(context, payment.merchant), payment.charge
    verdict = await network.authorise(payment.card, charge, payment.test)
    if isinstance(verdict, PaymentRefused):
        raise BadRequest(FieldError(verdict.field, verdict.message))
    command = Authorise(
        currency=charge.currency,
        exponent=charge.exponent,
        amount=charge.amount,
        card=verdict.card,
        descriptor="",
        custom=payment.custom,
        error=verdict.error,
        tds=verdict.tds,
    )
    book = payment.merchant.id
    is_immediate = network.is_immediate(NetworkAction.AUTHORISE, charge.amount)
    if verdict.error is None and not is_immediate:
        return await move(
            *(context, call, book, command, shown, network, payment.card),
            idempotency_key=idempotency_key,
        )
    done = await context.execute(call, book, command, shown, idempotency_key=idempotency_key)
    if done.kind is DoneKind.MADE:
        learned = CachedTransaction(book, charge.currency)
        context.entities.learn(made_transaction(done), learned)
    return done


def made_transaction(done: Done) -> str:
    """The id of the transaction that was made."""
    return decode(done.body, type=dict[str, dict[str, str]])["transaction"]["id"]
