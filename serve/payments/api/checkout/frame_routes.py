"""Pages of played banks in frames (part H): for browsers alone, and in no document of the API.

    browser     says that the browser was recognised, at once, or never
    bank        asks the holder, takes the answer, and says that it was given

What is said are hints, to the page around the frame (frame.js). A page that stands alone, because
the browser was sent to it, says where to go on instead.
"""

from collections.abc import Mapping

from tollgate.serve.payments.api.bodies.strict_json import canonical_json
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.limits.calls import per_call
from tollgate.serve.payments.api.rejections import NotFound
from tollgate.serve.payments.api.replies import Reply
from tollgate.serve.payments.api.router import Access, Route
from tollgate.serve.payments.checkout.frames.pages import asset, page
from tollgate.serve.payments.checkout.frames.state import (
    FRAMES,
    FrameKind,
    FrameState,
    answer_name,
)
from tollgate.serve.payments.checkout.hints import Facts
from tollgate.serve.payments.checkout.steps import Step
from tollgate.serve.payments.checkout.three_d_secure import BrowserMethod, HolderAnswer

FRAME_BODY_BYTES_MAX = 32 * 1024
_ANSWERS = frozenset(each.value for each in HolderAnswer)
BY_STATE = (("state", "what the page must know, sealed"),)


async def recognise_browser(context: ApiContext, call: Call) -> Reply:
    fields = await _fields(context, call)
    state = _state(context, FrameKind.METHOD, fields)
    if state is None:
        return page("expired")
    if state.is_silent:
        return page("silent")
    return _told(context, state, Step.FINGERPRINT, BrowserMethod.DONE.value)


async def ask_holder(context: ApiContext, call: Call) -> Reply:
    fields = await _fields(context, call)
    state = _state(context, FrameKind.BANK, fields)
    if state is None:
        return page("expired")
    answer = fields.get("answer")
    if not call.is_write or answer not in _ANSWERS:
        return page("bank", amount=state.amount, text=state.text, state=str(fields["state"]))
    name = {answer_name(state.server): state.until_ms}
    if not await context.checkout.uses.use(name, str(answer)):
        return page("answered")
    return _told(context, state, Step.CHALLENGE, str(answer))


async def send_asset(context: ApiContext, call: Call) -> Reply:
    del context
    found = asset(call.ids[0])
    if found is None:
        raise NotFound("there is no such file")
    return found


async def _fields(context: ApiContext, call: Call) -> Mapping[str, object]:
    await context.limits.admit(per_call("challenges", address=call.address))
    return (await call.body()).fields if call.is_write else call.query_fields


def _state(context: ApiContext, kind: FrameKind, fields: Mapping[str, object]) -> FrameState | None:
    sealed = fields.get("state")
    return context.checkout.frames.open(kind, str(sealed), context.now_ms)


def _told(context: ApiContext, state: FrameState, step: Step, word: str) -> Reply:
    """The page that hands the hints of a step over."""
    taken = [(step, Facts(word=word))]
    hints = context.checkout.hints.issue(state.payment, context.now_ms, taken)
    return page("done", hints=canonical_json(hints))


ROUTES = (
    Route(
        "POST",
        f"{FRAMES}/{FrameKind.METHOD}",
        recognise_browser,
        "checkout",
        "A bank's page that recognises the browser",
        access=Access.NOBODY,
        body_bytes_max=FRAME_BODY_BYTES_MAX,
    ),
    *(
        Route(
            method,
            f"{FRAMES}/{FrameKind.BANK}",
            ask_holder,
            "checkout",
            "A bank's page that asks the holder",
            access=Access.NOBODY,
            body_bytes_max=FRAME_BODY_BYTES_MAX,
            query=BY_STATE if method == "GET" else (),
        )
        for method in ("GET", "POST")
    ),
    Route(
        "GET",
        f"{FRAMES}/{{file}}",
        send_asset,
        "checkout",
        "What these pages load",
        access=Access.NOBODY,
    ),
)
