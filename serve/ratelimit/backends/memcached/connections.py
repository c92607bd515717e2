"""Connections to one Memcached node, over pymemcache: many items in one exchange.

Two things are ours. A host is tried at all of its addresses, and replies to many commands are read
one by one, so that an error of one of them is that one's alone.
"""

import socket
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from select import POLLIN, poll
from ssl import SSLContext
from typing import Any

from pymemcache.client.base import Client
from pymemcache.exceptions import (
    MemcacheError,
    MemcacheServerError,
    MemcacheUnexpectedCloseError,
    MemcacheUnknownError,
)

from tollgate.serve.ratelimit.backends.timed_socket import TimedSocket
from tollgate.serve.settings.values import Address

ITEMS_PER_EXCHANGE_MAX = 256
"""So many commands and their replies fit into the buffers of two sockets."""
IDLE_CONNECTIONS = 2
"""In place of a setting of 0, as in the reference's client."""
EXCHANGE_BYTES_MAX = 4 << 20
"""The longest reply to the commands of an exchange. Counts are a few hundred bytes each."""


class NodeFailure(Exception):  # noqa: N818 (it reads as what is reported)
    """A node gave no answer. `is_down`: it cannot be reached, or (`is_late`) not in time."""

    def __init__(self, text: str, *, is_down: bool, is_late: bool = False) -> None:
        super().__init__(text)
        self.is_down = is_down
        self.is_late = is_late


class MemcachedClient(Client):  # type: ignore[misc]
    """One connection. Every failure is an `NodeFailure`, and closes it."""

    def __init__(self, address: Address, timeout_s: float, tls: SSLContext | None) -> None:
        super().__init__(
            (address.host, address.port),
            connect_timeout=timeout_s,
            timeout=timeout_s,
            no_delay=True,
            tls_context=tls,
        )

    def values(self, items: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those items that are there."""
        with self._reported():
            found: dict[bytes, bytes] = {}
            for share in _shares(items):
                found |= self.get_many(share)
            return found

    def replies(self, commands: Sequence[bytes]) -> list[bytes]:
        """The first line of the reply to each of these commands."""
        with self._reported():
            lines: list[bytes] = []
            self._drop_ended()
            for share in _shares(commands):
                lines += self._misc_cmd(share, b"", False)
            return lines

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            self.close()
            raise NodeFailure("no answer in time", is_down=True, is_late=True) from None
        except (OSError, MemcacheUnexpectedCloseError) as error:
            self.close()
            text = str(error) or "the connection was closed"
            raise NodeFailure(text, is_down=True) from None
        except (MemcacheError, ValueError, LookupError) as error:
            # (the last two: a reply that is none of the protocol)
            self.close()
            text = f"{type(error).__name__}: {error}"
            raise NodeFailure(text, is_down=False) from None

    def _drop_ended(self) -> None:
        """Close a connection that the node has closed: what is sent into it would be lost."""
        if self.sock is None:
            return
        look = poll()
        look.register(self.sock, POLLIN)
        if look.poll(0):
            self.close()

    def _raise_errors(self, line: bytes, name: bytes) -> None:
        # Called for each line of a reply. An error is for whoever reads the lines, but for `get`.
        if name == b"get" and line.startswith((b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR")):
            raise MemcacheServerError(line[:256].decode("ascii", "replace"))

    def _extract_value(self, expect_cas: bool, line: bytes, *rest: Any) -> Any:
        # The library takes a length below 0 for one.
        if not line.rsplit(b" ", 1)[-1].isdigit():
            raise MemcacheUnknownError(line[:32])
        return super()._extract_value(expect_cas, line, *rest)

    def _connect(self) -> None:
        self.close()
        host, port = self.server
        connection = socket.create_connection((host, port), self.timeout)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls_context is not None:
                connection = self.tls_context.wrap_socket(connection, server_hostname=host)
        except OSError:
            connection.close()
            raise
        self.sock = TimedSocket(connection, self.timeout, reply_bytes_max=EXCHANGE_BYTES_MAX)


class IdleConnections:
    """Connections to one node: as many as there are calls at once, of which some are kept."""

    def __init__(
        self, address: Address, *, timeout_s: float, idle_max: int, tls: SSLContext | None
    ) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._idle_max = idle_max or IDLE_CONNECTIONS
        self._tls = tls
        self._idle: deque[MemcachedClient] = deque()
        self._is_closed = False

    def values(self, items: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """As a client's. Raises `NodeFailure`."""
        try:
            client = self._idle.pop()
        except IndexError:
            client = None
        if client is not None:
            try:
                return self._kept(client, items)
            except NodeFailure as failure:
                if failure.is_late or not failure.is_down:
                    raise
                # The node may have been started anew since this connection was used.
                self._drop_idle()
        return self._kept(self.new(), items)

    def new(self) -> MemcachedClient:
        """A connection that is nobody else's, opened with its first use."""
        return MemcachedClient(self._address, self._timeout_s, self._tls)

    def close(self) -> None:
        """Close what is idle, and keep none from now on."""
        self._is_closed = True
        self._drop_idle()

    def _kept(self, client: MemcachedClient, items: Sequence[bytes]) -> Mapping[bytes, bytes]:
        values = client.values(items)
        if self._is_closed or len(self._idle) >= self._idle_max:
            client.close()
        else:
            self._idle.append(client)
        return values

    def _drop_idle(self) -> None:
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:
                return


def _shares(items: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(items), ITEMS_PER_EXCHANGE_MAX):
        yield items[start : start + ITEMS_PER_EXCHANGE_MAX]
