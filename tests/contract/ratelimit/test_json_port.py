"""The JSON door's own port as HTTP/1.1 (RFC 9112): calls and answers."""

import asyncio
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from threading import Event, Thread

import pytest

from tests.support.ratelimit.json_port import (
    BODY,
    HEALTH,
    WITHIN_S,
    Reader,
    a_service,
    call,
    dialled,
    json_port,
    large_call,
    passing,
)
from tollgate.actors.ratelimit.rules.descriptors import RequestBounds
from tollgate.serve.ratelimit.fronts.front import DecideBatch, ListenAddress, WireReply
from tollgate.serve.ratelimit.health import Component, Health
from tollgate.serve.ratelimit.json_door import connection
from tollgate.serve.ratelimit.json_door.exchange import JsonExchange
from tollgate.serve.ratelimit.json_door.known_calls import (
    CALLS_KEPT_MAX,
    KEPT_CALL_BYTES_MAX,
    KnownCalls,
)
from tollgate.serve.ratelimit.json_door.server import JsonDoor, Turns

BODY_BYTES_MAX = 64 * 1024
Port = Callable[..., JsonDoor]


@pytest.fixture
def port() -> Iterator[Port]:
    with ExitStack() as to_close:

        def opened(decide_batch: DecideBatch = passing, health: Health | None = None) -> JsonDoor:
            health = health or Health()
            bounds = RequestBounds(request_bytes_max=BODY_BYTES_MAX)
            exchange = JsonExchange(health, is_precise=True, bounds=bounds)
            return to_close.enter_context(json_port(decide_batch, exchange, health))

        yield opened


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


def test_a_decision_that_waits_holds_up_nothing_else(port: Port) -> None:
    deciding, released = Event(), Event()

    def decide(payloads: Sequence[bytes]) -> list[WireReply]:
        deciding.set()
        assert released.wait(WITHIN_S)
        return passing(payloads)

    door = port(decide)
    with dialled(door) as waiting, dialled(door) as other:
        waiting.sendall(call())
        assert deciding.wait(WITHIN_S)
        other.sendall(HEALTH)
        assert Reader(other).answer()[1] == b"OK"
        released.set()
        assert Reader(waiting).answer()[0] == 200


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1)})
        self.written = b""
        self.is_read = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It has room."""

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


def test_a_connection_that_brings_much_takes_turns() -> None:
    """One read may bring ten thousand calls; others are heard between them."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        door = Turns(loop, a_service(passing, Health()), JsonExchange(Health(), is_precise=True))
        wire, calls = Wire(), 1_000
        one = connection.HttpConnection(door)
        one.connection_made(wire)
        one.data_received(HEALTH * calls)
        in_a_turn = wire.written.count(b"HTTP/1.1 200")
        assert 0 < in_a_turn <= connection.SLICE_BYTES // len(HEALTH) + 1
        assert not wire.is_read
        while not wire.is_read:
            before = wire.written.count(b"HTTP/1.1 200")
            await asyncio.sleep(0)
            assert wire.written.count(b"HTTP/1.1 200") - before <= in_a_turn + 1
        assert wire.written.count(b"HTTP/1.1 200") == calls

    asyncio.run(scenario())


class Desk:
    """Connections of one door whose calls wait, for nobody decides."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        service, exchange = a_service(passing, Health()), JsonExchange(Health(), is_precise=True)
        self.door = Turns(loop, service, exchange)
        self.asked: list[bytes] = []
        self.door.decide = lambda call: self.asked.append(call.body)  # type: ignore[method-assign]

    def connection(self) -> tuple[connection.HttpConnection, Wire]:
        made, wire = connection.HttpConnection(self.door), Wire()
        made.connection_made(wire)
        return made, wire


@pytest.fixture
def desk() -> Iterator[Desk]:
    loop = asyncio.new_event_loop()
    yield Desk(loop)
    loop.close()


def test_the_same_bytes_are_parsed_once_for_all_connections(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, _), (second, _) = desk.connection(), desk.connection()
    first.data_received(call())
    monkeypatch.setattr(connection.HttpConnection, "_parse", None)
    first.data_received(call())
    second.data_received(call())
    assert desk.asked == [BODY] * 3


@pytest.mark.parametrize(
    "pieces",
    [
        (call()[:-1], call()[-1:]),
        (call() + call(),),
        (call() + HEALTH,),
        (HEALTH,),
        (call(method="HEAD"),),
        (call(BODY, "Connection: close"),),
        (call(BODY, "Expect: 100-continue"),),
        (call(BODY, f"X-Long: {'x' * KEPT_CALL_BYTES_MAX}"),),
        (call().replace(b"HTTP/1.1", b"HTTP/1.0"),),
        (call().replace(b"/json", b"/else"),),
    ],
)
def test_only_one_whole_call_is_known_again(desk: Desk, pieces: tuple[bytes, ...]) -> None:
    made, _ = desk.connection()
    for piece in pieces:
        made.data_received(piece)
    assert all(desk.door.known.body(piece) is None for piece in pieces)


def test_bytes_within_another_call_are_no_call(desk: Desk) -> None:
    made, _ = desk.connection()
    made.data_received(call())
    inner = call()
    made.data_received(call(inner)[: -len(inner)])
    made.data_received(inner)
    assert desk.asked == [BODY, inner]


def test_known_calls_too_are_read_only_while_few_wait(desk: Desk) -> None:
    made, wire = desk.connection()
    for _ in range(connection.WAITING_MAX - 1):
        made.data_received(call())
    assert wire.is_read
    made.data_received(call())
    assert not wire.is_read
    assert len(desk.asked) == connection.WAITING_MAX


def test_what_is_known_is_bounded() -> None:
    known = KnownCalls()
    for number in range(CALLS_KEPT_MAX + 1):
        known.keep(b"%d" % number, BODY)
    assert known.body(b"0") is None
    assert known.body(b"1") == BODY


@pytest.mark.parametrize("target", [b"http://door/json?x", b"HTTP://door:80/json", b"/%6Ason"])
def test_a_target_may_be_written_in_other_ways(port: Port, target: bytes) -> None:
    with dialled(port()) as link:
        link.sendall(call().replace(b" /json ", b" %b " % target))
        assert Reader(link).answer()[:2] == (200, b'{"overallCode":"OK"}')


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
        link.sendall(call(BODY, *wish) * 200)
        assert {reader.answer()[0] for _ in range(200)} == {200}
        link.sendall(b"CONNECT door:80 HTTP/1.1\r\nHost: door\r\n\r\n")
        assert reader.answer()[::2] == (404, "close")


def test_a_drain_answers_what_is_under_way(port: Port) -> None:
    deciding, released = Event(), Event()

    def decide(payloads: Sequence[bytes]) -> list[WireReply]:
        deciding.set()
        assert released.wait(WITHIN_S)
        return passing(payloads)

    health = Health()
    exchange = JsonExchange(health, is_precise=True)
    stack: AbstractContextManager[JsonDoor] = json_port(decide, exchange, health, grace_s=WITHIN_S)
    with ExitStack() as links:
        door = stack.__enter__()
        idle = links.enter_context(dialled(door))
        idle.sendall(HEALTH)
        assert Reader(idle).answer()[0] == 200
        busy = links.enter_context(dialled(door))
        busy.sendall(call())
        assert deciding.wait(WITHIN_S)
        # Whoever looks after its health hears of it.
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
