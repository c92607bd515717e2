"""Documents from addresses that somebody else has told (specification, part D, "Crawling").

    the address told     https (http only if allowed), a host, no user, no port 0
    the address dialled  judged when the socket is made, after the DNS, for each connection
    a redirect           is another address told: judged from the start, a few of them at most
    the body             read to its bound, compressed or not

No cookie is kept, no credential is sent, no proxy of the environment is used. This is the one
module of the service that opens sockets, and the client it needs is imported when it is needed.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from errno import EACCES
from ipaddress import ip_address
from socket import socket
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urljoin, urlsplit

from tollgate.serve.catalog_auth.api.bodies import inflated
from tollgate.serve.catalog_auth.api.problems import BadBody
from tollgate.serve.net.public_addresses import is_public

if TYPE_CHECKING:
    import aiohttp

URL_LENGTH_MAX = 2_048
REDIRECTS_MAX = 5
CHUNK_BYTES = 64 * 1024
ACCEPT = "application/geo+json, application/json;q=0.9, */*;q=0.1"
USER_AGENT = "Tollgate-catalog-auth"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FetchError(Exception):
    """A document that was not fetched; `str()` says why in one line."""


class TooLongError(FetchError):
    """The document is larger than was asked for."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document, and the address that it came from in the end."""

    url: str
    body: bytes


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """Where to fetch from, and how much. `allows_private`: addresses that only we can reach."""

    timeout_s: float
    bytes_max: int
    allows_http: bool = False
    allows_private: bool = False


class Fetcher(Protocol):
    """Gets documents."""

    async def fetch(self, url: str, bytes_max: int) -> Fetched:
        """The document, no larger than that. Raises FetchError."""


class GuardedFetcher:
    """Gets documents over HTTP, from where the policy allows; a context."""

    def __init__(self, policy: FetchPolicy) -> None:
        self._policy = policy
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> "GuardedFetcher":
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(use_dns_cache=False, socket_factory=self._socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._policy.timeout_s),
            headers={"Accept": ACCEPT, "Accept-Encoding": "gzip", "User-Agent": USER_AGENT},
            auto_decompress=False,
            trust_env=False,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def fetch(self, url: str, bytes_max: int) -> Fetched:
        for _ in range(REDIRECTS_MAX + 1):
            check_address(url, self._policy)
            found = await self._hop(url, min(bytes_max, self._policy.bytes_max))
            if isinstance(found, Fetched):
                return found
            url = found
        raise FetchError(f"there are more than {REDIRECTS_MAX} redirects")

    async def _hop(self, url: str, bytes_max: int) -> Fetched | str:
        """The document, or where a redirect leads."""
        import aiohttp
        from yarl import URL

        try:
            async with self._session.get(URL(url), allow_redirects=False) as response:
                if response.status in _REDIRECTS and "location" in response.headers:
                    return urljoin(url, response.headers["location"])
                if response.status != 200:
                    raise FetchError(f"HTTP status {response.status}")
                return Fetched(url, await _body(response, bytes_max))
        except TimeoutError:
            raise FetchError(f"no answer within {self._policy.timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FetchError(_in_one_line(error)) from None

    def _socket(self, target: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket:
        """A socket to the very address that is about to be connected to, if that is allowed."""
        family, kind, protocol, _, place = target
        if not self._policy.allows_private and not is_public(ip_address(place[0])):
            raise PermissionError(EACCES, "the name leads to a private address")
        return socket(family, kind, protocol)


def check_address(url: str, policy: FetchPolicy) -> None:
    """Whether a document may be asked for there, as far as the address itself tells. Raises
    FetchError."""
    if len(url) > URL_LENGTH_MAX or any(each.isspace() or not each.isprintable() for each in url):
        raise FetchError("the address is too long, or holds blanks")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise FetchError("the address is none") from None
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise FetchError("the address is not one of the web, such as https://example.com/a.json")
    if parts.scheme == "http" and not policy.allows_http:
        raise FetchError("the address is not https (CATALOG_CRAWL_ALLOW_HTTP)")
    if parts.username is not None or parts.password is not None:
        raise FetchError("the address holds a user name or a password")
    try:
        address = ip_address(host)
    except ValueError:
        return
    if not policy.allows_private and not is_public(address):
        raise FetchError("the address is a private one (CATALOG_CRAWL_ALLOW_PRIVATE)")


async def _body(response: "aiohttp.ClientResponse", bytes_max: int) -> bytes:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise FetchError(f"the body is compressed as {encoding[:40]!r}")
    body = bytearray()
    try:
        async for chunk in _chunks(response, is_compressed="gzip" in encoding):
            body += chunk
            if len(body) > bytes_max:
                raise TooLongError(f"the document is larger than {bytes_max} bytes")
    except BadBody as problem:
        raise FetchError(problem.detail) from None
    return bytes(body)


async def _chunks(
    response: "aiohttp.ClientResponse", *, is_compressed: bool
) -> AsyncIterator[bytes]:
    sent = response.content.iter_chunked(CHUNK_BYTES)
    async for chunk in inflated(sent) if is_compressed else sent:
        yield chunk


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
