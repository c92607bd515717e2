"""A card network that is only played, for test merchants: the same question has the same answer.

Cards: 4100 0000 0000 0000 and 1000 0000 0000 0000 (Visa) and 5100 0000 0000 0000 (Mastercard) are
good; 4200 0000 0000 0000 is an invalid number (error 3). No other number is taken, and nothing of
it is stored: it could be a real card.

The holder's payments obey the `test` object (simulated_behaviour.py), in this order: scheme (29),
status (3, 6, 9, 10), expiry (6), security code (4), 3-D Secure (31, or 30 if it was not available
to a bank that asks), limit (25), balance (7). Of 3-D Secure it is the charge's own result that
counts, and the one of the object where nobody was asked. What no word gives, the amount does: one
that ends in 6660CC fails with the error CC, for 08, 11, 12 and 27.

A server's payments with a known card obey its expiry (6), the limit (25) and the balance (7) that
were given with its first payment, and the amount: one that ends in 6660CC fails with the error CC,
for 06 to 12 and 25 (the usual ones of recurring payments). So 666007 is refused for lack of funds.

An authorisation, a capture, a refund or a void of an amount that ends in 6670RR has no answer at
first (part I): RR says what an enquiry learns, and when.

    01 late     it was done; known after 2 s
    02 slow     it was done; known after 30 s
    03 never    it did not arrive, and is declined with error 12
    04 refused  it was declined, with error 11; known after 2 s
    05 unknown  nothing is known for 10 minutes; then it was done
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.law.values import (
    CardBrand,
    CardSummary,
    NetworkAction,
    NetworkApproved,
    NetworkDeclined,
)
from tollgate.serve.payments.api.bodies.strict_json import JsonError, canonical_json, read_json
from tollgate.serve.payments.network.card import PlainCard
from tollgate.serve.payments.network.card_network import (
    Authorisation,
    Charge,
    NetworkAnswer,
    NetworkOperation,
    PaymentRefused,
    Unknown,
)
from tollgate.serve.payments.network.simulated_behaviour import (
    CardBehaviour,
    CardScheme,
    CardStatus,
    Money,
    SecurityCode,
    TdsStatus,
)
from tollgate.serve.payments.network.tds_result import TDS_OF, TdsVerdict
from tollgate.serve.payments.reference.processing_errors import ProcessingErrors

INVALID_NUMBER = 3
INVALID_CODE = 4
EXPIRED = 6
INSUFFICIENT_FUNDS = 7
RESTRICTED = 9
REJECTED = 10
GENERIC = 12
LIMIT_EXCEEDED = 25
NOT_SUPPORTED = 29
TDS_REQUIRED = 30
TDS_FAILED = 31

GOOD_CARDS = {
    "4100000000000000": CardBrand.VISA,
    "1000000000000000": CardBrand.VISA,
    "5100000000000000": CardBrand.MASTERCARD,
}
BAD_CARDS = {"4200000000000000": CardBrand.VISA}
_KNOWN_CARDS = GOOD_CARDS | BAD_CARDS

_ERROR_OF_STATUS = {
    CardStatus.VALID: 0,
    CardStatus.INVALID: INVALID_NUMBER,
    CardStatus.EXPIRED: EXPIRED,
    CardStatus.DISABLED: RESTRICTED,
    CardStatus.LOST: REJECTED,
}
_VERDICT_OF_STATUS = {
    TdsStatus.AUTHENTICATED: TdsVerdict.AUTHENTICATED,
    TdsStatus.ATTEMPTED: TdsVerdict.ATTEMPTED,
    TdsStatus.UNAVAILABLE: TdsVerdict.UNAVAILABLE,
    TdsStatus.REJECTED: TdsVerdict.REJECTED,
}
_BY_HOLDERS_AMOUNT = frozenset({8, 11, GENERIC, 27})
FAILING_AMOUNTS_MODULUS = 1_000_000
FAILING_AMOUNTS_FROM = 666_000
NAME = "simulated"
UNANSWERED_FROM = 667_000
ENQUIRED_AFTER_MS = 2_000
TRANSACTION_REJECTED = 11
_LATE, _SLOW, _NEVER, _REFUSED, _UNKNOWN = range(1, 6)
# By rule: the age of an intent from which its outcome is known, in ms.
_KNOWN_AFTER_MS = {
    _LATE: 2_000,
    _SLOW: 30_000,
    _NEVER: 0,
    _REFUSED: 2_000,
    _UNKNOWN: 600_000,
}
_TOKEN_PREFIX = "simulated."
_TOKEN_LENGTH_MAX = 512


@dataclass(frozen=True, slots=True)
class SimulatedNetwork:
    """The simulator; it keeps nothing."""

    errors: ProcessingErrors
    clock: Clock

    @property
    def name(self) -> str:
        return NAME

    @property
    def enquired_after_ms(self) -> int:
        return ENQUIRED_AFTER_MS

    def is_immediate(self, action: NetworkAction, amount: int) -> bool:
        return _rule(amount) not in _KNOWN_AFTER_MS

    async def authorise(
        self, card: PlainCard, charge: Charge, test: CardBehaviour
    ) -> Authorisation | PaymentRefused:
        scheme = card.find_in(_KNOWN_CARDS)
        if scheme is None:
            return _unknown_number(card)
        for name, money in (("limit", test.limit), ("balance", test.balance)):
            if money is not None and money.currency != charge.currency:
                field = f"test.card.{name}.currency"
                return PaymentRefused(field, f"must be that of the payment, {charge.currency}")
        is_bad = card.find_in(BAD_CARDS) is not None
        code = INVALID_NUMBER if is_bad else _holders_error(card, charge, test)
        summary = card.summary(scheme, _token(test))
        if code:
            return Authorisation(summary, self.errors.error(code))
        verdict = _verdict(charge, test)
        return Authorisation(summary, None, TDS_OF[verdict] if verdict else "")

    async def authorise_again(self, card: CardSummary, charge: Charge) -> Authorisation:
        code = _servers_error(card, charge, self.errors)
        return Authorisation(card, self.errors.error(code) if code else None)

    async def carry_out(
        self, operation: NetworkOperation, card: PlainCard | None = None
    ) -> NetworkAnswer:
        if _rule(operation.amount) in _KNOWN_AFTER_MS:
            return Unknown("the amount asks for no answer")
        return NetworkApproved(_reference(operation))

    async def enquire(self, operation: NetworkOperation) -> NetworkAnswer:
        rule = _rule(operation.amount)
        age_ms = int(self.clock.now_s() * 1000) - operation.at_ms
        if age_ms < _KNOWN_AFTER_MS.get(rule, 0):
            return Unknown("the amount asks for no answer yet")
        if rule in (_NEVER, _REFUSED):
            code = GENERIC if rule == _NEVER else TRANSACTION_REJECTED
            return NetworkDeclined(self.errors.error(code))
        return NetworkApproved(_reference(operation))

    async def reverse(self, operation: NetworkOperation) -> NetworkAnswer:
        return NetworkApproved(_reference(operation))


def _rule(amount: int) -> int:
    """The last two digits of an amount that ends in 6670RR; another number for any other."""
    return amount % FAILING_AMOUNTS_MODULUS - UNANSWERED_FROM


def _reference(operation: NetworkOperation) -> str:
    return f"{NAME}-{operation.id}"


def is_test_card(card: PlainCard) -> bool:
    """True for the cards that are played, good ones and bad ones."""
    return card.find_in(_KNOWN_CARDS) is not None


def _verdict(charge: Charge, test: CardBehaviour) -> TdsVerdict | None:
    if charge.authentication is not None:
        return charge.authentication.verdict
    return _VERDICT_OF_STATUS[test.tds.status] if test.tds else None


def _unknown_number(card: PlainCard) -> PaymentRefused:
    why = "could be a real card" if card.could_be_real else "is not one of the test cards"
    return PaymentRefused("card.number", f"{why}; in test mode use 4100 0000 0000 0000")


def _holders_error(card: PlainCard, charge: Charge, test: CardBehaviour) -> int:
    if test.scheme is not CardScheme.SUPPORTED:
        return NOT_SUPPORTED
    if code := _ERROR_OF_STATUS[test.status]:
        return code
    if card.expiry_ms < charge.at_ms:
        return EXPIRED
    if test.code is SecurityCode.INVALID:
        return INVALID_CODE
    verdict = _verdict(charge, test)
    if verdict is TdsVerdict.REJECTED:
        return TDS_FAILED
    if verdict is TdsVerdict.UNAVAILABLE and test.tds and test.tds.has_challenge:
        return TDS_REQUIRED
    code = _error_of_amount(charge)
    if code in _BY_HOLDERS_AMOUNT:
        return code
    return _money_error(charge, test.limit, test.balance)


def _error_of_amount(charge: Charge) -> int:
    return charge.amount % FAILING_AMOUNTS_MODULUS - FAILING_AMOUNTS_FROM


def _servers_error(card: CardSummary, charge: Charge, errors: ProcessingErrors) -> int:
    if card.expiry_ms < charge.at_ms:
        return EXPIRED
    code = _error_of_amount(charge)
    if code in errors.by_code and errors[code].is_usual_for_recurring:
        return code
    known = _of_token(card.network_token)
    if known is None:
        return GENERIC
    # What is in another currency says nothing about this charge.
    limit, balance = (
        money if money is not None and money.currency == charge.currency else None
        for money in known
    )
    return _money_error(charge, limit, balance)


def _money_error(charge: Charge, limit: Money | None, balance: Money | None) -> int:
    if limit is not None and limit.is_less_than(charge.amount, charge.exponent):
        return LIMIT_EXCEEDED
    if balance is not None and balance.is_less_than(charge.amount, charge.exponent):
        return INSUFFICIENT_FUNDS
    return 0


def _token(test: CardBehaviour) -> str:
    """The simulator's name for a card: its limit and balance, nothing of its number."""
    known = [
        [money.currency, money.exponent, money.value] if money else None
        for money in (test.limit, test.balance)
    ]
    return _TOKEN_PREFIX + urlsafe_b64encode(canonical_json(known).encode()).decode().rstrip("=")


def _of_token(token: str) -> tuple[Money | None, Money | None] | None:
    """Limit and balance of a token; None for one that this network has not made. A card without a
    token, from an import, has neither."""
    if not token:
        return None, None
    body = token.removeprefix(_TOKEN_PREFIX)
    if body == token or len(token) > _TOKEN_LENGTH_MAX:
        return None
    try:
        known = read_json(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (ValueError, JsonError):
        return None
    match known:
        case [limit, balance]:
            return _money(limit), _money(balance)
    return None


def _money(known: object) -> Money | None:
    match known:
        case [str(code), int(exponent), int(value)]:
            return Money(code, exponent, value)
    return None
