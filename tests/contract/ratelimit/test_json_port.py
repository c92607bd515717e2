"""The JSON door's own port as HTTP/1.1 (RFC 9112): order, ends and bounds of a connection."""

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.client import HTTPResponse
from threading import Event, Thread

import pytest

from tests.support.ratelimit.json_port import json_port
from tests.support.waiting import until
from tollgate.actors.ratelimit.rules.descriptors import RequestBounds
from tollgate.serve.ratelimit.codec.answers import response_bytes
from tollgate.serve.ratelimit.fronts.front import DecideBatch, ListenAddress, WireReply
from tollgate.serve.ratelimit.health import Component, Health
from tollgate.serve.ratelimit.json_door import connection, server
from tollgate.serve.ratelimit.json_door.exchange import LARGE_BODY_BYTES, JsonExchange
from tollgate.serve.ratelimit.json_door.server import JsonDoor

BODY_BYTES_MAX = 64 * 1024
BODY = json.dumps({"domain": "d", "descriptors": [{"entries": [{"key": "k"}]}]}).encode()
WITHIN_S = 10.0
HEALTH = b"GET /healthcheck HTTP/1.1\r\nHost: door\r\n\r\n"
Port = Callable[..., JsonDoor]


def passing(payloads: Sequence[bytes]) -> list[WireReply]:
    return [response_bytes(1, [])] * len(payloads)


def call(body: bytes = BODY, *headers: str, method: str = "POST") -> bytes:
    lines = "".join(f"{line}\r\n" for line in (*headers, f"Content-Length: {len(body)}"))
    return f"{method} /json HTTP/1.1\r\nHost: door\r\n{lines}\r\n".encode() + body


def large_call() -> bytes:
    return call(b" " * LARGE_BODY_BYTES + BODY)


@pytest.fixture
def port() -> Iterator[Port]:
    with ExitStack() as to_close:

        def opened(decide_batch: DecideBatch = passing, health: Health | None = None) -> JsonDoor:
            health = health or Health()
            bounds = RequestBounds(request_bytes_max=BODY_BYTES_MAX)
            exchange = JsonExchange(health, is_precise=True, bounds=bounds)
            return to_close.enter_context(json_port(decide_batch, exchange, health))

        yield opened


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


def test_a_connection_brings_many_calls(port: Port) -> None:
    with dialled(port()) as link:
        reader = Reader(link)
        for _ in range(3):
            link.sendall(call())
            assert reader.answer()[:2] == (200, b'{"overallCode":"OK"}')


def test_answers_come_in_the_order_of_the_calls(port: Port) -> None:
    with dialled(port()) as link:
        reader = Reader(link)
        # The first is read in a thread, and the others could be answered before.
        link.sendall(large_call() + HEALTH + call() + HEALTH)
        assert [reader.answer()[1] for _ in range(4)] == [
            b'{"overallCode":"OK"}',
            b"OK",
            b'{"overallCode":"OK"}',
            b"OK",
        ]


def test_a_call_may_come_byte_by_byte_and_in_chunks(port: Port) -> None:
    head = b"POST /json?x=1 HTTP/1.1\r\nHost: door\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"5\r\n" + BODY[:5] + b"\r\n%x\r\n" % len(BODY[5:]) + BODY[5:] + b"\r\n0\r\n\r\n"
    with dialled(port()) as link:
        for byte in head + chunks:
            link.sendall(bytes([byte]))
        assert Reader(link).answer()[0] == 200


def test_calls_of_one_moment_are_one_batch(port: Port) -> None:
    sizes: list[int] = []
    first, released = Event(), Event()

    def decide(payloads: Sequence[bytes]) -> list[WireReply]:
        sizes.append(len(payloads))
        first.set()
        assert released.wait(WITHIN_S)
        return passing(payloads)

    door = port(decide)
    with ExitStack() as links:
        opened = [links.enter_context(dialled(door)) for _ in range(9)]
        for link in opened:
            link.sendall(HEALTH)
            assert Reader(link).answer()[0] == 200
        opened[0].sendall(call())
        assert first.wait(WITHIN_S)
        for link in opened[1:]:
            link.sendall(call())
        released.set()
        assert {Reader(link).answer()[0] for link in opened} == {200}
    assert sizes == [1, 8]


def test_the_head_of_an_answer_has_no_body(port: Port) -> None:
    with dialled(port()) as link:
        reader = Reader(link)
        link.sendall(call(method="HEAD") + HEALTH)
        assert reader.answer("HEAD") == (200, b"", None)
        assert reader.answer()[1] == b"OK"


@pytest.mark.parametrize(
    "request_bytes",
    [call(BODY, "Connection: close"), call().replace(b"HTTP/1.1", b"HTTP/1.0")],
)
def test_who_wants_it_closed_has_it_closed(port: Port, request_bytes: bytes) -> None:
    with dialled(port()) as link:
        reader = Reader(link)
        link.sendall(request_bytes)
        assert reader.answer()[::2] == (200, "close")
        assert reader.is_at_the_end()


def test_who_asks_first_may_send_a_body(port: Port) -> None:
    with dialled(port()) as link:
        head, _, body = call(BODY, "Expect: 100-continue").partition(b"\r\n\r\n")
        link.sendall(head + b"\r\n\r\n")
        go_on = b"HTTP/1.1 100 Continue\r\n\r\n"
        assert link.recv(len(go_on), socket.MSG_WAITALL) == go_on
        link.sendall(body)
        assert Reader(link).answer()[0] == 200


def test_a_wish_for_another_protocol_is_no_obstacle(port: Port) -> None:
    wish = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
    with dialled(port()) as link:
        reader = Reader(link)
        link.sendall(call(BODY, *wish))
        assert reader.answer()[0] == 200
        link.sendall(call(BODY, *wish)[:-1])
        link.sendall(BODY[-1:] + call())
        assert [reader.answer()[0] for _ in range(2)] == [200, 200]
        link.sendall(b"CONNECT door:80 HTTP/1.1\r\nHost: door\r\n\r\n")
        assert reader.answer()[::2] == (404, "close")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"\x16\x03\x01 TLS\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: door\r\nContent-Length: x\r\n\r\n", 400),
        (call(b"0\r\n\r\n", "Transfer-Encoding: chunked"), 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 2 * connection.HEAD_BYTES_MAX, 431),
        (b"GET /" + b"x" * 2 * connection.HEAD_BYTES_MAX, 431),
        (call(b"x" * (BODY_BYTES_MAX + 1)), 400),
        (b"POST /json HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
         + (b"4000\r\n" + b"x" * 0x4000 + b"\r\n") * 5, 400),
    ],
    ids=["no HTTP", "no length", "two lengths", "a header", "a path", "a body", "chunks"],
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


def test_a_drain_answers_what_is_under_way(port: Port) -> None:
    deciding, released = Event(), Event()

    def decide(payloads: Sequence[bytes]) -> list[WireReply]:
        deciding.set()
        assert released.wait(WITHIN_S)
        return passing(payloads)

    health = Health()
    exchange = JsonExchange(health, is_precise=True)
    stack: AbstractContextManager[JsonDoor] = json_port(decide, exchange, health)
    with ExitStack() as links:
        door = stack.__enter__()
        idle = links.enter_context(dialled(door))
        idle.sendall(HEALTH)
        assert Reader(idle).answer()[0] == 200
        busy = links.enter_context(dialled(door))
        busy.sendall(call())
        assert deciding.wait(WITHIN_S)
        health.set(Component.SIGTERM, is_healthy=False)
        drain = Thread(target=stack.__exit__, args=(None, None, None))
        drain.start()
        released.set()
        reader = Reader(busy)
        assert reader.answer()[0] == 200
        assert reader.is_at_the_end()
        assert Reader(idle).is_at_the_end()
        drain.join(WITHIN_S)
        assert not drain.is_alive()
        with pytest.raises(ConnectionRefusedError):
            links.enter_context(dialled(door))


def test_a_port_that_is_taken_is_said_with_its_address(port: Port) -> None:
    taken = port()
    host, _, number = taken.address.rpartition(":")
    exchange = JsonExchange(Health(), is_precise=True)
    listen = ListenAddress(host=host, port=int(number))
    with (
        pytest.raises(OSError, match=f"the JSON door cannot listen on {taken.address}: "),
        json_port(passing, exchange, Health(), listen),
    ):
        pass
