"""The refusals of a payment in a browser: a closed set of words (part H, Errors in words).

A processing error of part C has one of them as well: what is stored has the number, what is
answered the word. A scheme that is not known and one that is not taken share a number.
"""

from enum import StrEnum

from tollgate.serve.payments.api.rejections import (
    AttemptFailed,
    BadRequest,
    Rejection,
)
from tollgate.serve.payments.checkout.vault import TokenFault, TokenProblem
from tollgate.serve.payments.network.card import CardProblem
from tollgate.serve.payments.network.simulated_behaviour import CardBehaviour, CardScheme


class CheckoutCode(StrEnum):
    """The words."""

    VERSION_MISSING = "VERSION_MISSING"
    VERSION_UNSUPPORTED = "VERSION_UNSUPPORTED"
    BODY_INVALID = "BODY_INVALID"
    REQUEST_INVALID = "REQUEST_INVALID"
    TOKEN_INVALID = "TOKEN_INVALID"
    TOKEN_TYPE_UNEXPECTED = "TOKEN_TYPE_UNEXPECTED"
    TEST_MODE_MIXED = "TEST_MODE_MIXED"
    INTEGRATION_KEY_UNKNOWN = "PAYMENT_INTEGRATION_KEY_UNKNOWN"
    INTEGRATION_DISABLED = "PAYMENT_INTEGRATION_DISABLED"
    CHALLENGE_UNAVAILABLE = "PAYMENT_CHALLENGE_UNAVAILABLE"
    CARD_NUMBER_INVALID = "PAYMENT_CARD_NUMBER_INVALID"
    CARD_SCHEME_UNKNOWN = "PAYMENT_CARD_SCHEME_UNKNOWN"
    CARD_SCHEME_UNSUPPORTED = "PAYMENT_CARD_SCHEME_UNSUPPORTED"
    CARD_SECURITY_CODE_INVALID = "PAYMENT_CARD_SECURITY_CODE_INVALID"
    CARD_EXPIRED = "PAYMENT_CARD_EXPIRED"
    CARD_DISABLED = "PAYMENT_CARD_DISABLED"
    CARD_LOST = "PAYMENT_CARD_LOST"
    AMOUNT_LIMIT = "PAYMENT_AMOUNT_LIMIT"
    INSUFFICIENT_FUNDS = "PAYMENT_INSUFFICIENT_FUNDS"
    RECEIVER_BLOCKED = "PAYMENT_RECEIVER_BLOCKED"
    REJECTED_BY_ISSUER = "PAYMENT_REJECTED_BY_ISSUER"
    REJECTED = "PAYMENT_REJECTED"
    METHOD_ERROR = "PAYMENT_METHOD_ERROR"
    TDSECURE_REQUIRED = "TDSECURE_REQUIRED"
    TDSECURE_FAILED = "TDSECURE_FAILED"


NOT_SUPPORTED = 29
# By the numbers of part C; of any other, PAYMENT_METHOD_ERROR.
CODE_OF = {
    1: CheckoutCode.REQUEST_INVALID,
    2: CheckoutCode.CARD_NUMBER_INVALID,
    3: CheckoutCode.CARD_NUMBER_INVALID,
    4: CheckoutCode.CARD_SECURITY_CODE_INVALID,
    5: CheckoutCode.REQUEST_INVALID,
    6: CheckoutCode.CARD_EXPIRED,
    7: CheckoutCode.INSUFFICIENT_FUNDS,
    8: CheckoutCode.REJECTED_BY_ISSUER,
    9: CheckoutCode.CARD_DISABLED,
    10: CheckoutCode.CARD_LOST,
    11: CheckoutCode.REJECTED,
    14: CheckoutCode.REQUEST_INVALID,
    22: CheckoutCode.AMOUNT_LIMIT,
    25: CheckoutCode.AMOUNT_LIMIT,
    26: CheckoutCode.INTEGRATION_KEY_UNKNOWN,
    27: CheckoutCode.RECEIVER_BLOCKED,
    NOT_SUPPORTED: CheckoutCode.CARD_SCHEME_UNSUPPORTED,
    30: CheckoutCode.TDSECURE_REQUIRED,
    31: CheckoutCode.TDSECURE_FAILED,
}


class CheckoutRefused(Rejection):
    """400, in a word."""

    status = 400

    def __init__(self, word: CheckoutCode, message: str) -> None:
        super().__init__(message)
        self.word = word


def of_processing_error(number: int, message: str, test: CardBehaviour) -> CheckoutRefused:
    """The refusal of a payment that failed by part C."""
    word = CODE_OF.get(number, CheckoutCode.METHOD_ERROR)
    if number == NOT_SUPPORTED and test.scheme is CardScheme.UNKNOWN:
        word = CheckoutCode.CARD_SCHEME_UNKNOWN
    return CheckoutRefused(word, message)


def of_card_problem(problem: CardProblem) -> CheckoutRefused:
    """The refusal of card data that cannot be a card's."""
    word = CODE_OF.get(problem.code, CheckoutCode.REQUEST_INVALID)
    return CheckoutRefused(word, f"{problem.field} is not valid")


def of_token_problem(problem: TokenProblem) -> CheckoutRefused:
    """The refusal of a token."""
    match problem.fault:
        case TokenFault.UNKNOWN:
            word = CheckoutCode.TOKEN_INVALID
        case TokenFault.OTHER_PART:
            word = CheckoutCode.TOKEN_TYPE_UNEXPECTED
    return CheckoutRefused(word, f"{problem.field} {problem.fault.value}")


def word_of(rejection: Rejection) -> str:
    """The word of any refusal."""
    match rejection:
        case CheckoutRefused(word=word):
            return word
        case AttemptFailed(number=number):
            return CODE_OF.get(number, CheckoutCode.METHOD_ERROR)
        case BadRequest():
            return CheckoutCode.REQUEST_INVALID
    return rejection.code
