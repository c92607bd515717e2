"""The rejections of a call: a closed set, with the statuses of part A.

    400  BadRequest          the caller must change the request: one or more fields, and why
    400  AttemptFailed       a processing error of part C; what was tried may have been stored
    401  Unauthorised        no credentials, or unknown ones: the two look the same
    401  KeyExpired          the key was good until it expired
    403  Forbidden           credentials without access
    404  NotFound            no such path, or nothing with this id
    405  WrongMethod         the path is there, but not for this method
    409  LostRace            valid when it was checked; another call came first
    422  KeyReused           the idempotency key belongs to another request
    429  TooMany             by Tollgate's own limits, or the book is busy; before any side effect
    503  Unavailable         not now; the outcome may be unknown, the same key tells
    503  NotAnswered      the card network has not answered; the same key tells once it has

They are raised where they are found, and become bodies in replies.py and nowhere else.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """`field`: the dotted path in the request's body. `message` continues no sentence."""

    field: str
    message: str


class Rejection(Exception):  # noqa: N818 - expected, and no failure of ours
    """`status` and `code` are fixed per class; `message` is for a developer."""

    status = 500
    code = "INTERNAL"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadRequest(Rejection):
    """`errors`: at least one; a field that is empty means the request as a whole."""

    status = 400
    code = "BAD_REQUEST"

    def __init__(self, *errors: FieldError) -> None:
        assert errors, "a bad request says what is bad"
        super().__init__("; ".join(f"{each.field} {each.message}".strip() for each in errors))
        self.errors: Sequence[FieldError] = errors


class AttemptFailed(Rejection):
    """`number`: of part C. `text`: what the customer may be told. `transaction`: the id of the
    failed attempt, or empty when nothing was stored."""

    status = 400
    code = "PROCESSING_ERROR"

    def __init__(
        self, number: int, message: str, text: str, *, is_client: bool, is_merchant: bool
    ) -> None:
        super().__init__(message)
        self.number = number
        self.text = text
        self.is_client = is_client
        self.is_merchant = is_merchant


class Unauthorised(Rejection):
    status = 401
    code = "UNAUTHORIZED"

    def __init__(self) -> None:
        super().__init__("give your app's key as the password of Basic authorization")


class KeyExpired(Unauthorised):
    """`when`: as times are written."""

    code = "KEY_EXPIRED"

    def __init__(self, when: str) -> None:
        super().__init__()
        self.message = f"this key expired at {when}: use another key of your app, or recover it"


class Forbidden(Rejection):
    status = 403
    code = "FORBIDDEN"


class NotFound(Rejection):
    status = 404
    code = "NOT_FOUND"


class WrongMethod(Rejection):
    """`allowed`: the methods of the path."""

    status = 405
    code = "METHOD_NOT_ALLOWED"

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__(f"this path takes {', '.join(allowed)}")
        self.allowed = allowed


class LostRace(Rejection):
    status = 409
    code = "CONFLICT"


class KeyReused(Rejection):
    status = 422
    code = "IDEMPOTENCY_KEY_REUSED"


class TooMany(Rejection):
    status = 429
    code = "TOO_MANY_REQUESTS"

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unavailable(Rejection):
    status = 503
    code = "UNAVAILABLE"

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class NotAnswered(Unavailable):
    code = "OUTCOME_UNKNOWN"
