"""The JSON door's own port and its bounds: what one connection or caller can make it hold."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.ratelimit.json_port import (
    HEALTH,
    WITHIN_S,
    Reader,
    call,
    dialled,
    json_port,
    passing,
)
from tests.support.waiting import until
from tollgate.actors.ratelimit.rules.descriptors import RequestBounds
from tollgate.serve.ratelimit.fronts.front import DecideBatch
from tollgate.serve.ratelimit.health import Health
from tollgate.serve.ratelimit.json_door import connection, server
from tollgate.serve.ratelimit.json_door.exchange import JsonExchange
from tollgate.serve.ratelimit.json_door.server import JsonDoor

BODY_BYTES_MAX = 64 * 1024
Port = Callable[..., JsonDoor]


TRAILER = (
    b"POST /json HTTP/1.1\r\nHost: door\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: "
    + b"x" * 2 * connection.HEAD_BYTES_MAX
)


@pytest.fixture
def port() -> Iterator[Port]:
    with ExitStack() as to_close:

        def opened(decide_batch: DecideBatch = passing, health: Health | None = None) -> JsonDoor:
            health = health or Health()
            bounds = RequestBounds(request_bytes_max=BODY_BYTES_MAX)
            exchange = JsonExchange(health, is_precise=True, bounds=bounds)
            return to_close.enter_context(json_port(decide_batch, exchange, health))

        yield opened


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"\x16\x03\x01 TLS\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: door\r\nContent-Length: x\r\n\r\n", 400),
        (call(b"0\r\n\r\n", "Transfer-Encoding: chunked"), 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 2 * connection.HEAD_BYTES_MAX, 431),
        (b"GET /" + b"x" * 2 * connection.HEAD_BYTES_MAX, 431),
        (call(b"x" * (BODY_BYTES_MAX + 1)), 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (TRAILER, 431),
        (b"POST /json HTTP/1.1\r\nHost: d\r\nTransfer-Encoding: chunked\r\n\r\n"
         + (b"4000\r\n" + b"x" * 0x4000 + b"\r\n") * 5, 400),
    ],
    ids=["no HTTP", "no length", "two lengths", "a header", "a path", "a body", "no host",
         "a trailer", "chunks"],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_and_the_connection_ends(
    port: Port, request_bytes: bytes, status: int
) -> None:
    with dialled(port()) as link:
        reader = Reader(link)
        link.sendall(request_bytes)
        assert reader.answer()[::2] == (status, "close")
        assert reader.is_at_the_end()


def test_a_body_that_is_refused_may_still_be_on_its_way(port: Port) -> None:
    """Closed at once, the connection would be reset and the answer lost with it."""
    with dialled(port()) as link:
        link.sendall(call(b"x" * 40 * BODY_BYTES_MAX))
        assert Reader(link).answer()[0] == 400


def test_bodies_under_way_have_a_bound(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODY_BYTES_UNDER_WAY_MAX", 4_096)
    door = port()
    with dialled(door) as holding, dialled(door) as refused:
        holding.sendall(call(b"x" * 4_000)[:-1])
        refused.sendall(call(b"x" * 4_000))
        assert Reader(refused).answer()[::2] == (503, "close")
        holding.sendall(b"x")
        assert Reader(holding).answer()[0] == 400
    with dialled(door) as next_one:
        next_one.sendall(call())
        assert Reader(next_one).answer()[0] == 200


@pytest.mark.parametrize(
    ("sent", "status"), [(b"", None), (call()[:20], 408), (call()[:-1], 408)], ids=str
)
def test_a_caller_has_so_much_time(
    port: Port, monkeypatch: pytest.MonkeyPatch, sent: bytes, status: int | None
) -> None:
    monkeypatch.setattr(connection, "REQUEST_WITHIN_S", 0.05)
    monkeypatch.setattr(server, "LOOK_EVERY_S", 0.02)
    with dialled(port()) as link:
        link.sendall(sent)
        reader = Reader(link)
        if status is not None:
            assert reader.answer()[::2] == (status, "close")
        assert reader.is_at_the_end()


def test_a_caller_that_says_no_more_is_left(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SILENCE_MAX_S", 0.05)
    monkeypatch.setattr(server, "LOOK_EVERY_S", 0.02)
    with dialled(port()) as link:
        reader = Reader(link)
        link.sendall(HEALTH)
        assert reader.answer()[0] == 200
        assert reader.is_at_the_end()


def test_connections_have_a_bound(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_OF_ONE_MAX", 2)
    door = port()
    with ExitStack() as links:
        first, second, third = (links.enter_context(dialled(door)) for _ in range(3))
        for link in (first, second):
            link.sendall(HEALTH)
            assert Reader(link).answer()[0] == 200
        assert is_cut(third)
        first.close()

        def is_taken() -> bool:
            with dialled(door) as link:
                return not is_cut(link)

        until(is_taken, "a place for another connection", WITHIN_S)


def is_cut(link: socket.socket) -> bool:
    try:
        link.sendall(HEALTH)
        return link.recv(1) == b""
    except ConnectionError:
        return True


def test_a_caller_that_takes_no_answers_is_not_read(port: Port) -> None:
    """Its calls wait in its own memory, and nobody else waits for it."""
    door = port()
    with dialled(door) as deaf, dialled(door) as other:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        deaf.settimeout(0.5)
        with pytest.raises(TimeoutError):
            deaf.sendall(HEALTH * 1_000_000)
        other.sendall(HEALTH)
        assert Reader(other).answer()[0] == 200
