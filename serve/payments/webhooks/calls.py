"""Webhooks as their receivers see them: where they may be, their secrets, how a call is made.

How a call is signed is in `signature.py`.

Somebody else says where a webhook is, so it is called by the guarded client. Redirects are not
followed, and of the answer only the status is looked at.
"""

import secrets
import ssl
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tollgate.actors.ledger.delivery.batches import CallResult
from tollgate.serve.net.guarded_client import (
    PUBLIC_ALONE,
    CallError,
    ConnectionDroppedError,
    GuardedClient,
    HttpReply,
    TargetPolicy,
    TargetRefusal,
    target_refusal,
)
from tollgate.serve.payments.api.rejections import FieldError

EVENT_HEADER = "Tollgate-Event"
ROLLOVER_MS = 24 * 3_600_000
LOOPBACK_TERMS = (
    "; one on the loopback is for test merchants, where WEBHOOK_ALLOW_LOOPBACK=true, in calls from "
    "that machine"
)
_SECRET_PREFIX = "whsec_"


def webhook_url(value: object, policy: TargetPolicy, field: str = "url") -> str | FieldError:
    """The address of a webhook as it may be stored."""
    if not isinstance(value, str):
        return FieldError(field, TargetRefusal.NOT_WEB.value)
    refusal = target_refusal(value, policy)
    if refusal is None:
        return value
    is_loopback = target_refusal(value, replace(policy, allows_loopback=True)) is None
    return FieldError(field, f"{refusal.value}{LOOPBACK_TERMS if is_loopback else ''}")


@dataclass(frozen=True, slots=True)
class WebhookSecret:
    """A secret that calls are signed with; `until_ms` None: until it is replaced."""

    secret: str
    until_ms: int | None = None


def new_webhook_secret(seed: bytes | None = None) -> WebhookSecret:
    """The secret that follows from a secret seed of 32 bytes; by default a random one."""
    text = urlsafe_b64encode(seed or secrets.token_bytes(32)).decode()
    return WebhookSecret(_SECRET_PREFIX + text.rstrip("="))


def replaced(
    known: Sequence[WebhookSecret], new: WebhookSecret, now_ms: int
) -> tuple[WebhookSecret, ...]:
    """The secrets after a replacement: the new one, and the one before for another day."""
    before = next((each for each in known if each.until_ms is None), None)
    if before is None:
        return (new,)
    return new, WebhookSecret(before.secret, now_ms + ROLLOVER_MS)


def live(known: Sequence[WebhookSecret], now_ms: int) -> list[str]:
    """The secrets that sign a call at that time."""
    return [each.secret for each in known if each.until_ms is None or now_ms < each.until_ms]


class Sender(Protocol):
    """Calls receivers."""

    async def send(
        self, url: str, body: bytes, headers: dict[str, str], *, is_test: bool
    ) -> CallResult:
        """The answer, or why there is none. `is_test`: for a test merchant."""


@dataclass(frozen=True, slots=True)
class WebhookTargets:
    """Where webhooks may be: those of live merchants, and those of test merchants."""

    live: TargetPolicy = PUBLIC_ALONE
    test: TargetPolicy = PUBLIC_ALONE


class WebhookSender:
    """Calls receivers over HTTP."""

    def __init__(
        self, targets: WebhookTargets, timeout_s: float, tls: ssl.SSLContext | None = None
    ) -> None:
        self._live, self._test = (
            GuardedClient(policy, timeout_s, tls=tls, keeps_connections=True)
            for policy in (targets.live, targets.test)
        )

    async def send(
        self, url: str, body: bytes, headers: dict[str, str], *, is_test: bool
    ) -> CallResult:
        client = self._test if is_test else self._live
        try:
            reply = await _call(client, url, body, headers)
        except CallError as error:
            return CallResult(None, str(error))
        is_taken = 200 <= reply.status < 300
        return CallResult(reply.status, None if is_taken else f"HTTP status {reply.status}")

    async def close(self) -> None:
        await self._live.close()
        await self._test.close()


async def _call(client: GuardedClient, url: str, body: bytes, headers: dict[str, str]) -> HttpReply:
    """A connection that was kept may have been closed meanwhile: then there is a new one."""
    try:
        return await client.call("POST", url, headers, body)
    except ConnectionDroppedError:
        return await client.call("POST", url, headers, body)
