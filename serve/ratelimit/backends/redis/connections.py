"""Connections to Redis: how they are made for each kind of socket, and how many there are.

A connection that fails is not tried again by itself, for a hit that was sent may have been counted.
"""

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

from redis import Connection, ConnectionPool, Redis, SSLConnection, UnixDomainSocketConnection
from redis.backoff import NoBackoff
from redis.connection import BlockingConnectionPool
from redis.retry import Retry
from redis.sentinel import Sentinel

from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.backends.redis.reply_socket import ReplySocket
from tollgate.serve.settings.outside.kvstore import KvstorePersecondSettings, KvstoreSettings
from tollgate.serve.settings.outside.redis_urls import RedisEndpoint, credentials
from tollgate.serve.settings.values import Address

FindMaster = Callable[[], tuple[str, int]]


class ConnectionCounts:
    """The connections that are open, those that were opened, and those that were closed here, under
    the reference's names. Thread-safe."""

    def __init__(self, scope: str, tallies: Tallies) -> None:
        self.active = 0
        self._scope = scope
        self._tallies = tallies
        self._lock = Lock()
        self._show()

    def open(self) -> None:
        """Note that one was opened."""
        with self._lock:
            self.active += 1
            self._tallies.count(f"{self._scope}.cx_total")
            self._show()

    def close(self) -> None:
        """Note that one was closed."""
        with self._lock:
            self.active -= 1
            self._tallies.count(f"{self._scope}.cx_local_close")
            self._show()

    def _show(self) -> None:
        self._tallies.gauge(f"{self._scope}.cx_active", self.active)


class BoundedConnection:
    """A connection whose exchanges have an end, as the class before Connection."""

    def _connect(self) -> Any:
        found = super()._connect()  # type: ignore[misc]
        return ReplySocket(found, found.gettimeout())


class CountedConnection(BoundedConnection):
    """A connection that is counted besides. `find_master`: asked for the address each time that it
    connects."""

    _sock: Any
    host: str
    port: int

    def __init__(
        self, *, counts: ConnectionCounts, find_master: FindMaster | None = None, **rest: Any
    ) -> None:
        self._counts = counts
        self._find_master = find_master
        super().__init__(**rest)

    def _connect(self) -> Any:
        if self._find_master is not None:
            self.host, self.port = self._find_master()
        sock = super()._connect()
        self._counts.open()
        return sock

    def disconnect(self, *arguments: Any, **options: Any) -> None:
        if self._sock is not None:
            self._counts.close()
        super().disconnect(*arguments, **options)  # type: ignore[misc]


class PlainConnection(CountedConnection, Connection):
    """Over TCP."""


class TlsConnection(CountedConnection, SSLConnection):
    """Over TLS."""


class UnixConnection(CountedConnection, UnixDomainSocketConnection):
    """Over a unix socket."""


class SentinelConnection(BoundedConnection, Connection):
    """To a sentinel."""


class TlsSentinelConnection(BoundedConnection, SSLConnection):
    """To a sentinel, over TLS."""


def connection_options(
    settings: KvstoreSettings,
    server: KvstoreSettings | KvstorePersecondSettings,
    endpoint: RedisEndpoint,
) -> dict[str, Any]:
    """What all connections to this Redis have in common."""
    user, password = credentials(server.auth) or endpoint.credentials or ("", "")
    return {
        "username": user or None,
        "password": password or None,
        "socket_timeout": server.timeout_s,
        "socket_connect_timeout": server.timeout_s,
        "retry": Retry(NoBackoff(), 0),
        "driver_info": None,
        "protocol": 2,
    } | _tls_options(settings, server, endpoint)


def _tls_options(
    settings: KvstoreSettings,
    server: KvstoreSettings | KvstorePersecondSettings,
    endpoint: RedisEndpoint,
) -> dict[str, Any]:
    if not (server.has_tls or endpoint.has_tls):
        return {}
    return {
        "ssl_certfile": settings.tls_cert or None,
        "ssl_keyfile": settings.tls_key or None,
        "ssl_ca_certs": settings.tls_ca or None,
        "ssl_check_hostname": not settings.takes_any_host,
    }


def connection_pool(
    options: dict[str, Any],
    endpoint: RedisEndpoint,
    server: KvstoreSettings | KvstorePersecondSettings,
    counts: ConnectionCounts,
) -> BlockingConnectionPool:
    """The pool of one server's connections: who finds none waits for it, as long as for a reply."""
    place: dict[str, Any] = {"counts": counts}
    has_tls = "ssl_check_hostname" in options
    if endpoint.path:
        place |= {"connection_class": UnixConnection, "path": endpoint.path}
    else:
        (address, *_) = endpoint.addresses
        place |= {"connection_class": TlsConnection if has_tls else PlainConnection}
        place |= {"host": address.host, "port": address.port, "db": endpoint.database}
        place |= {"socket_keepalive": True}
    if endpoint.master:
        sentinels = sentinels_of(options, endpoint.addresses, server)
        place["find_master"] = partial(sentinels.discover_master, endpoint.master)
    return BlockingConnectionPool(  # type: ignore[no-untyped-call]
        max_connections=server.pool_size, timeout=server.timeout_s, **options, **place
    )


def sentinels_of(
    options: dict[str, Any],
    addresses: tuple[Address, ...],
    server: KvstoreSettings | KvstorePersecondSettings,
) -> Sentinel:
    """The sentinels, who know the master; their credentials are others than the master's."""
    user, password = credentials(server.sentinel_auth) or ("", "")
    asked = dict(options) | {"username": user or None, "password": password or None}
    has_tls = "ssl_check_hostname" in options
    asked["connection_class"] = TlsSentinelConnection if has_tls else SentinelConnection
    found = Sentinel([])  # type: ignore[no-untyped-call]
    found.sentinels = [
        Redis(connection_pool=ConnectionPool(host=each.host, port=each.port, **asked))
        for each in addresses
    ]
    return found
