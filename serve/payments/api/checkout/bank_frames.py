"""The pages of played banks, as challenges name them: where they are, and what they must know."""

from urllib.parse import quote

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.checkout.entered_payment import CheckoutCall
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.checkout.frames.state import (
    BANK_HEIGHT,
    BANK_WIDTH,
    FRAMES,
    METHOD_TIMEOUT_MS,
    FrameKind,
    FrameState,
    state_until_ms,
)
from tollgate.serve.payments.checkout.steps import Step
from tollgate.serve.payments.network.card_network import Charge
from tollgate.serve.payments.network.simulated_behaviour import Fingerprint, TdsFingerprint


def method_frame(context: ApiContext, call: Call, entered: CheckoutCall) -> Json:
    """The page that recognises the browser; nobody sees it."""
    frame = _frame(context, call, entered, FrameKind.METHOD)
    return frame | {"width": 1, "height": 1, "timeout": METHOD_TIMEOUT_MS}


def bank_frame(context: ApiContext, call: Call, entered: CheckoutCall) -> Json:
    """The page on which the bank asks the holder."""
    frame = _frame(context, call, entered, FrameKind.BANK)
    return frame | {"width": BANK_WIDTH, "height": BANK_HEIGHT}


def bank_url(context: ApiContext, call: Call, entered: CheckoutCall) -> str:
    """The same page, for a browser that goes there."""
    state = _state(context, entered, FrameKind.BANK)
    return f"{call.base_url}{FRAMES}/{FrameKind.BANK}?state={quote(state)}"


def _frame(context: ApiContext, call: Call, entered: CheckoutCall, kind: FrameKind) -> Json:
    return {
        "action": f"{call.base_url}{FRAMES}/{kind}",
        "method": "POST",
        "fields": {"state": _state(context, entered, kind)},
    }


def _state(context: ApiContext, entered: CheckoutCall, kind: FrameKind) -> str:
    tds = entered.test.tds
    is_silent = entered.test.fingerprint is Fingerprint.TIMEOUT or (
        tds is not None and tds.fingerprint is TdsFingerprint.TIMEOUT
    )
    state = FrameState(
        kind=kind,
        payment=entered.id,
        server=entered.progress.found[Step.ENROLMENT].server,
        until_ms=state_until_ms(context.now_ms),
        amount=_shown(entered.purchase.charge),
        text=entered.wanted.text,
        is_silent=is_silent and kind is FrameKind.METHOD,
    )
    return context.checkout.frames.seal(state)


def _shown(charge: Charge) -> str:
    """An amount in major units, with all of its decimals."""
    major, minor = divmod(charge.amount, 10**charge.exponent)
    decimals = f".{minor:0{charge.exponent}}" if charge.exponent else ""
    return f"{major}{decimals} {charge.currency}"
