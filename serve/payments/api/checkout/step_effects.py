"""The steps of a payment in a browser, each as what it does (checkout/steps.py has their order).

    authorize-integration   binds the card's tokens to this payment
    tds-enrolled            asks the bank whether the card takes part in 3-D Secure
    tds-fingerprint         lets the bank recognise the browser, in a frame that is not seen
    tds-pre-challenge       asks the bank for its verdict, or whether it asks the holder
    tds-challenge           the bank asks the holder: in a frame, on a page of its own, by its app
    tds-post-challenge      asks the bank for its verdict on the answer
    authorize               asks the card network, and makes the transaction

A step that makes later ones needless gives their hints, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from msgspec import Struct
from msgspec.json import decode

from tollgate.actors.kernel.json_value import Json
from tollgate.actors.ledger.book.documents import moment
from tollgate.actors.ledger.law.outcomes import Done, DoneKind
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.checkout.bank_frames import bank_frame, bank_url, method_frame
from tollgate.serve.payments.api.checkout.card_payments import (
    CardPayment,
    made_transaction,
    take_payment,
)
from tollgate.serve.payments.api.checkout.entered_payment import CheckoutCall, opened_card
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.limits.calls import per_call
from tollgate.serve.payments.checkout import refusals
from tollgate.serve.payments.checkout.frames.state import answer_name
from tollgate.serve.payments.checkout.hints import Facts
from tollgate.serve.payments.checkout.refusals import CheckoutCode, CheckoutRefused
from tollgate.serve.payments.checkout.steps import (
    TYPES_OF,
    ChallengeType,
    Step,
    steps_between,
)
from tollgate.serve.payments.checkout.three_d_secure import BrowserMethod, Enrolment, HolderAnswer
from tollgate.serve.payments.network.tds_result import TdsResult, TdsVerdict

HAS_METHOD = "method"
ASKED_ON_PAGE, ASKED_BY_APP = "page", "app"
APP_ANSWERS_AFTER_MS = 2_000
POLL_INTERVAL_MS = 1_000


@dataclass(frozen=True, slots=True)
class Hints:
    """The steps that were taken. `more`: further fields of the reply."""

    steps: Sequence[tuple[Step, Facts]]
    more: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChallengeReply:
    """How to get hints, which are not given yet."""

    fields: Json


async def upcoming_step(
    context: ApiContext, entered: CheckoutCall
) -> tuple[Step, Sequence[ChallengeType]] | None:
    """The next step, and the ways to take it, the best first; None: all are taken."""
    found, step = entered.progress.found, entered.progress.next_step
    if step is None:
        return None
    if step is Step.FINGERPRINT and found[Step.ENROLMENT].word != HAS_METHOD:
        return step, (ChallengeType.FETCH,)
    if step is Step.POST_CHALLENGE and await _answer(context, entered) is None:
        return Step.CHALLENGE, (ChallengeType.POLL,)
    return step, TYPES_OF[step]


async def take_step(
    context: ApiContext, call: Call, entered: CheckoutCall, step: Step, kind: ChallengeType
) -> Hints | ChallengeReply:
    """Takes a step that may be taken now. Raises CheckoutRefused, and what stops a payment."""
    match step:
        case Step.INTEGRATION:
            return await _bind(context, call, entered)
        case Step.ENROLMENT:
            return await _enrol(context, entered)
        case Step.FINGERPRINT:
            return _recognise(context, call, entered, kind)
        case Step.PRE_CHALLENGE:
            return await _begin(context, entered)
        case Step.CHALLENGE:
            return await _ask(context, call, entered, kind)
        case Step.POST_CHALLENGE:
            return await _finish(context, entered)
        case Step.AUTHORISATION:
            return await _authorise(context, call, entered)


async def _bind(context: ApiContext, call: Call, entered: CheckoutCall) -> Hints:
    await context.limits.admit(per_call("payments", key=entered.key, address=call.address))
    tokens = opened_card(context, entered).tokens
    if not await context.checkout.uses.use(tokens, entered.id):
        why = "a token was used for another payment: make new ones"
        raise CheckoutRefused(CheckoutCode.TOKEN_INVALID, why)
    return Hints([(Step.INTEGRATION, Facts())])


async def _enrol(context: ApiContext, entered: CheckoutCall) -> Hints:
    card = opened_card(context, entered).card
    found = await context.checkout.bank(is_test=entered.merchant.is_test).enrol(
        card, entered.purchase
    )
    if isinstance(found, TdsResult):
        return _verdict_from(Step.ENROLMENT, found)
    word = HAS_METHOD if found.has_method else ""
    facts = Facts(version=found.version, server=found.server_transaction, word=word)
    return Hints([(Step.ENROLMENT, facts)])


def _recognise(
    context: ApiContext, call: Call, entered: CheckoutCall, kind: ChallengeType
) -> Hints | ChallengeReply:
    if kind is ChallengeType.BACKGROUND_FRAME:
        return ChallengeReply(method_frame(context, call, entered))
    has_method = entered.progress.found[Step.ENROLMENT].word == HAS_METHOD
    method = BrowserMethod.TIMED_OUT if has_method else BrowserMethod.NONE
    return Hints([(Step.FINGERPRINT, Facts(word=method.value))])


async def _begin(context: ApiContext, entered: CheckoutCall) -> Hints:
    found = entered.progress.found
    method = BrowserMethod(found[Step.FINGERPRINT].word)
    bank = context.checkout.bank(is_test=entered.merchant.is_test)
    begun = await bank.begin(enrolment_of(entered), method, entered.purchase)
    if isinstance(begun, TdsResult):
        return _verdict_from(Step.PRE_CHALLENGE, begun)
    return Hints([(Step.PRE_CHALLENGE, Facts())])


async def _ask(
    context: ApiContext, call: Call, entered: CheckoutCall, kind: ChallengeType
) -> Hints | ChallengeReply:
    match kind:
        case ChallengeType.REDIRECT:
            more = {"url": bank_url(context, call, entered)}
            return Hints([(Step.CHALLENGE, Facts(word=ASKED_ON_PAGE))], more)
        case ChallengeType.POLL:
            return await _poll(context, entered)
    return ChallengeReply(bank_frame(context, call, entered))


async def _poll(context: ApiContext, entered: CheckoutCall) -> Hints:
    """The hint at once; and while there is no answer, none again."""
    asked = entered.progress.found.get(Step.CHALLENGE)
    not_before_ms = context.now_ms + POLL_INTERVAL_MS
    steps: list[tuple[Step, Facts]] = []
    if asked is None:
        not_before_ms = context.now_ms + APP_ANSWERS_AFTER_MS
        steps = [(Step.CHALLENGE, Facts(word=ASKED_BY_APP, at_ms=not_before_ms))]
    elif await _answer(context, entered) is not None:
        steps = [(Step.CHALLENGE, asked)]
    return Hints(steps, {"notBefore": moment(not_before_ms), "interval": POLL_INTERVAL_MS})


async def _answer(context: ApiContext, entered: CheckoutCall) -> HolderAnswer | None:
    """The holder's answer; None: there is none yet."""
    asked = entered.progress.found[Step.CHALLENGE]
    if asked.word == ASKED_BY_APP:
        return HolderAnswer.CONFIRMED if context.now_ms >= asked.at_ms else None
    if asked.word != ASKED_ON_PAGE:
        return HolderAnswer(asked.word)
    server = entered.progress.found[Step.ENROLMENT].server
    given = await context.checkout.uses.find(answer_name(server))
    return None if given is None else HolderAnswer(given)


async def _finish(context: ApiContext, entered: CheckoutCall) -> Hints:
    answer = await _answer(context, entered)
    assert answer is not None, "without one the step is not the next"
    bank = context.checkout.bank(is_test=entered.merchant.is_test)
    verdict = await bank.finish(enrolment_of(entered), answer, entered.purchase)
    return _verdict_from(Step.POST_CHALLENGE, verdict)


async def _authorise(context: ApiContext, call: Call, entered: CheckoutCall) -> Hints:
    """The payment's id is its idempotency key: however often this is asked, it is done once."""
    shown, key = Body({"payment": entered.id}), f"checkout-{entered.id}"
    done = await context.first_outcome(call, entered.merchant.id, shown, key)
    if done is None:
        charge = replace(entered.purchase.charge, authentication=_authentication(entered))
        payment = CardPayment(
            entered.merchant,
            opened_card(context, entered).card,
            charge,
            entered.test,
            entered.wanted.custom,
        )
        done = await take_payment(context, call, payment, shown, key)
    if done.kind is DoneKind.ATTEMPT_FAILED:
        raise _failed(done, entered)
    return Hints([(Step.AUTHORISATION, Facts(transaction=made_transaction(done)))])


def _failed(done: Done, entered: CheckoutCall) -> CheckoutRefused:
    stored = decode(done.body, type=_StoredError)
    return refusals.of_processing_error(stored.code, stored.message, entered.test)


class _StoredError(Struct):
    code: int
    message: str


def _verdict_from(step: Step, verdict: TdsResult) -> Hints:
    """The hints of a step and of all that the bank's verdict makes needless."""
    told = Facts(
        version=verdict.version,
        server=verdict.server_transaction,
        word=verdict.verdict.value,
        eci=verdict.eci,
        cryptogram=verdict.cryptogram,
    )
    needless = steps_between(step, Step.POST_CHALLENGE)
    skipped = [(each, Facts(server=verdict.server_transaction)) for each in needless]
    return Hints([*skipped, (Step.POST_CHALLENGE, told)])


def _authentication(entered: CheckoutCall) -> TdsResult:
    told = entered.progress.found[Step.POST_CHALLENGE]
    return TdsResult(TdsVerdict(told.word), told.version, told.server, told.eci, told.cryptogram)


def enrolment_of(entered: CheckoutCall) -> Enrolment:
    """The enrolment that a payment's hints tell of."""
    told = entered.progress.found[Step.ENROLMENT]
    return Enrolment(told.version, told.server, told.word == HAS_METHOD)
