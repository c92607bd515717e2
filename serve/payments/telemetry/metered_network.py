"""A card network whose calls are counted: how many, with what outcome, how long."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from tollgate.actors.kernel.call_parts import PARTS, CallPart, note_part
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.law.values import (
    CardSummary,
    NetworkAction,
    NetworkApproved,
    NetworkDeclined,
)
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.payments.network.card import PlainCard
from tollgate.serve.payments.network.card_network import (
    Authorisation,
    CardNetwork,
    Charge,
    NetworkAnswer,
    NetworkOperation,
    PaymentRefused,
    Unknown,
)
from tollgate.serve.payments.network.simulated_behaviour import CardBehaviour

CALLS = "payments.network.calls"
TIMES = "payments.network.call.duration"
FAILED = "failed"
A = TypeVar("A", bound=Authorisation | PaymentRefused | NetworkAnswer)


@dataclass(frozen=True, slots=True)
class MeteredNetwork:
    """Hands every call on to `network`, which is called `label` on the metrics page."""

    network: CardNetwork
    label: str
    tallies: Tallies
    clock: Clock

    @property
    def name(self) -> str:
        return self.network.name

    @property
    def enquired_after_ms(self) -> int:
        return self.network.enquired_after_ms

    def is_immediate(self, action: NetworkAction, amount: int) -> bool:
        return self.network.is_immediate(action, amount)

    async def authorise(
        self, card: PlainCard, charge: Charge, test: CardBehaviour
    ) -> Authorisation | PaymentRefused:
        return await self._counted("authorise", self.network.authorise(card, charge, test))

    async def authorise_again(
        self, card: CardSummary, charge: Charge
    ) -> Authorisation | PaymentRefused:
        return await self._counted("authorise_again", self.network.authorise_again(card, charge))

    async def carry_out(
        self, operation: NetworkOperation, card: PlainCard | None = None
    ) -> NetworkAnswer:
        asked = self.network.carry_out(operation, card)
        return await self._counted(operation.action.value, asked)

    async def enquire(self, operation: NetworkOperation) -> NetworkAnswer:
        return await self._counted("enquire", self.network.enquire(operation))

    async def reverse(self, operation: NetworkOperation) -> NetworkAnswer:
        return await self._counted("reverse", self.network.reverse(operation))

    async def _counted(self, operation: str, call: Awaitable[A]) -> A:
        begun_s, outcome = self.clock.monotonic_s(), FAILED
        try:
            answer = await call
            outcome = _outcome(answer)
            return answer
        finally:
            of_call = f".__network={self.label}.__operation={operation}"
            self.tallies.count(f"{CALLS}{of_call}.__outcome={outcome}")
            ended_s = self.clock.monotonic_s()
            self.tallies.observe(f"{TIMES}{of_call}", 1, ended_s - begun_s)
            if (parts := PARTS.get()) is not None:
                told = (("tollgate.network", self.label), ("tollgate.outcome", outcome))
                failure = outcome if outcome == FAILED else ""
                name = f"card network {operation}"
                note_part(parts, CallPart(name, begun_s, ended_s, told, failure))


def _outcome(answer: Authorisation | PaymentRefused | NetworkAnswer) -> str:
    match answer:
        case PaymentRefused():
            return "not_tried"
        case Unknown():
            return "unknown"
        case Authorisation(error=None) | NetworkApproved():
            return "approved"
        case Authorisation() | NetworkDeclined():
            return "refused"
