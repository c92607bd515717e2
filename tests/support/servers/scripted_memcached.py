"""A server that answers commands of Memcached as a test says, to see what a client makes of it."""

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Script = Callable[[bytes], bytes]
"""The reply to a command, by its first word."""


@contextmanager
def scripted(script: Script) -> Iterator[tuple[int, list[bytes]]]:
    """Its port, and the first words of the commands that it gets; `version` is answered apart."""
    seen: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while line := self.rfile.readline():
                word = line.split()[0]
                if word == b"add":
                    self.rfile.readline()
                if word == b"version":
                    self.wfile.write(b"VERSION 1\r\n")
                    continue
                seen.append(word)
                self.wfile.write(script(word))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.server_address[1], seen
        finally:
            server.shutdown()
            thread.join()
