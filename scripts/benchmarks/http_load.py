"""HTTP/1.1 load with a request of its own for every call, which h2load cannot make.

A connection sends the next request when its last one is answered. Answers are read no further than
they must be: status, length, body.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import cast

import uvloop

END_OF_HEADERS = b"\r\n\r\n"
LENGTH = b"content-length: "


@dataclass(frozen=True, slots=True)
class Request:
    """What to send, headers and body, as it goes over the wire."""

    wire: bytes

    @classmethod
    def of(cls, method: str, path: str, headers: Sequence[str], body: bytes = b"") -> "Request":
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
        lines.append(f"Content-Length: {len(body)}")
        return cls("\r\n".join(lines).encode() + END_OF_HEADERS + body)


@dataclass(slots=True)
class Calls:
    """What came of the calls, in the order of the answers. `refused`: those of 300 or more."""

    seconds: float
    latencies_s: list[float]
    bodies: list[bytes]
    refused: int

    @property
    def per_second(self) -> float:
        return len(self.latencies_s) / self.seconds

    def quantile_ms(self, part: float) -> float:
        ordered = sorted(self.latencies_s)
        return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1e3


def run_http(address: tuple[str, int], requests: Sequence[Request], clients: int) -> Calls:
    """Send every request once, over `clients` connections."""
    return uvloop.run(_run(address, deque(requests), min(clients, len(requests))))


async def _run(address: tuple[str, int], waiting: deque[Request], clients: int) -> Calls:
    loop = asyncio.get_running_loop()
    calls = Calls(0.0, [], [], 0)
    begun = perf_counter()
    connections = []
    for _ in range(clients):
        _, connection = await loop.create_connection(lambda: _Connection(waiting, calls), *address)
        connections.append(connection)
    await asyncio.gather(*(connection.is_done for connection in connections))
    calls.seconds = perf_counter() - begun
    return calls


class _Connection(asyncio.Protocol):
    def __init__(self, waiting: deque[Request], calls: Calls) -> None:
        self._waiting = waiting
        self._calls = calls
        self._begun = 0.0
        self._read = b""
        self.is_done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # (uvloop's are of no such class)
        self._next()

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, found, body = self._read.partition(END_OF_HEADERS)
        if not found:
            return
        length = int(head.lower().partition(LENGTH)[2].partition(b"\r\n")[0] or 0)
        if len(body) < length:
            return
        self._read = b""
        self._calls.latencies_s.append(perf_counter() - self._begun)
        self._calls.bodies.append(body)
        self._calls.refused += int(head.split(b" ", 2)[1]) >= 300
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.is_done.done():
            self.is_done.set_exception(error or ConnectionError("closed before an answer"))

    def _next(self) -> None:
        if not self._waiting:
            self.is_done.set_result(None)
            self._transport.close()
            return
        self._begun = perf_counter()
        self._transport.write(self._waiting.popleft().wire)
