"""Card networks: they decide whether a card is good for an amount (part H).

Card data goes in; a summary and a verdict come out. An authorisation that was refused is a verdict
too: it is stored as a failed transaction. What is not even tried, and never stored, is a
`PaymentRefused`.
"""

from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.ledger.law.values import CardSummary, Currency, ProcessingError
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


class CardNetwork(Protocol):
    """Decides authorisations. What it is handed it does not keep."""

    async def authorise(
        self, card: PlainCard, charge: Charge, test: CardBehaviour
    ) -> Authorisation | PaymentRefused:
        """A payment that the card's holder makes in person."""

    async def authorise_again(self, card: CardSummary, charge: Charge) -> Authorisation:
        """A payment that a server makes with a card it knows (recurring): by the network's token,
        without number and code."""


@dataclass(frozen=True, slots=True)
class CardNetworks:
    """The networks of this Tollgate: one for test merchants, and perhaps one for live ones."""

    test: CardNetwork
    live: CardNetwork | None = None

    def of(self, *, is_test: bool) -> CardNetwork | PaymentRefused:
        """The network of a merchant."""
        if is_test:
            return self.test
        return self.live or PaymentRefused(
            "",
            "no payments of live merchants yet, approved or not: this Tollgate has no card network "
            "for them; merchants opened with test=true have a simulated one",
        )
