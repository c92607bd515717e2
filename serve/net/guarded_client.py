"""HTTP calls to addresses that somebody else has told: webhooks, documents of a crawl.

    the URL              http or https (http only if allowed), a host, no user, no port 0,
                         no host that only we could reach: names and numbers by one rule
    the address dialled  judged when the socket is made, after the DNS, for each connection
    a redirect           is another URL told: judged from the start, and counted
    the body             read to its bound, compressed or not

No cookie is kept, no proxy of the environment is used, and nothing but the headers given is sent.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from errno import EACCES
from functools import partial
from ipaddress import ip_address
from socket import socket
from typing import Any, Literal, Self
from urllib.parse import urljoin

import aiohttp
from yarl import URL

from tollgate.serve.net.gzip_bodies import GzipError, inflated
from tollgate.serve.net.public_addresses import Exposure, exposure_of, is_loopback, is_public

URL_LENGTH_MAX = 2_048
CHUNK_BYTES = 64 * 1024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class TargetPolicy:
    """The calls that an operator allows beyond the rule, to try things out or inside of one
    network. `allows_loopback`: URLs whose host is the loopback by its own name or number, by http
    too. Other names never lead there, whatever the DNS says of them."""

    allows_http: bool = False
    allows_private: bool = False
    allows_loopback: bool = False


PUBLIC_ALONE = TargetPolicy()


class TargetRefusal(Enum):
    """The reason why a URL is not called; the value goes on from "the address"."""

    NOT_WEB = (
        f"must be a web address of at most {URL_LENGTH_MAX} characters without blanks, "
        "such as https://example.com/path"
    )
    NOT_HTTPS = "must be an https address"
    HAS_USER = "must not hold a user name or a password"
    PORT_ZERO = "must not be of port 0"
    PRIVATE = "must not be a private address"


def target_refusal(url: str, policy: TargetPolicy) -> TargetRefusal | None:
    """The reason not to call a URL, as far as its text tells; None: it may be dialled."""
    if not 0 < len(url) <= URL_LENGTH_MAX or not url.isprintable() or " " in url:
        return TargetRefusal.NOT_WEB
    try:
        parsed = URL(url)
        host, port = parsed.host, parsed.port
    except ValueError:
        return TargetRefusal.NOT_WEB
    if parsed.scheme not in ("http", "https") or not host:
        return TargetRefusal.NOT_WEB
    exposure = exposure_of(host.lower())
    is_ours = policy.allows_loopback and exposure is Exposure.LOOPBACK
    if parsed.scheme == "http" and not policy.allows_http and not is_ours:
        return TargetRefusal.NOT_HTTPS
    if parsed.user is not None or parsed.password is not None:
        return TargetRefusal.HAS_USER
    if port == 0:
        return TargetRefusal.PORT_ZERO
    if not policy.allows_private and exposure is not None and not is_ours:
        return TargetRefusal.PRIVATE
    return None


class CallError(Exception):
    """A call that brought no answer; `str()` says why in one line."""


class CallRefusedError(CallError):
    """A call that was not made: the address may not be dialled."""

    def __init__(self, refusal: TargetRefusal) -> None:
        super().__init__(f"the address {refusal.value}")
        self.refusal = refusal


class ConnectionDroppedError(CallError):
    """The server closed the connection before it answered, as it may with one that was kept."""


class BodyTooLongError(CallError):
    """The body is larger than was asked for."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """The answer of a server. `url`: where it came from in the end; `body` is empty unless the
    status is one of 200 to 299 and a body was asked for."""

    url: str
    status: int
    body: bytes = b""


class GuardedClient:
    """Calls addresses that the policy allows. `timeout_s` is for a whole call, redirects and body
    included. `keeps_connections`: a connection serves several calls to one server."""

    def __init__(
        self,
        policy: TargetPolicy,
        timeout_s: float,
        *,
        tls: ssl.SSLContext | None = None,
        keeps_connections: bool = False,
    ) -> None:
        self._policy = policy
        self._timeout_s = timeout_s
        self._tls = tls
        self._keeps_connections = keeps_connections
        # One for the loopback and one for all else: which addresses a connection may go to is
        # known by the URL, and connections are never shared between the two.
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends all connections."""
        for session in self._sessions.values():
            await session.close()

    async def call(
        self,
        method: Literal["GET", "POST"],
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        bytes_max: int = 0,
        redirects_max: int = 0,
        count: Callable[[int], None] | None = None,
    ) -> HttpReply:
        """Calls once, follows so many redirects, and reads so many bytes of a good answer. `count`
        is told the bytes of each piece that is read, whatever becomes of it.

        Raises CallRefusedError, BodyTooLongError, CallError.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                for _ in range(redirects_max + 1):
                    hop = self._hop(method, url, headers, body, bytes_max, count)
                    reply, location = await hop
                    if redirects_max == 0 or location is None:
                        return reply
                    url = urljoin(url, location)
        except TimeoutError:
            raise CallError(f"no answer within {self._timeout_s:g} s") from None
        except GzipError as error:
            raise CallError(str(error)) from None
        except (aiohttp.ServerDisconnectedError, ConnectionResetError, BrokenPipeError) as error:
            raise ConnectionDroppedError(" ".join(str(error).split())) from None
        except (aiohttp.ClientError, OSError, ValueError, asyncio.IncompleteReadError) as error:
            raise CallError(" ".join(str(error).split()) or type(error).__name__) from None
        raise CallError(f"there are more than {redirects_max} redirects")

    async def _hop(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        bytes_max: int,
        count: Callable[[int], None] | None,
    ) -> tuple[HttpReply, str | None]:
        """The answer of one server, and where it redirects to."""
        if refusal := target_refusal(url, self._policy):
            raise CallRefusedError(refusal)
        target = URL(url)
        async with self._opened(target).request(
            method, target, data=body, headers=headers, allow_redirects=False
        ) as response:
            if response.status in _REDIRECTS and "location" in response.headers:
                return HttpReply(url, response.status), response.headers["location"]
            is_read = bytes_max > 0 and 200 <= response.status < 300
            read = await _read_body(response, bytes_max, count) if is_read else b""
            return HttpReply(url, response.status, read), None

    def _opened(self, target: URL) -> aiohttp.ClientSession:
        exposure = exposure_of((target.host or "").lower())
        is_ours = self._policy.allows_loopback and exposure is Exposure.LOOPBACK
        if is_ours not in self._sessions:
            connector = aiohttp.TCPConnector(
                limit=0,
                force_close=not self._keeps_connections,
                use_dns_cache=False,
                ssl=self._tls or True,
                socket_factory=partial(self._socket, is_ours),
            )
            self._sessions[is_ours] = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
                trust_env=False,
            )
        return self._sessions[is_ours]

    def _socket(self, is_ours: bool, target: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket:
        """A socket to the very address that is about to be connected to, if that is allowed."""
        family, kind, protocol, _, place = target
        address = ip_address(place[0])
        if is_ours and not is_loopback(address):
            raise PermissionError(EACCES, "the name of the loopback leads elsewhere")
        if not is_ours and not self._policy.allows_private and not is_public(address):
            raise PermissionError(EACCES, "the name leads to a private address")
        return socket(family, kind, protocol)


async def _read_body(
    response: aiohttp.ClientResponse, bytes_max: int, count: Callable[[int], None] | None
) -> bytes:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise CallError(f"the body is compressed as {encoding[:40]!r}")
    sent: AsyncIterator[bytes] = response.content.iter_chunked(CHUNK_BYTES)
    body = bytearray()
    async for chunk in inflated(sent) if "gzip" in encoding else sent:
        body += chunk
        if count is not None:
            count(len(chunk))
        if len(body) > bytes_max:
            raise BodyTooLongError(f"the body is larger than {bytes_max} bytes")
    return bytes(body)
