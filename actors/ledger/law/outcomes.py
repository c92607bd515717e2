"""The outcome of an order: a closed set, and the refusals that the law of the books makes.

Done        it is durable; `body` is the reply's JSON, `is_replay` when it was done before
Refusal     nothing changed; the caller is told why, in words for a developer
TurnedAway  nothing changed; ask again later (mailbox full, deadline passed)
Indefinite  it may or may not have been done: ask again with the same operation id
"""

from dataclasses import dataclass
from enum import Enum, IntEnum


class RefusalReason(Enum):
    """The reason why a valid command is refused; the API makes statuses of it (part A)."""

    CONSTRAINT = "the state of the book does not allow it"
    LOST_RACE = "it was allowed when it was checked, and another command came first"
    NOT_FOUND = "the entity is not in this book"
    FORBIDDEN = "the app has no access to this book"
    KEY_REUSED = "the idempotency key was used for another request"
    BROKEN = "the command breaks a rule of the books, which is our mistake"
    PROCESSING = "a processing error of part C, before anything was stored"
    UNAPPROVED = "the merchant waits for the operator's approval"
    UNCONVERTIBLE = "there is no exchange rate that may be used"
    AT_NETWORK = "another move of it waits for the card network"


class DoneKind(IntEnum):
    """The outcome of an order. The numbers are those of stored operations and of shipped segments
    since the first version; they mean nothing else here."""

    MADE = 201
    # An intent is durable; what becomes of it is another operation's outcome (part I).
    INTENDED = 202
    CHANGED = 204
    ATTEMPT_FAILED = 400


@dataclass(frozen=True, slots=True)
class Done:
    """`body` is the reply's document, byte for byte, now and at every replay."""

    kind: DoneKind
    body: bytes
    is_replay: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """`field`: the dotted path of what is wrong, or empty. `code`: of part C, or 0."""

    kind: RefusalReason
    message: str
    field: str = ""
    code: int = 0


@dataclass(frozen=True, slots=True)
class TurnedAway:
    retry_after_s: int


@dataclass(frozen=True, slots=True)
class Indefinite:
    message: str


OrderOutcome = Done | Refusal | TurnedAway | Indefinite


class ErrorCode(IntEnum):
    """The processing errors of part C that the books themselves can find."""

    NONE = 0
    INVALID_CURRENCY = 1
    CARD_EXPIRED = 6
    INVALID_AMOUNT = 14
    AMOUNT_TOO_HIGH = 22
    MAY_NOT_PAY = 27
    MAY_NOT_SAVE_CARDS = 28


def constraint(message: str, field: str = "", code: ErrorCode = ErrorCode.NONE) -> Refusal:
    """The state of the book does not allow it."""
    return Refusal(RefusalReason.CONSTRAINT, message, field, int(code))


def absent(message: str) -> Refusal:
    """Refuses a command about something that is not in this book."""
    return Refusal(RefusalReason.NOT_FOUND, message)


def forbidden(message: str) -> Refusal:
    """Refuses a command of somebody without access."""
    return Refusal(RefusalReason.FORBIDDEN, message)


def bad_amount(amount: int, amount_max: int, what_is_there: str) -> Refusal | None:
    """None when `amount` is above 0 and at most `amount_max`, of which there is so much."""
    if amount <= 0:
        return constraint(
            f"{amount} is no amount: give minor units, 1 or more",
            "amount",
            ErrorCode.INVALID_AMOUNT,
        )
    if amount > amount_max:
        return constraint(
            f"{amount} is more than the {amount_max} that {what_is_there}",
            "amount",
            ErrorCode.AMOUNT_TOO_HIGH,
        )
    return None
