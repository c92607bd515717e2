"""How the books say no: why, in words for a developer, at which field, with which error code."""

from enum import IntEnum

from tollgate.actors.ledger.law.outcomes import RefusalKind, Refused


class ErrorCode(IntEnum):
    """The processing errors of part C that the books themselves can find."""

    NONE = 0
    INVALID_CURRENCY = 1
    CARD_EXPIRED = 6
    INVALID_AMOUNT = 14
    AMOUNT_TOO_HIGH = 22


def constraint(message: str, field: str = "", code: ErrorCode = ErrorCode.NONE) -> Refused:
    """The state of the book does not allow it."""
    return Refused(RefusalKind.CONSTRAINT, message, field, int(code))


def absent(message: str) -> Refused:
    """What the command is about is not in this book."""
    return Refused(RefusalKind.NOT_FOUND, message)


def forbidden(message: str) -> Refused:
    """Whoever asks has no access."""
    return Refused(RefusalKind.FORBIDDEN, message)


def bad_amount(amount: int, amount_max: int, what_is_there: str) -> Refused | None:
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
