"""Memcached servers of the tests' own, each at a free port of the loopback."""

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.waiting import PATIENCE_S, until


@dataclass
class Memcached:
    """A server, which chooses its port itself; started anew it has another, and nothing in it."""

    words: Sequence[str] = ()
    has_tls: bool = False
    port: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        with tempfile.TemporaryDirectory(prefix="tg-") as folder:
            place = Path(folder) / "ports"
            command = ["memcached", "-l", "127.0.0.1", "-p", "-1", "-U", "0", "-u", "root"]
            self._process = subprocess.Popen(
                [*command, "-t", "1", *self.words],
                env=os.environ | {"MEMCACHED_PORT_FILENAME": str(place)},
            )
            text = until(lambda: self._ports(place), "Memcached tells its port")
        self.port = int(text.rpartition(":")[2])
        if not self.has_tls:
            until(self._answers, f"Memcached answers at {self.address}")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def ask(self, command: bytes) -> bytes:
        """The beginning of its reply."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as connection:
            connection.sendall(command + b"\r\n")
            return connection.recv(65_536)

    def value(self, item: bytes) -> bytes | None:
        """The value of an item; None when there is none."""
        head, *lines = self.ask(b"get " + item).split(b"\r\n")
        return lines[0] if head.startswith(b"VALUE") else None

    def _ports(self, place: Path) -> str:
        assert self._process is not None, "it was started"
        assert self._process.poll() is None, "Memcached has ended: see its error output"
        return place.read_text().strip() if place.exists() else ""

    def _answers(self) -> bool:
        try:
            return self.ask(b"version").startswith(b"VERSION")
        except OSError:
            return False


@contextmanager
def memcached(*words: str, has_tls: bool = False) -> Iterator[Memcached]:
    """One that runs for as long as the block lasts; `words`: more for its command line."""
    server = Memcached(words, has_tls)
    server.start()
    try:
        yield server
    finally:
        server.kill()
