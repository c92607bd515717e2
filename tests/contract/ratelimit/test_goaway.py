"""GOAWAY that is written beside a server's own frames never comes between two parts of one."""

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from select import select

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.front_peer import shared
from tests.support.ratelimit.grpc_peers import (
    PATIENCE_S,
    Decisions,
    World,
)
from tests.support.ratelimit.http2_by_hand import (
    GOAWAY as GOAWAY_FRAME,
)
from tests.support.ratelimit.http2_by_hand import (
    FrameReader,
    calls_by_hand,
    connect_by_hand,
)
from tests.support.waiting import until
from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.net.shared_ports import claim, is_listening, sockets_at
from tollgate.serve.ratelimit.fronts import hand_over, native
from tollgate.serve.ratelimit.fronts.front import Front
from tollgate.serve.ratelimit.fronts.hand_over import GOAWAY, AnswerGate, Notices, Written
from tollgate.serve.settings.choices import GrpcFront

REPLY = b"r" * 300_000
CALLS = 40
# Small, so that a server soon finds its connection full.
READ_BUFFER = 16_384


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A server's end of a connection that has spoken, and its caller's."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        caller = socket.create_connection(listening.getsockname(), PATIENCE_S)
        server, _ = listening.accept()
        with caller, server:
            server.setblocking(False)
            server.send(b"hello")
            assert caller.recv(5) == b"hello"
            yield server, caller


def fill(server: socket.socket) -> int:
    """Writes as much as the connection takes; how much."""
    written = 0
    while True:
        try:
            written += server.send(b"x" * 65_536)
        except BlockingIOError:
            return written


def _read(caller: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        read += caller.recv(size - len(read))
    return read


def look(notices: Notices) -> Written:
    return {peer: n for turn in notices.turns() for peer, n in notices.look(turn).items()}


def tell(notices: Notices, before: Written) -> None:
    for turn in notices.turns():
        notices.tell(turn, before)


def is_full(front: Front) -> bool:
    """Whether a connection of it takes no more at this moment."""
    return any(
        not is_listening(each) and not select([], [each], [], 0)[1] for each in ends_of(front)
    )


def listens(front: Front) -> bool:
    return any(map(is_listening, ends_of(front)))


def ends_of(front: Front) -> Iterator[socket.socket]:
    return (end for _, end in sockets_at(int(front.address.rpartition(":")[2])))


def test_a_quiet_connection_is_told_once(pair: tuple[socket.socket, socket.socket]) -> None:
    server, caller = pair
    notices = Notices(server.getsockname()[1])
    for _ in range(2):
        tell(notices, look(notices))
        assert not notices.has_left
    server.send(b"rest")
    assert _read(caller, len(GOAWAY) + 4) == GOAWAY + b"rest"


def test_nothing_is_said_before_the_rest_of_a_frame(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    server, caller = pair
    is_writer_asleep = False
    notices = Notices(server.getsockname()[1], lambda: is_writer_asleep)
    size = fill(server)  # and the rest of a frame waits in the server
    assert look(notices) == {}
    assert notices.has_left
    reading = threading.Thread(target=_read, args=(caller, size))
    reading.start()
    until(lambda: look(notices), "it can be written to again")
    reading.join(PATIENCE_S)
    before = look(notices)
    server.send(b"rest")
    tell(notices, before)
    assert notices.has_left
    assert _read(caller, 4) == b"rest"
    tell(notices, look(notices))
    assert notices.has_left, "its server may still wait for a processor"
    is_writer_asleep = True
    tell(notices, look(notices))
    assert not notices.has_left
    assert _read(caller, len(GOAWAY)) == GOAWAY


def test_a_server_that_has_not_spoken_yet_speaks_first() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        with socket.create_connection(address, PATIENCE_S) as caller:
            server, _ = listening.accept()
            with server:
                notices = Notices(address[1])
                tell(notices, look(notices))
                assert notices.has_left
                server.send(b"hello")
                assert _read(caller, 5) == b"hello"
                tell(notices, look(notices))
                assert _read(caller, len(GOAWAY)) == GOAWAY


def test_a_probe_that_says_nothing_keeps_nobody_waiting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        with socket.create_connection(address, PATIENCE_S) as caller:
            server, _ = listening.accept()
            with server:
                notices = Notices(address[1])
                tell(notices, look(notices))
                assert notices.has_left, "its first bytes may be on their way"
                notices.heeds_silent = False
                tell(notices, look(notices))
                assert not notices.has_left
                caller.send(b"PRI")
                assert server.recv(3) == b"PRI"
                tell(notices, look(notices))
                assert notices.has_left, "the server is about to answer"


def test_a_probe_costs_a_drain_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that each look at it moves on by a second."""
    monkeypatch.setattr(hand_over, "TOLD_WITHIN_S", 1_000.0)
    clock = HastyClock()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host, port = listening.getsockname()
        with socket.create_connection((host, port), PATIENCE_S):
            server, _ = listening.accept()
            with server:
                left_s = hand_over.hand_over(f"{host}:{port}", 1_000.0, clock, AnswerGate())
    assert left_s > 900.0


class HastyClock(ManualClock):
    """Moves on by a second with each look."""

    def monotonic_s(self) -> float:
        self.advance(1.0)
        return super().monotonic_s()


def test_no_connection_is_looked_for_while_answers_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes 0.1 ms for each, of which there may be thousands."""
    gate, waits = AnswerGate(), []

    def seen(port: int) -> Iterator[tuple[int, socket.socket]]:
        for each in sockets_at(port):
            waits.append(gate.is_closed)
            yield each

    monkeypatch.setattr(hand_over, "sockets_at", seen)
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=256))
        host, port = listening.getsockname()
        callers = []
        for _ in range(2 * hand_over.AT_ONCE + 1):
            callers.append(stack.enter_context(socket.create_connection((host, port), PATIENCE_S)))
            stack.enter_context(listening.accept()[0]).send(b"hello")
        hand_over.hand_over(f"{host}:{port}", PATIENCE_S, SystemClock(), gate)
        for caller in callers:
            assert _read(caller, 5 + len(GOAWAY)) == b"hello" + GOAWAY
    assert len(waits) > len(callers)
    assert not any(waits)


def test_answers_wait_while_the_gate_is_closed() -> None:
    gate, answered = AnswerGate(), threading.Event()
    decide = gate.held(lambda payloads: [b"re:" + each for each in payloads])
    replies: list[object] = []

    def ask() -> None:
        replies.extend(decide([b"x"]))
        answered.set()

    asking = threading.Thread(target=ask)
    with gate.closed():
        asking.start()
        assert not answered.is_set()
    assert answered.wait(PATIENCE_S)
    asking.join(PATIENCE_S)
    assert replies == [b"re:x"]


def test_a_slow_reader_of_large_answers_finds_every_frame_whole(
    choice: GrpcFront, socket_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "QUIET_S", 0.1)
    monkeypatch.setattr(hand_over, "TOLD_WITHIN_S", PATIENCE_S)
    world = World(Decisions(lambda payloads: [REPLY] * len(payloads)))
    with claim("127.0.0.1", 0) as claimed:
        front = world.front(choice, socket_dir, shared(claimed.getsockname()[1]))
        front.start()
        with connect_by_hand(front.address, READ_BUFFER) as link:
            link.sendall(calls_by_hand(front.address, CALLS))
            frames = FrameReader(link)
            until(lambda: is_full(front), "nobody reads, so the connection fills")
            leaving = threading.Thread(
                target=front.drain, args=(PATIENCE_S,), kwargs={"hands_over": True}
            )
            leaving.start()
            until(lambda: not listens(front), "it takes no more connections")
            kinds: Counter[int] = Counter()
            answered = 0
            while answered < CALLS or not kinds[GOAWAY_FRAME]:
                frame = frames.next()
                kinds[frame.kind] += 1
                answered += frame.is_last
            assert frames.data_bytes == CALLS * (5 + len(REPLY))
        leaving.join(PATIENCE_S)
    assert not leaving.is_alive()
