"""A TCP proxy between a client and a server that holds back replies when it is told to.

It keeps its port while the server behind it dies and another takes its place.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.support.waiting import PATIENCE_S

CHUNK_BYTES = 65_536


class GatedProxy:
    """Hands on bytes in both directions, to the port `target`."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._is_open = threading.Event()
        self._is_open.set()
        self._connections: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @contextmanager
    def held(self) -> Iterator[None]:
        """For as long as the block lasts, no reply gets through."""
        self._is_open.clear()
        try:
            yield
        finally:
            self._is_open.set()

    def cut(self) -> None:
        """End the connections there are."""
        for connection in tuple(self._connections):
            _end(connection)

    def close(self) -> None:
        """End every connection, and take no more."""
        self._is_open.set()
        _end(self._listener)
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self.target), PATIENCE_S)
                except OSError:
                    _end(client)
                    continue
                server.settimeout(None)
                for source, target, is_reply in ((client, server, False), (server, client, True)):
                    self._connections.add(source)
                    words = (source, target, is_reply)
                    threading.Thread(target=self._hand_on, args=words, daemon=True).start()

    def _hand_on(self, source: socket.socket, target: socket.socket, is_reply: bool) -> None:
        with suppress(OSError):
            while chunk := source.recv(CHUNK_BYTES):
                if is_reply:
                    self._is_open.wait()
                target.sendall(chunk)
        _end(source)
        _end(target)
        self._connections.discard(source)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def gated_proxy(target: int) -> Iterator[GatedProxy]:
    """One for as long as the block lasts."""
    proxy = GatedProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
