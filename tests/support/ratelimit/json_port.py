"""The JSON door on a free port of its own, and its callers, byte by byte."""

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPResponse

from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.ratelimit.codec.answers import response_bytes
from tollgate.serve.ratelimit.fronts.front import DecideBatch, ListenAddress, Service, WireReply
from tollgate.serve.ratelimit.health import Health
from tollgate.serve.ratelimit.json_door.exchange import LARGE_BODY_BYTES, JsonExchange
from tollgate.serve.ratelimit.json_door.server import JsonDoor

DRAIN_GRACE_S = 0.05
BODY = json.dumps({"domain": "d", "descriptors": [{"entries": [{"key": "k"}]}]}).encode()
WITHIN_S = 10.0
HEALTH = b"GET /healthcheck HTTP/1.1\r\nHost: door\r\n\r\n"
FREE_PORT = ListenAddress(host="127.0.0.1", port=0)


def a_service(decide_batch: DecideBatch, health: Health) -> Service:
    """A service that nobody observes."""
    return Service(
        decide_batch=decide_batch,
        health=health,
        clock=SystemClock(),
        observe=lambda method, calls, seconds: None,
        on_error=lambda error: None,
        count=lambda name, by: None,
    )


@contextmanager
def json_port(
    decide_batch: DecideBatch,
    exchange: JsonExchange,
    health: Health,
    listen: ListenAddress = FREE_PORT,
    grace_s: float = DRAIN_GRACE_S,
) -> Iterator[JsonDoor]:
    """Opens it, and drains it at the end."""
    door = JsonDoor(listen, a_service(decide_batch, health), exchange)
    door.start()
    try:
        yield door
    finally:
        door.drain(grace_s)


def passing(payloads: Sequence[bytes]) -> list[WireReply]:
    return [response_bytes(1, [])] * len(payloads)


def call(body: bytes = BODY, *headers: str, method: str = "POST") -> bytes:
    lines = "".join(f"{line}\r\n" for line in (*headers, f"Content-Length: {len(body)}"))
    return f"{method} /json HTTP/1.1\r\nHost: door\r\n{lines}\r\n".encode() + body


def large_call() -> bytes:
    return call(b" " * LARGE_BODY_BYTES + BODY)


@contextmanager
def dialled(door: JsonDoor) -> Iterator[socket.socket]:
    host, _, number = door.address.rpartition(":")
    with socket.create_connection((host, int(number)), timeout=WITHIN_S) as link:
        yield link


class Reader:
    """Reads answers off one connection."""

    def __init__(self, link: socket.socket) -> None:
        self._file = link.makefile("rb")

    def answer(self, method: str = "POST") -> tuple[int, bytes, str | None]:
        """The next one: its status, its body, and its Connection header."""
        response = HTTPResponse(_Held(self._file), method=method)  # type: ignore[arg-type]
        response.begin()
        return response.status, response.read(), response.getheader("Connection")

    def is_at_the_end(self) -> bool:
        return self._file.read(1) == b""


class _Held:
    """A socket to HTTPResponse, which closes the file that it makes of it."""

    def __init__(self, file: object) -> None:
        self._file = file

    def makefile(self, mode: str) -> "_Held":
        return self

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def close(self) -> None:
        """The connection has more answers."""
