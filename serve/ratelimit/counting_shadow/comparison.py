"""Compares two answers to one request, of which one was counted elsewhere ("A second place")."""

from enum import Enum

from tollgate.serve.ratelimit.codec.messages import ResponseMessage

TOLD_MAX = 8


class AnswerDifference(Enum):
    """In what two answers differ, the graver one where both do; the values name statistics."""

    CODE = "code_differs"
    REMAINING = "remaining_differs"


def difference(answer: bytes, other: bytes) -> AnswerDifference | None:
    """The difference between two serialised RateLimitResponses. Times until a reset do not count:
    the other one was decided later."""
    if answer == other:
        return None
    ours, theirs = ResponseMessage.FromString(answer), ResponseMessage.FromString(other)
    codes = [[each.code for each in reply.statuses] for reply in (ours, theirs)]
    if ours.overall_code != theirs.overall_code or codes[0] != codes[1]:
        return AnswerDifference.CODE
    left = [[each.limit_remaining for each in reply.statuses] for reply in (ours, theirs)]
    return AnswerDifference.REMAINING if left[0] != left[1] else None


def told(answer: bytes) -> str:
    """What an answer says, for a line of the log."""
    reply = ResponseMessage.FromString(answer)
    code = ResponseMessage.Code.Name(reply.overall_code)
    left = ", ".join(f"{each.limit_remaining}" for each in reply.statuses[:TOLD_MAX])
    return f"{code} with {left} left" if left else code
