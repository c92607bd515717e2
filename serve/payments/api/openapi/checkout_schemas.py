"""Replies to customers' browsers, as types of the API's document (part H, Step by step).

Errors of these calls have one shape, whatever Accept says.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.payments.api.bodies.wire_types import Id
from tollgate.serve.payments.api.openapi.reply_schemas import Moment, ReplyBody
from tollgate.serve.payments.checkout.refusals import CheckoutCode
from tollgate.serve.payments.checkout.steps import ChallengeType, Step

VERSION_WORD: Json = {"type": "string", "enum": ["1"]}
PATH_WORDS: Mapping[str, Json] = {
    "step": {"type": "string", "enum": [each.value for each in Step]},
    "type": {"type": "string", "enum": [each.value for each in ChallengeType]},
}
_MEANINGS = {
    400: "Malformed, missing or refused; or a payment that failed",
    404: "There is no such challenge",
    429: "Too many calls; nothing was done",
    500: "A failure of the service",
    503: "Busy, or the outcome is unknown: ask again with the same body",
}
_WAIT = (429, 503)


class TokenReplySchema(ReplyBody):
    token: str


class ChallengeSchema(ReplyBody):
    """A way to take the next step. `path`: below the address of the API."""

    name: Step
    type: ChallengeType
    path: str


class CheckoutProgressSchema(ReplyBody):
    """`challenges`, the best first; or the id of the transaction."""

    challenges: list[ChallengeSchema] | None = None
    authorizationId: Id | None = None  # noqa: N815 - the wire's name


class ChallengeProgressSchema(ReplyBody):
    """Hints; or a frame that gives them: a form of `fields`, sent to `action` in a frame. `url`:
    where the browser is to go. `notBefore`, `interval` (ms): when to ask again."""

    hints: list[str] | None = None
    action: str | None = None
    method: str | None = None
    fields: dict[str, str] | None = None
    width: int | None = None
    height: int | None = None
    timeout: Annotated[int | None, Field(description="ms")] = None
    url: str | None = None
    notBefore: Moment | None = None  # noqa: N815
    interval: Annotated[int | None, Field(description="ms")] = None


class CheckoutProblemSchema(ReplyBody):
    """A refusal. `code`: 400 has one of the words listed in the manual."""

    code: Annotated[str, Field(examples=[CheckoutCode.TOKEN_INVALID.value])]
    message: str


def browser_responses(responses: Json, statuses: Sequence[int]) -> Json:
    """The responses of a call of browsers: what it has when it works, and all refusals."""
    return responses | {str(status): _refusal(status) for status in (400, *statuses)}


def _refusal(status: int) -> Json:
    headers = {"X-Request-ID": {"$ref": "#/components/headers/X-Request-ID"}}
    if status in _WAIT:
        headers["Retry-After"] = {"$ref": "#/components/headers/Retry-After"}
    schema = {"$ref": "#/components/schemas/CheckoutProblem"}
    return {
        "description": _MEANINGS[status],
        "headers": headers,
        "content": {"application/json": {"schema": schema}},
    }
