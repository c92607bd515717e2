"""Webhooks as their receivers see them: where they may be, how a call is signed, how it is made.

    Tollgate-Signature: t=<seconds>,v1=<hex>[,v1=<hex>]     HMAC-SHA-256 of "<seconds>.<body>"

The body is the event's document, with its id for whoever has seen it before. Receivers refuse a `t`
more than five minutes off. While a secret is being replaced there is a `v1` of each.

Somebody else says where a webhook is, so the call must not reach what only we can reach: `https` is
required, and the address is judged when the socket to it is made, whatever the name said before.
Redirects are not followed, no proxy of the environment is used, and of the answer only the status
is looked at.
"""

import asyncio
import hmac
import secrets
import ssl
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from errno import EACCES
from ipaddress import ip_address
from socket import socket
from typing import Any, Protocol

import aiohttp
from yarl import URL

from tollgate.serve.net.public_addresses import Address, is_public
from tollgate.serve.payments.api.bodies.constraints import FieldError

TOLERANCE_S = 300
URL_LENGTH_MAX = 2_048
SIGNATURE_LENGTH_MAX = 1_024
SIGNATURE_HEADER = "Tollgate-Signature"
EVENT_HEADER = "Tollgate-Event"
ROLLOVER_MS = 24 * 3_600_000
_SECRET_PREFIX = "whsec_"


@dataclass(frozen=True, slots=True)
class TargetPolicy:
    """What an operator has allowed beyond the rule, to try things out or inside of one network."""

    allows_http: bool = False
    allows_private: bool = False


def webhook_url(value: object, policy: TargetPolicy, field: str = "url") -> str | FieldError:
    """The address of a webhook as it may be stored."""
    if not isinstance(value, str) or not 0 < len(value) <= URL_LENGTH_MAX:
        return FieldError(field, f"must be a web address of at most {URL_LENGTH_MAX} characters")
    try:
        url = URL(value)
        host, port = url.host, url.port
    except ValueError:
        return FieldError(field, "must be a web address, such as https://example.com/hook")
    if any(each.isspace() for each in value) or url.scheme not in ("http", "https") or not host:
        return FieldError(field, "must be a web address, such as https://example.com/hook")
    if url.scheme == "http" and not policy.allows_http:
        return FieldError(field, "must be an https address")
    if url.user is not None or url.password is not None:
        return FieldError(field, "must not hold a user name or a password")
    if port == 0:
        return FieldError(field, "must not be of port 0")
    address = _address(host)
    if address is not None and not policy.allows_private and not is_public(address):
        return FieldError(field, "must not be a private address")
    return value


def _address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class WebhookSecret:
    """A secret that calls are signed with; `until_ms` None: until it is replaced."""

    secret: str
    until_ms: int | None = None


def new_webhook_secret() -> WebhookSecret:
    """A new secret of 256 bits."""
    return WebhookSecret(_SECRET_PREFIX + secrets.token_urlsafe(32))


def derived_webhook_secret(seed: bytes) -> WebhookSecret:
    """The secret that follows from a secret seed of 32 bytes: the same one at every repetition."""
    return WebhookSecret(_SECRET_PREFIX + urlsafe_b64encode(seed).decode().rstrip("="))


def replaced(
    known: Sequence[WebhookSecret], new: WebhookSecret, now_ms: int
) -> tuple[WebhookSecret, ...]:
    """The secrets after a replacement: the new one, and the one before for another day."""
    before = next((each for each in known if each.until_ms is None), None)
    if before is None:
        return (new,)
    return new, WebhookSecret(before.secret, now_ms + ROLLOVER_MS)


def live(known: Sequence[WebhookSecret], now_ms: int) -> list[str]:
    """What a call is signed with at that time."""
    return [each.secret for each in known if each.until_ms is None or now_ms < each.until_ms]


def signature(body: bytes, signing: Sequence[str], at_s: int) -> str:
    """The value of the header."""
    parts = [f"t={at_s}", *(f"v1={_mac(body, secret, at_s)}" for secret in signing)]
    return ",".join(parts)


def is_signed(header: str, body: bytes, secret: str, now_s: int) -> bool:
    """Whether a call is from whoever knows the secret, and not an old one sent again: what
    receivers do, in the words of this house."""
    if len(header) > SIGNATURE_LENGTH_MAX:
        return False
    parts = [part.partition("=") for part in header.split(",")]
    times = [value for name, _, value in parts if name.strip() == "t"]
    if len(times) != 1 or not times[0].isdecimal() or abs(now_s - int(times[0])) > TOLERANCE_S:
        return False
    expected = _mac(body, secret, int(times[0])).encode()
    given = [value.encode() for name, _, value in parts if name.strip() == "v1"]
    matches = [hmac.compare_digest(expected, each) for each in given]
    return any(matches)


def _mac(body: bytes, secret: str, at_s: int) -> str:
    return hmac.new(secret.encode(), b"%d.%b" % (at_s, body), "sha256").hexdigest()


class Sender(Protocol):
    """Calls receivers."""

    async def send(self, url: str, body: bytes, headers: dict[str, str]) -> str | None:
        """None: the receiver has it. Otherwise why not, in one line."""


class WebhookSender:
    """Calls receivers over HTTP."""

    def __init__(
        self, policy: TargetPolicy, timeout_s: float, tls: ssl.SSLContext | None = None
    ) -> None:
        self._policy = policy
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def send(self, url: str, body: bytes, headers: dict[str, str]) -> str | None:
        refused = webhook_url(url, self._policy)
        if isinstance(refused, FieldError):
            return f"the address {refused.message}"
        try:
            async with self._opened().post(
                URL(url), data=body, headers=headers, allow_redirects=False
            ) as response:
                status = response.status
        except TimeoutError:
            return f"no answer within {self._timeout.total:g} s"
        except (aiohttp.ClientError, OSError, ValueError, asyncio.IncompleteReadError) as error:
            return _in_one_line(error)
        return None if 200 <= status < 300 else f"HTTP status {status}"

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            # One connection per call: nothing of one receiver is around when the next is called.
            connector = aiohttp.TCPConnector(
                limit=0,
                force_close=True,
                use_dns_cache=False,
                ssl=self._tls or True,
                socket_factory=self._socket,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=self._timeout,
                auto_decompress=False,
                trust_env=False,
            )
        return self._session

    def _socket(self, target: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket:
        """A socket to the very address that is about to be connected to, if that is allowed."""
        family, kind, protocol, _, place = target
        if not self._policy.allows_private and not is_public(ip_address(place[0])):
            raise PermissionError(EACCES, "the name leads to a private address")
        return socket(family, kind, protocol)


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
