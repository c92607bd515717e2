"""Payments in a browser, step by step: the vault, the payment, its challenges (part H).

    POST /vault                             a number or a code -> its token
    POST /payments                          the payment, and hints -> challenges, or its transaction
    POST /payments/challenges/STEP/TYPE     the same body -> hints, or how to get them

Nobody has credentials here. Nothing is kept between the calls: what was done so far is in the hints
that the client sends along (checkout/hints.py), and the card in its tokens.
"""

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.payments.api.bodies.checkout_requests import VaultCreate
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.checkout.entered_payment import (
    opened_card,
    read_checkout,
    versioned_body,
)
from tollgate.serve.payments.api.checkout.step_effects import (
    ChallengeReply,
    Hints,
    take_step,
    upcoming_step,
)
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.rejections import BadRequest, NotFound
from tollgate.serve.payments.api.replies import Reply, encode_json
from tollgate.serve.payments.api.router import Access, Route, Voice
from tollgate.serve.payments.checkout import refusals
from tollgate.serve.payments.checkout.refusals import CheckoutCode, CheckoutRefused
from tollgate.serve.payments.checkout.steps import ChallengeType, Step
from tollgate.serve.payments.network.card import CardProblem

# Of callers without credentials: custom data of the largest, each byte escaped, and hints.
CHECKOUT_BODY_BYTES_MAX = 384 * 1024
VAULT_BODY_BYTES_MAX = 1_024
CHALLENGES = "/payments/challenges"


async def create_token(context: ApiContext, call: Call) -> Reply:
    body = await versioned_body(context, call, "vault")
    try:
        wanted = context.read(body, VaultCreate)
    except BadRequest:
        # What came is not repeated: whatever it is, it may be a card's number.
        why = "send type, pcn or pcsc, and value, the number or the code as a text; nothing else"
        raise CheckoutRefused(CheckoutCode.REQUEST_INVALID, why) from None
    token = context.checkout.vault.seal(wanted.type, wanted.value)
    if isinstance(token, CardProblem):
        raise refusals.of_card_problem(token)
    return _reply({"token": token}, 201)


async def create_payment(context: ApiContext, call: Call) -> Reply:
    entered = await read_checkout(context, call)
    upcoming = await upcoming_step(context, entered)
    if upcoming is None:
        made = entered.progress.found[Step.AUTHORISATION].transaction
        return _reply({"authorizationId": made})
    opened_card(context, entered)
    step, types = upcoming
    challenges = [
        {"name": step, "type": kind, "path": f"{CHALLENGES}/{step}/{kind}"} for kind in types
    ]
    return _reply({"challenges": challenges})


async def take_challenge(context: ApiContext, call: Call) -> Reply:
    try:
        step, kind = Step(call.ids[0]), ChallengeType(call.ids[1])
    except ValueError:
        raise NotFound("there is no such challenge") from None
    entered = await read_checkout(context, call)
    upcoming = await upcoming_step(context, entered)
    if upcoming is None or step is not upcoming[0] or kind not in upcoming[1]:
        why = "this step is not the next one: ask POST /payments which is, with all hints"
        raise CheckoutRefused(CheckoutCode.CHALLENGE_UNAVAILABLE, why)
    taken = await take_step(context, call, entered, step, kind)
    if isinstance(taken, ChallengeReply):
        return _reply(taken.fields)
    assert isinstance(taken, Hints), "a step gives hints, or says how to get them"
    hints = context.checkout.hints.issue(entered.id, context.now_ms, taken.steps)
    return _reply(taken.more | {"hints": hints})


def _reply(fields: Json, status: int = 200) -> Reply:
    """Clients of this API read lines."""
    return Reply(status, encode_json(fields) + b"\n")


ROUTES = (
    Route(
        "POST",
        "/vault",
        create_token,
        "checkout",
        "Seal a card's number or security code as a token",
        request="VaultCreate",
        reply="TokenReply",
        status=201,
        description="Tokens are good for 15 minutes, and for one payment.",
        access=Access.NOBODY,
        body_bytes_max=VAULT_BODY_BYTES_MAX,
        takes_key=False,
        voice=Voice.BROWSERS,
    ),
    Route(
        "POST",
        "/payments",
        create_payment,
        "checkout",
        "Pay by card, as a customer, step by step",
        request="CheckoutPayment",
        reply="CheckoutProgress",
        description="Answers with `challenges`, the best first: post the same body to the `path` "
        "of one, add the hints that it gives, and post here again, until there is an "
        "`authorizationId`: the id of the transaction.",
        access=Access.NOBODY,
        body_bytes_max=CHECKOUT_BODY_BYTES_MAX,
        takes_key=False,
        voice=Voice.BROWSERS,
    ),
    Route(
        "POST",
        f"{CHALLENGES}/{{step}}/{{type}}",
        take_challenge,
        "checkout",
        "Take a step of a payment",
        request="CheckoutPayment",
        reply="ChallengeProgress",
        description="Take the path from the reply of POST /payments.",
        access=Access.NOBODY,
        body_bytes_max=CHECKOUT_BODY_BYTES_MAX,
        takes_key=False,
        statuses=frozenset({404}),
        voice=Voice.BROWSERS,
    ),
)
