"""Replies of Redis without an end, in time or in size (B10)."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.support.ratelimit.redis_fronts import redis_front
from tests.support.waiting import PATIENCE_S
from tollgate.actors.ratelimit.counting.counters import Unreachable
from tollgate.serve.ratelimit.backends import timed_socket
from tollgate.serve.ratelimit.backends.redis import reply_socket
from tollgate.serve.ratelimit.backends.redis.reply_socket import ReplySocket
from tollgate.serve.ratelimit.backends.timed_socket import LongReplyError

Talk = Callable[[socket.socket], None]


@contextmanager
def talking(talk: Talk) -> Iterator[str]:
    """The address of a server that answers pings, and to whom all else is a reason to `talk`."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while asked := connection.recv(65_536):
                if b"PING" in asked:
                    connection.sendall(b"+PONG\r\n")
                else:
                    talk(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(PATIENCE_S)


def test_a_reply_that_comes_byte_by_byte_is_none_after_the_time_out() -> None:
    has_been_left = threading.Event()

    def dribble(connection: socket.socket) -> None:
        try:
            for _ in iter(lambda: has_been_left.wait(0.01), True):
                connection.sendall(b"1" if has_begun else b":")
                has_begun.append(True)
        except OSError:
            has_been_left.set()

    has_begun: list[bool] = []
    with (
        talking(dribble) as address,
        redis_front(REDIS_URL=address, REDIS_TIMEOUT="200ms") as front,
    ):
        found = front.hit("k_")
        assert isinstance(found, Unreachable)
        assert "Timeout" in str(found)
        assert has_been_left.wait(PATIENCE_S), "and the connection is closed"


def test_a_reply_that_is_sent_without_an_end_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_socket, "REPLY_BYTES_MAX", 1 << 20)
    sent = 0

    def flood(connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(b"$1073741824\r\n")
        while True:
            connection.sendall(bytes(65_536))
            sent += 65_536

    with talking(flood) as address, redis_front(REDIS_URL=address) as front:
        found = front.hit("k_")
        assert isinstance(found, Unreachable)
        assert "a reply that does not end" in str(found)
    assert sent < 64 << 20, "what the buffers of two sockets hold, and a megabyte"


@pytest.mark.parametrize(
    "announced",
    [b"*1000000000\r\n*1000000000\r\n", b"~999999999\r\n", b">99999999999999999999\r\n"],
)
def test_a_reply_that_announces_more_than_there_is_is_none(announced: bytes) -> None:
    with (
        talking(lambda connection: connection.sendall(announced)) as address,
        redis_front(REDIS_URL=address) as front,
    ):
        found = front.hit("k_")
        assert isinstance(found, Unreachable)
        assert "a reply of more than 1000000 elements" in str(found)


@pytest.fixture
def ends() -> Iterator[tuple[ReplySocket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ReplySocket(ours, 30.0), theirs


@pytest.mark.parametrize("step", [1, 2, 3, 7, 64])
def test_announcements_are_added_up_however_they_come(
    ends: tuple[ReplySocket, socket.socket], monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(reply_socket, "ELEMENTS_MAX", 30)
    timed, server = ends
    buffer = bytearray(64)

    def take(text: bytes) -> None:
        for start in range(0, len(text), step):
            server.sendall(text[start : start + step])
            timed.recv_into(buffer)

    for _ in range(2):
        timed.sendall(b"CLUSTER SLOTS")
        take(b"*10\r\n:5\r\n+a*b9\r\n*20\r\n")
    timed.sendall(b"CLUSTER SLOTS")
    with pytest.raises(LongReplyError):
        take(b"*10\r\n:5\r\n*21\r\n")


def test_a_reply_may_be_the_longer_the_more_was_asked(
    ends: tuple[ReplySocket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_socket, "REPLY_BYTES_MAX", 10)
    timed, server = ReplySocket(ends[0].connection, 30.0), ends[1]
    buffer = bytearray(64)
    timed.sendall(b"xx")
    server.sendall(b"y" * 26)
    assert timed.recv_into(buffer) == 26
    server.sendall(b"y")
    with pytest.raises(LongReplyError):
        timed.recv_into(buffer)


def test_what_is_sent_is_part_of_the_exchange(
    ends: tuple[ReplySocket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who takes a little now and then of what is sent to them does not hold a caller either."""
    timed, server = ends
    times = iter([0.0, 1.0, 31.0])
    monkeypatch.setattr(timed_socket, "monotonic", lambda: next(times))
    timed.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    with pytest.raises(TimeoutError):
        timed.sendall(bytes(1 << 20))
    assert server.recv(1) == b"\0"
