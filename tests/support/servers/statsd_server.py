"""Servers of statsd lines, over TCP and UDP, that can be killed and started again."""

import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from select import select
from threading import Event, Thread

from tests.support.waiting import until

# An address where hardly anybody else takes a port while a server of ours is away.
HOST = "127.0.81.25"
_LINE = re.compile(r"([^:|\s]+):(-?[0-9.]+)\|(c|g|ms)(?:\|@([0-9.]+))?(?:\|#(.+))?")
_LOOK_EVERY_S = 0.02


class StatsdServer:
    """Adds up what it hears. `kind`: "tcp" or "udp". A line that is none is in `malformed`."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.lines: list[str] = []
        self.malformed: list[str] = []
        self.datagram_bytes_max = 0
        self.connections = 0
        self._port = 0
        self._ended = Event()
        self._is_reading = Event()
        self._is_reading.set()
        self._is_idle = Event()
        self._thread: Thread | None = None
        self.start()

    @property
    def host(self) -> str:
        return HOST

    @property
    def port(self) -> int:
        return self._port

    def start(self) -> None:
        """Listen, at the same place as before."""
        kind = socket.SOCK_STREAM if self.kind == "tcp" else socket.SOCK_DGRAM
        listening = socket.socket(socket.AF_INET, kind)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, self._port))
        self._port = listening.getsockname()[1]
        if self.kind == "tcp":
            listening.listen()
        self._ended = Event()
        work = self._accept if self.kind == "tcp" else self._receive
        self._thread = Thread(target=work, args=(listening, self._ended), daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """End at once, with whatever was not read."""
        self._ended.set()
        assert self._thread is not None
        self._thread.join()

    def pause(self) -> None:
        """Read nothing any more, from now on."""
        self._is_idle.clear()
        self._is_reading.clear()
        assert self._is_idle.wait(60)

    def resume(self) -> None:
        self._is_reading.set()

    def counters(self) -> dict[str, float]:
        """The sum of each counter, as servers add up."""
        found: Counter[str] = Counter()
        for name, value, kind, rate, _ in self._values():
            if kind == "c":
                found[name] += float(value) / float(rate or 1)
        return dict(found)

    def timed_calls(self) -> float:
        """The calls of which a time was heard."""
        return sum(1 / float(rate or 1) for _, _, kind, rate, _ in self._values() if kind == "ms")

    def wait_for(self, name: str, total: float) -> None:
        until(lambda: self.counters().get(name) == total, f"{name} has come to {total}")

    def _values(self) -> Iterator[tuple[str, str, str, str, str]]:
        for line in list(self.lines):
            found = _LINE.fullmatch(line)
            assert found is not None, line
            name, value, kind, rate, tags = found.groups()
            yield name, value, kind, rate, tags

    def _hear(self, line: str) -> None:
        if line:
            (self.lines if _LINE.fullmatch(line) else self.malformed).append(line)

    def _idles(self, ended: Event) -> bool:
        if self._is_reading.is_set():
            return False
        self._is_idle.set()
        ended.wait(_LOOK_EVERY_S)
        return True

    def _receive(self, listening: socket.socket, ended: Event) -> None:
        with listening:
            while not ended.is_set():
                if self._idles(ended) or not select([listening], [], [], _LOOK_EVERY_S)[0]:
                    continue
                content = listening.recv(65_536)
                self.datagram_bytes_max = max(self.datagram_bytes_max, len(content))
                for line in content.decode().split("\n"):
                    self._hear(line)

    def _accept(self, listening: socket.socket, ended: Event) -> None:
        open_ones: dict[socket.socket, bytes] = {}
        with listening:
            while not ended.is_set():
                if self._idles(ended):
                    continue
                for ready in select([listening, *open_ones], [], [], _LOOK_EVERY_S)[0]:
                    if ready is listening:
                        open_ones[ready.accept()[0]] = b""
                        self.connections += 1
                    elif not self._read(ready, open_ones):
                        del open_ones[ready]
                        ready.close()
        for each in open_ones:
            each.close()

    def _read(self, connected: socket.socket, open_ones: dict[socket.socket, bytes]) -> bool:
        try:
            content = connected.recv(65_536)
        except ConnectionError:
            return False
        *lines, rest = (open_ones[connected] + content).split(b"\n")
        open_ones[connected] = rest
        for line in lines:
            self._hear(line.decode())
        return bool(content)


@contextmanager
def statsd_server(kind: str) -> Iterator[StatsdServer]:
    server = StatsdServer(kind)
    try:
        yield server
    finally:
        server.kill()
