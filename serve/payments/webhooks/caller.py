"""One event in one signed call: the worker's, and the test that a merchant asks for.

The signature is made in `signature.py`; the call itself is `calls.py`.
"""

from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.delivery.batches import CallResult, DeliveryAttempt, OutgoingEvent
from tollgate.actors.ledger.law.values import BookId
from tollgate.serve.payments.secrets.master_secret import SealBroken
from tollgate.serve.payments.webhooks.calls import EVENT_HEADER, Sender, live
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer
from tollgate.serve.payments.webhooks.signature import SIGNATURE_HEADER, signature


class Receiver(Protocol):
    """A webhook, or a batch for it. `secret`: sealed."""

    @property
    def book(self) -> BookId: ...
    @property
    def url(self) -> str: ...
    @property
    def secret(self) -> str: ...
    @property
    def is_test(self) -> bool: ...


class WebhookCaller:
    """Signs events and sends them."""

    def __init__(
        self,
        sender: Sender,
        sealer: WebhookSecretSealer,
        clock: Clock,
        user_agent: str = "Tollgate",
    ) -> None:
        self._sender = sender
        self._sealer = sealer
        self._clock = clock
        self._user_agent = user_agent

    async def attempt(self, receiver: Receiver, event: OutgoingEvent) -> DeliveryAttempt:
        """Sends one event, once. Without a secret that can be opened there is no call."""
        at_ms, begun_s = self.now_ms(), self._clock.monotonic_s()
        try:
            known = self._sealer.open(receiver.secret, receiver.book)
        except SealBroken as error:
            result = CallResult(None, f"the webhook's secret {error}")
        else:
            headers = self._headers(event, live(known, at_ms), at_ms)
            result = await self._sender.send(
                receiver.url, event.body.encode(), headers, is_test=receiver.is_test
            )
        return DeliveryAttempt(
            event, at_ms, int(1_000 * (self._clock.monotonic_s() - begun_s)), result
        )

    def now_ms(self) -> int:
        return int(self._clock.now_s() * 1000)

    def _headers(self, event: OutgoingEvent, signing: list[str], now_ms: int) -> dict[str, str]:
        return {
            "Content-Type": "application/json",
            "User-Agent": self._user_agent,
            EVENT_HEADER: event.event,
            SIGNATURE_HEADER: signature(event.body.encode(), signing, now_ms // 1000),
        }
