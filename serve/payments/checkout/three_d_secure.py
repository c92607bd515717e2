"""The port of 3-D Secure: the bank of a card's holder is asked who pays (part H, 3-D Secure).

    enrol -> begin -> verdict                 the bank has no question
                   -> question -> finish      it asks the holder, in a page of its own

`server_transaction` is the id that all of it goes by. What a card network needs of the result are
the fields of `TdsResult`.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from tollgate.serve.payments.network.card import PlainCard
from tollgate.serve.payments.network.card_network import Charge
from tollgate.serve.payments.network.simulated_behaviour import CardBehaviour
from tollgate.serve.payments.network.tds_result import TdsResult, TdsVerdict


@dataclass(frozen=True, slots=True)
class Purchase:
    """The payment that the bank is asked about. `is_recurring`: more are to follow from it, without
    the holder: then a bank asks. `test`: how a simulated one behaves."""

    charge: Charge
    is_recurring: bool
    test: CardBehaviour


@dataclass(frozen=True, slots=True)
class Enrolment:
    """The card takes part, by this version of the protocol. `has_method`: the bank has a page to
    recognise the browser with, without a question."""

    version: str
    server_transaction: str
    has_method: bool


class BrowserMethod(Enum):
    """The end of the bank's page that recognises browsers."""

    DONE = "done"
    TIMED_OUT = "timed out"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class HolderAsked:
    """The bank asks the holder."""


class HolderAnswer(Enum):
    """The holder's answer to the bank."""

    CONFIRMED = "confirmed"
    REFUSED = "refused"


class ThreeDSecure(Protocol):
    """Asks banks. It keeps nothing of a card that it is handed."""

    async def enrol(self, card: PlainCard, purchase: Purchase) -> Enrolment | TdsResult:
        """Whether the card takes part; else the verdict without."""

    async def begin(
        self, enrolment: Enrolment, method: BrowserMethod, purchase: Purchase
    ) -> HolderAsked | TdsResult:
        """The bank's verdict, or that it asks."""

    async def finish(
        self, enrolment: Enrolment, answer: HolderAnswer, purchase: Purchase
    ) -> TdsResult:
        """The verdict after the holder was asked."""


class NoBank:
    """3-D Secure where nobody offers it: the card network is told that there was none."""

    async def enrol(self, card: PlainCard, purchase: Purchase) -> Enrolment | TdsResult:
        del card, purchase
        return TdsResult(TdsVerdict.UNAVAILABLE, "", "", "07", "")

    async def begin(
        self, enrolment: Enrolment, method: BrowserMethod, purchase: Purchase
    ) -> HolderAsked | TdsResult:
        raise AssertionError("no card takes part")

    async def finish(
        self, enrolment: Enrolment, answer: HolderAnswer, purchase: Purchase
    ) -> TdsResult:
        raise AssertionError("no card takes part")
