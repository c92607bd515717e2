"""A payment in a browser as one call tells of it: what is wanted, and how far it is (part H).

    version -> limits of the address -> body -> merchant -> mode -> amount -> hints -> tokens

Every call brings all of it again, so every call checks all of it again.
"""

from dataclasses import dataclass

from tollgate.actors.ledger.law.values import AMOUNT_MAX
from tollgate.serve.payments.api.bodies.checkout_requests import CheckoutMoney, CheckoutPayment
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.bodies.requests import behaviour_of
from tollgate.serve.payments.api.bodies.strict_json import canonical_json
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.entity_cache import CachedMerchant
from tollgate.serve.payments.api.limits.calls import LimitedCall, per_call
from tollgate.serve.payments.api.rejections import AttemptFailed, BadRequest
from tollgate.serve.payments.checkout import refusals
from tollgate.serve.payments.checkout.hints import HintProblem, StepsTaken
from tollgate.serve.payments.checkout.refusals import CheckoutCode, CheckoutRefused
from tollgate.serve.payments.checkout.three_d_secure import Purchase
from tollgate.serve.payments.checkout.vault import TokenCard, TokenProblem
from tollgate.serve.payments.network.card import CardProblem
from tollgate.serve.payments.network.card_network import Charge, PaymentRefused
from tollgate.serve.payments.network.simulated_behaviour import CardBehaviour
from tollgate.serve.payments.network.simulator import is_test_card

VERSION = "1"


@dataclass(frozen=True, slots=True)
class CheckoutCall:
    """`id`: the payment's, the same for all calls about it and for no other payment."""

    id: str
    key: str
    merchant: CachedMerchant
    wanted: CheckoutPayment
    purchase: Purchase
    progress: StepsTaken

    @property
    def test(self) -> CardBehaviour:
        """The behaviour of the simulated card and bank."""
        return self.purchase.test


async def read_checkout(context: ApiContext, call: Call) -> CheckoutCall:
    """The payment that a call is about. Raises CheckoutRefused, BadRequest, TooMany."""
    body = await versioned_body(context, call, "challenges")
    wanted = context.read(body, CheckoutPayment)
    merchant = await _merchant(context, wanted)
    purchase = Purchase(
        charge=_charge(wanted.amount, context.now_ms),
        is_recurring=wanted.plan or wanted.unplanned,
        test=behaviour_of(wanted.test),
    )
    identity = {name: value for name, value in body.fields.items() if name != "hints"}
    payment = context.checkout.hints.payment_id(canonical_json(identity))
    progress = context.checkout.hints.read(payment, context.now_ms, wanted.hints)
    if isinstance(progress, HintProblem):
        raise CheckoutRefused(CheckoutCode.CHALLENGE_UNAVAILABLE, progress.message)
    return CheckoutCall(payment, wanted.integration.key, merchant, wanted, purchase, progress)


async def versioned_body(context: ApiContext, call: Call, limit: LimitedCall) -> Body:
    """The body of a call that says which version it speaks. Raises CheckoutRefused, TooMany."""
    await context.limits.admit(per_call(limit, address=call.address))
    version = call.headers.accept_version.strip()
    if version != VERSION:
        how = f"send the header Accept-Version: {VERSION}"
        word = CheckoutCode.VERSION_UNSUPPORTED if version else CheckoutCode.VERSION_MISSING
        raise CheckoutRefused(word, how)
    try:
        return await call.body()
    except BadRequest as error:
        raise CheckoutRefused(CheckoutCode.BODY_INVALID, error.message) from None


def opened_card(context: ApiContext, entered: CheckoutCall) -> TokenCard:
    """The card of a payment's tokens. Raises CheckoutRefused."""
    wanted = entered.wanted.card
    expiry = wanted.expiry
    card = context.checkout.vault.card(wanted.number, wanted.code, expiry.month, expiry.year)
    match card:
        case TokenProblem():
            raise refusals.of_token_problem(card)
        case CardProblem():
            raise refusals.of_card_problem(card)
        case TokenCard(card=plain) if entered.merchant.is_test and not is_test_card(plain):
            why = "is not one of the test cards: in test mode use 4100 0000 0000 0000"
            raise CheckoutRefused(CheckoutCode.CARD_NUMBER_INVALID, f"card.number {why}")
    return card


async def _merchant(context: ApiContext, wanted: CheckoutPayment) -> CachedMerchant:
    merchant = await context.entities.merchant_by_public_key(wanted.integration.key)
    if merchant is None:
        why = "integration.key is no merchant's public key"
        raise CheckoutRefused(CheckoutCode.INTEGRATION_KEY_UNKNOWN, why)
    if merchant.is_test is not (wanted.test is not None):
        why = (
            "the merchant is a test merchant: send test"
            if merchant.is_test
            else "the merchant is a live one: send no test"
        )
        raise CheckoutRefused(CheckoutCode.TEST_MODE_MIXED, why)
    network = context.networks.of(is_test=merchant.is_test)
    if isinstance(network, PaymentRefused):
        raise CheckoutRefused(CheckoutCode.INTEGRATION_DISABLED, network.message)
    try:
        await context.require_approval(merchant)
    except AttemptFailed as error:
        raise CheckoutRefused(CheckoutCode.INTEGRATION_DISABLED, error.message) from None
    return merchant


def _charge(money: CheckoutMoney, now_ms: int) -> Charge:
    """The amount in minor units; one that is finer than they are is rounded up."""
    currency = money.currency
    whole, rest = divmod(money.value * 10**currency.exponent, 10**money.exponent)
    minor = whole + (rest > 0)
    if minor > AMOUNT_MAX:
        why = f"amount.value is more than {AMOUNT_MAX} minor units"
        raise CheckoutRefused(CheckoutCode.REQUEST_INVALID, why)
    return Charge(currency.code, currency.exponent, minor, now_ms)
