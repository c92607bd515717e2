"""Turns decisions into replies for the wire (part A, Errors on the wire; B15, B16).

The engine speaks in values; here they become serialised replies, or refusals with a status code:
the reference's UNKNOWN for everything, or precise codes where the operator asked for them.
"""

from collections.abc import Sequence

from tollgate.actors.ratelimit.decision.plan import Refusal, RefusalReason
from tollgate.actors.ratelimit.decision.response import RateLimitDecision
from tollgate.actors.ratelimit.rules.descriptors import (
    DEFAULT_BOUNDS,
    RateLimitRequest,
    RequestBounds,
)
from tollgate.serve.ratelimit.codec.answers import (
    STATUS_UNLIMITED,
    STATUS_WITHOUT_LIMIT,
    UnencodableResponse,
    response_bytes,
    response_of_one,
    status_bytes,
)
from tollgate.serve.ratelimit.codec.requests import (
    MalformedRequest,
    RequestOutOfBounds,
    decode_request,
)
from tollgate.serve.ratelimit.counting_shadow.shadow import BatchDecider
from tollgate.serve.ratelimit.fronts.front import DecideBatch, ErrorStatus, StatusCode, WireReply

PRECISE_CODES = {
    RefusalReason.INVALID: StatusCode.INVALID_ARGUMENT,
    RefusalReason.UNDECODABLE: StatusCode.INVALID_ARGUMENT,
    RefusalReason.UNENCODABLE: StatusCode.INTERNAL,
    RefusalReason.NOT_CONFIGURED: StatusCode.FAILED_PRECONDITION,
    RefusalReason.BACKEND: StatusCode.UNAVAILABLE,
}
# The reference's gRPC library finds these two, and says UNKNOWN for all that the service refuses.
COMPATIBLE_CODES = dict.fromkeys(RefusalReason, StatusCode.UNKNOWN) | {
    RefusalReason.UNDECODABLE: StatusCode.INTERNAL,
    RefusalReason.UNENCODABLE: StatusCode.INTERNAL,
}


def decoded_request(
    payload: bytes, bounds: RequestBounds = DEFAULT_BOUNDS
) -> RateLimitRequest | Refusal:
    """The request in the payload; a refusal when it is malformed or out of bounds."""
    try:
        return decode_request(payload, bounds)
    except RequestOutOfBounds as error:
        return Refusal(RefusalReason.INVALID, str(error))
    except MalformedRequest as error:
        return Refusal(RefusalReason.UNDECODABLE, str(error))


def encoded_decision(decision: RateLimitDecision) -> bytes | Refusal:
    """The serialised RateLimitResponse of a decision; a refusal when no message can hold it."""
    overall, decided, headers, metadata = decision
    if len(decided) == 1 and metadata is None and not headers:
        code, remaining, reset_s, hit = decided[0]
        if hit is not None:
            return response_of_one(overall, code, hit.limit_wire, remaining, reset_s)
    statuses = [
        status_bytes(status.code, status.hit.limit_wire, status.remaining, status.reset_s)
        if status.hit is not None
        else (STATUS_UNLIMITED if status.remaining else STATUS_WITHOUT_LIMIT)
        for status in decided
    ]
    try:
        return response_bytes(overall, statuses, headers, metadata)
    except UnencodableResponse as error:
        return Refusal(RefusalReason.UNENCODABLE, str(error))


def wire_answers(decider: BatchDecider, *, is_precise: bool) -> DecideBatch:
    """The function that fronts call with every batch."""

    codes = PRECISE_CODES if is_precise else COMPATIBLE_CODES

    def refused(refusal: Refusal) -> ErrorStatus:
        return ErrorStatus(codes[refusal.kind], refusal.message)

    def decide_batch(payloads: Sequence[bytes]) -> list[WireReply]:
        return [
            answer if type(answer) is bytes else refused(answer)  # type: ignore[arg-type]
            for answer in decider.decide_batch(payloads)
        ]

    return decide_batch
