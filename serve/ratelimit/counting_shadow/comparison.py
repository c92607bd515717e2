"""Compares two answers to one request, of which one was counted elsewhere ("A second place")."""

from enum import Enum

from tollgate.serve.ratelimit.codec.messages import ResponseMessage

TOLD_MAX = 8


class ShadowOutcome(Enum):
    """What became of a request in the second place, the graver where two are true; the values name
    statistics."""

    AGREES = "ratelimit.counting_shadow.agrees"
    REMAINING_DIFFERS = "ratelimit.counting_shadow.remaining_differs"
    CODE_DIFFERS = "ratelimit.counting_shadow.code_differs"
    UNREACHABLE = "ratelimit.counting_shadow.unreachable"
    DROPPED = "ratelimit.counting_shadow.dropped"


def compared(answer: bytes, other: bytes) -> ShadowOutcome:
    """How two serialised RateLimitResponses compare. Times until a reset do not count: the other
    one was decided later."""
    if answer == other:
        return ShadowOutcome.AGREES
    ours, theirs = ResponseMessage.FromString(answer), ResponseMessage.FromString(other)
    codes = [[each.code for each in reply.statuses] for reply in (ours, theirs)]
    if ours.overall_code != theirs.overall_code or codes[0] != codes[1]:
        return ShadowOutcome.CODE_DIFFERS
    left = [[each.limit_remaining for each in reply.statuses] for reply in (ours, theirs)]
    return ShadowOutcome.AGREES if left[0] == left[1] else ShadowOutcome.REMAINING_DIFFERS


def told(answer: bytes) -> str:
    """What an answer says, for a line of the log."""
    reply = ResponseMessage.FromString(answer)
    code = ResponseMessage.Code.Name(reply.overall_code)
    left = ", ".join(f"{each.limit_remaining}" for each in reply.statuses[:TOLD_MAX])
    return f"{code} with {left} left" if left else code
