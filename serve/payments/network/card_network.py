"""Card networks: they decide whether money moves (parts H and I).

Two ways lead to a network. What it decides at once, by itself and without effect outside, is asked
before the ledger, and intent and result are one commit: nothing can be left behind between them
(`is_immediate`; `authorise`, `authorise_again`). All else is asked once its intent is durable, by
an operation id that exists before the first try (`carry_out`); when no answer comes, it is
*unknown*, and `enquire` tells later what became of it.

Card data goes in; a summary and a verdict come out. An authorisation that was refused is a verdict
too: it is stored as a failed transaction. What is not even tried, and never stored, is a
`PaymentRefused`.
"""

from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.ledger.book.entities import Intent
from tollgate.actors.ledger.law.values import (
    BookId,
    CardSummary,
    Currency,
    EntityId,
    NetworkAction,
    NetworkApproved,
    NetworkDeclined,
    ProcessingError,
)
from tollgate.serve.payments.network.card import PlainCard
from tollgate.serve.payments.network.simulated_behaviour import CardBehaviour
from tollgate.serve.payments.network.tds_result import TdsResult


@dataclass(frozen=True, slots=True)
class Charge:
    """An amount to be authorised: minor units, with the currency's exponent. `authentication`: what
    3-D Secure said of the holder; None where nobody was asked."""

    currency: Currency
    exponent: int
    amount: int
    at_ms: int
    authentication: TdsResult | None = None


@dataclass(frozen=True, slots=True)
class Authorisation:
    """The verdict. `error` None: the card is good. `tds`: "", "attempt" or "full"."""

    card: CardSummary
    error: ProcessingError | None
    tds: str = ""


@dataclass(frozen=True, slots=True)
class PaymentRefused:
    """Not tried: `field` names what to change, or is empty."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class NetworkOperation:
    """A move that a network is asked for. `id`: its intent's, and the network's key for it: the
    same id is the same move, however often it arrives. `follows`: the network's reference of the
    authorisation that it is about; empty without one. `card_token`: how the network knows the card
    of an authorisation; empty for one it sees for the first time. `at_ms`: of the intent."""

    id: EntityId
    action: NetworkAction
    book: BookId
    currency: Currency
    exponent: int
    amount: int
    follows: str
    descriptor: str
    card_token: str
    is_test: bool
    at_ms: int


def operation_of(intent: Intent) -> NetworkOperation:
    """The operation that an intent is asked by, every time."""
    return NetworkOperation(
        id=intent.id,
        action=intent.action,
        book=intent.book,
        currency=intent.currency,
        exponent=intent.exponent,
        amount=intent.amount,
        follows=intent.follows,
        descriptor=intent.descriptor,
        card_token=intent.card_token,
        is_test=intent.is_test,
        at_ms=intent.created_ms,
    )


@dataclass(frozen=True, slots=True)
class Unknown:
    """No answer: it may have been done, may be done yet, or never."""

    why: str


NetworkAnswer = NetworkApproved | NetworkDeclined | Unknown


class CardNetwork(Protocol):
    """Decides moves of money. What it is handed of a card it does not keep."""

    @property
    def name(self) -> str:
        """By which transactions remember who authorised them."""

    @property
    def enquired_after_ms(self) -> int:
        """The age at which an open intent is enquired about: until then, it may be under way."""

    def is_immediate(self, action: NetworkAction, amount: int) -> bool:
        """True if this is decided at once, without effect outside, and can never be unknown."""

    async def authorise(
        self, card: PlainCard, charge: Charge, test: CardBehaviour
    ) -> Authorisation | PaymentRefused:
        """What a network says at once to a payment that the card's holder makes in person, without
        effect outside: the verdict if that is immediate; otherwise whether it may be asked for."""

    async def authorise_again(
        self, card: CardSummary, charge: Charge
    ) -> Authorisation | PaymentRefused:
        """The same of a payment that a server makes with a card it knows (recurring), by the
        network's token, without number and code."""

    async def carry_out(
        self, operation: NetworkOperation, card: PlainCard | None = None
    ) -> NetworkAnswer:
        """Asks for a move, once in its life. `card`: of a holder who pays in person."""

    async def enquire(self, operation: NetworkOperation) -> NetworkAnswer:
        """The outcome of a move that was asked for. One that the network has never seen is declined
        from then on, should it still arrive: so no answer to this changes later."""

    async def reverse(self, operation: NetworkOperation) -> NetworkAnswer:
        """Undoes an authorisation: approved once its amount is free again."""


@dataclass(frozen=True, slots=True)
class CardNetworks:
    """The networks of this Tollgate: one for test merchants, and perhaps one for live ones.
    `others`: those that live merchants had before, for what they have authorised."""

    test: CardNetwork
    live: CardNetwork | None = None
    others: tuple[CardNetwork, ...] = ()

    def of(self, *, is_test: bool) -> CardNetwork | PaymentRefused:
        """The network of a merchant."""
        if is_test:
            return self.test
        return self.live or PaymentRefused(
            "",
            "no payments of live merchants yet, approved or not: this Tollgate has no card network "
            "for them; merchants opened with test=true have a simulated one",
        )

    def named(self, name: str) -> CardNetwork | None:
        """The network of that name, if it is still there."""
        known = (self.test, *([] if self.live is None else [self.live]), *self.others)
        return next((each for each in known if each.name == name), None)
