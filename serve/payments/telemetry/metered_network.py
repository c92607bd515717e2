"""A card network whose calls are counted: how many, with what outcome, how long."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from tollgate.actors.kernel.call_parts import PARTS, CallPart, note_part
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.law.values import CardSummary
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.payments.network.card import PlainCard
from tollgate.serve.payments.network.card_network import (
    Authorisation,
    CardNetwork,
    Charge,
    PaymentRefused,
)
from tollgate.serve.payments.network.simulated_behaviour import CardBehaviour

CALLS = "payments.network.calls"
TIMES = "payments.network.call.duration"
FAILED = "failed"
A = TypeVar("A", bound=Authorisation | PaymentRefused)


@dataclass(frozen=True, slots=True)
class MeteredNetwork:
    """Hands every call on to `network`, which is called `name` on the metrics page."""

    network: CardNetwork
    name: str
    tallies: Tallies
    clock: Clock

    async def authorise(
        self, card: PlainCard, charge: Charge, test: CardBehaviour
    ) -> Authorisation | PaymentRefused:
        return await self._counted("authorise", self.network.authorise(card, charge, test))

    async def authorise_again(self, card: CardSummary, charge: Charge) -> Authorisation:
        return await self._counted("authorise_again", self.network.authorise_again(card, charge))

    async def _counted(self, operation: str, call: Awaitable[A]) -> A:
        begun_s, outcome = self.clock.monotonic_s(), FAILED
        try:
            answer = await call
            outcome = _outcome(answer)
            return answer
        finally:
            of_call = f".__network={self.name}.__operation={operation}"
            self.tallies.count(f"{CALLS}{of_call}.__outcome={outcome}")
            ended_s = self.clock.monotonic_s()
            self.tallies.observe(f"{TIMES}{of_call}", 1, ended_s - begun_s)
            if (parts := PARTS.get()) is not None:
                told = (("tollgate.network", self.name), ("tollgate.outcome", outcome))
                failure = outcome if outcome == FAILED else ""
                name = f"card network {operation}"
                note_part(parts, CallPart(name, begun_s, ended_s, told, failure))


def _outcome(answer: Authorisation | PaymentRefused) -> str:
    if isinstance(answer, PaymentRefused):
        return "not_tried"
    return "approved" if answer.error is None else "refused"
