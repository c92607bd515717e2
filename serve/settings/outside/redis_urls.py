"""The places of a Redis, as URLs name them: a server, its sentinels, the nodes of a cluster."""

from dataclasses import dataclass
from enum import Enum

from tollgate.serve.settings.values import Address, BadValueError, address, whole_number

REDIS_PORT = 6_379


class Layout(Enum):
    """The way in which a Redis is laid out over processes."""

    SINGLE = "SINGLE"
    SENTINEL = "SENTINEL"
    CLUSTER = "CLUSTER"


class SocketType(Enum):
    """The kind of socket that leads to a Redis."""

    UNIX = "unix"
    TCP = "tcp"


@dataclass(frozen=True, slots=True)
class RedisEndpoint:
    """The place of a Redis, out of its URL. `path` of a unix socket, or else `addresses`: of the
    server, the sentinels (`master`: the name of what they watch), or nodes of the cluster.
    `credentials`: user and password that stood in the URL."""

    path: str = ""
    addresses: tuple[Address, ...] = ()
    master: str = ""
    credentials: tuple[str, str] | None = None
    database: int = 0
    has_tls: bool = False

    def __str__(self) -> str:
        """The place for people, without credentials."""
        shown = self.path or ", ".join(f"{each.host}:{each.port}" for each in self.addresses)
        return f"{self.master} by {shown}" if self.master else shown


def redis_endpoint(url: str, kind: Layout, socket: SocketType | None) -> RedisEndpoint:
    """The place that an URL names. `socket` None: it was not said, and follows from the URL.
    Raises `BadValueError`."""
    if kind is Layout.SENTINEL:
        master, *sentinels = (part.strip() for part in url.split(","))
        if not master or not any(sentinels):
            raise BadValueError(
                "does not name a master and its sentinels: write MASTER,HOST:PORT,HOST:PORT,..."
            )
        return _at([_server(each) for each in sentinels if each], master)
    if kind is Layout.CLUSTER:
        return _at([_server(each.strip()) for each in url.split(",") if each.strip()], "")
    if url.startswith("unix://"):
        return RedisEndpoint(path=url.removeprefix("unix://"))
    is_path = url.startswith("/")
    if (socket is SocketType.UNIX and "://" not in url) or (socket is None and is_path):
        if not url:
            raise BadValueError("is not the path of a unix socket")
        return RedisEndpoint(path=url)
    return _server(url)


def _at(servers: list[RedisEndpoint], master: str) -> RedisEndpoint:
    if not servers:
        raise BadValueError("names no server: write HOST:PORT,HOST:PORT,...")
    addresses = tuple(address for each in servers for address in each.addresses)
    has_tls = any(each.has_tls for each in servers)
    return RedisEndpoint(
        addresses=addresses, master=master, credentials=servers[0].credentials, has_tls=has_tls
    )


def _server(url: str) -> RedisEndpoint:
    scheme, mark, rest = url.rpartition("://")
    if mark and scheme not in ("redis", "rediss", "tcp"):
        raise BadValueError("has a scheme that is none of redis, rediss, unix")
    user_text, at, place = rest.rpartition("@")
    place, _, database = place.partition("/")
    if mark and not place.rpartition("]")[2].partition(":")[1]:
        place = f"{place}:{REDIS_PORT}"
    try:
        found = address(place)
    except BadValueError:
        raise BadValueError(
            "is not host:port, redis://host:port, or the path of a socket"
        ) from None
    if not found.port:
        raise BadValueError("has port 0")
    return RedisEndpoint(
        addresses=(Address(found.host or "127.0.0.1", found.port),),
        credentials=credentials(user_text) if at else None,
        database=_database(database) if database else 0,
        has_tls=scheme == "rediss",
    )


def _database(text: str) -> int:
    try:
        return whole_number(0, 2**16)(text)
    except BadValueError as error:
        raise BadValueError(f"names a database, behind its `/`, that {error}") from None


def credentials(auth: str) -> tuple[str, str] | None:
    """User and password of `password`, or `user:password`; None for none."""
    user, mark, password = auth.partition(":")
    if not auth:
        return None
    return (user, password) if mark else ("", user)
