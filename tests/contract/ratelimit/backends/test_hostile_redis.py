"""Replies of Redis that are none, and hits that are more than it counts to (B10)."""

import logging
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from redis.crc import key_slot

from tests.support.ratelimit.redis_fronts import NOW_S, RedisFront, redis_front
from tests.support.servers.redis import RedisProcess, redis_process
from tests.support.waiting import until
from tollgate.actors.ratelimit.counting.counters import Unreachable

MINUTE = NOW_S - NOW_S % 60
INT64_MAX = 2**63 - 1


@pytest.fixture(scope="module")
def server() -> Iterator[RedisProcess]:
    with redis_process() as found:
        yield found


@contextmanager
def scripted(script: Callable[[bytes], bytes]) -> Iterator[str]:
    """The address of a server that answers each command by its first word, and by two words what
    is about a cluster."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while line := self.rfile.readline():
                words = []
                for _ in range(int(line[1:])):
                    self.rfile.readline()
                    words.append(self.rfile.readline().strip())
                told = b" ".join(words[:2]) if words[0] == b"CLUSTER" else words[0]
                self.wfile.write(b"+PONG\r\n" if told == b"PING" else script(told))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A front that has heard enough."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "reply",
    [
        b"-MOVED x y\r\n",
        b"-MOVED\r\n",
        b"-ASK 1 2 3\r\n",
        b"$-5\r\n",
        b"*-7\r\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\x00\xff\r\n",
    ],
)
def test_a_reply_that_is_none_costs_its_batch_alone(reply: bytes) -> None:
    with scripted(lambda word: reply) as address, redis_front(REDIS_URL=address) as front:
        for _ in range(2):
            assert isinstance(front.hit("k_"), Unreachable)
        front.counters.probe()


@pytest.mark.parametrize(
    "table",
    [
        b"*1\r\n:1\r\n",
        b"*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n$1\r\nh\r\n:1\r\n",
        b"-MOVED x y\r\n",
    ],
)
def test_a_table_of_slots_that_is_none_is_no_end_of_the_watch(table: bytes) -> None:
    with scripted(lambda word: table) as address:
        front = RedisFront(REDIS_TYPE="CLUSTER", REDIS_URL=address)
        try:
            assert isinstance(front.hit("k_"), Unreachable)
            assert not front.counters.has_begun
            front.counters.probe()
        finally:
            front.counters.close()


@pytest.mark.parametrize(
    "moved", [b"-MOVED 99999 127.0.0.1:1\r\n", b"-MOVED 1 127.0.0.1:99999\r\n"]
)
def test_a_move_to_nowhere_is_an_error(moved: bytes) -> None:
    table = b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:%d\r\n"

    def answer(word: bytes) -> bytes:
        return table % int(address.split(":")[1]) if word == b"CLUSTER SLOTS" else moved

    with (
        scripted(answer) as address,
        redis_front(REDIS_TYPE="CLUSTER", REDIS_URL=address) as front,
    ):
        assert isinstance(front.hit("k_"), Unreachable)


def slots_of(*ports: int) -> bytes:
    """A table of one range, whose master and replicas are here."""
    nodes = b"".join(b"*2\r\n$0\r\n\r\n:%d\r\n" % port for port in ports)
    return b"*1\r\n*%d\r\n:0\r\n:16383\r\n%b" % (2 + len(ports), nodes)


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


def test_a_move_without_a_host_is_to_the_host_that_was_asked(server: RedisProcess) -> None:
    """The counters are where the replica was, which is a server that knows of no cluster."""

    def answer(word: bytes) -> bytes:
        if word == b"CLUSTER SLOTS":
            return slots_of(int(address.split(":")[1]), server.port)
        return b"-MOVED %d :%d\r\n" % (slot, server.port)

    slot = key_slot(b"moved_%d" % MINUTE)
    with (
        scripted(answer) as address,
        redis_front(REDIS_TYPE="CLUSTER", REDIS_URL=address) as front,
    ):
        assert front.hit("moved_") == 1


@pytest.mark.parametrize("kind", [b"MOVED", b"ASK"])
def test_no_credentials_go_to_whom_the_cluster_does_not_name(kind: bytes) -> None:
    slot = key_slot(b"moved_%d" % MINUTE)

    def answer(word: bytes) -> bytes:
        if word == b"CLUSTER SLOTS":
            return slots_of(int(address.split(":")[1]))
        if word == b"CLUSTER NODES":
            return bulk(b"id 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-16383\n")
        return b"+OK\r\n" if word == b"AUTH" else b"-%b %d 127.0.0.1:%d\r\n" % (kind, slot, port)

    with socket.create_server(("127.0.0.1", 0)) as stranger, scripted(answer) as address:
        stranger.setblocking(False)
        port = stranger.getsockname()[1]
        environment = {"REDIS_TYPE": "CLUSTER", "REDIS_URL": address, "REDIS_AUTH": "s3cret"}
        with redis_front(**environment) as front:
            problem = f"sent to 127.0.0.1:{port}, which is no node of the cluster"
            assert problem in str(front.hit("moved_"))
            with pytest.raises(BlockingIOError):
                stranger.accept()
            front.counters.probe()


def test_a_node_that_has_no_slots_yet_is_asked(server: RedisProcess) -> None:
    slot = key_slot(b"new_%d" % MINUTE)
    server.client.flushall()

    def answer(word: bytes) -> bytes:
        if word == b"CLUSTER SLOTS":
            return slots_of(int(address.split(":")[1]))
        if word == b"CLUSTER NODES":
            return bulk(b"id 127.0.0.1:%d@1 master - 0 0 1 connected\n" % server.port)
        return b"-ASK %d 127.0.0.1:%d\r\n" % (slot, server.port)

    with (
        scripted(answer) as address,
        redis_front(REDIS_TYPE="CLUSTER", REDIS_URL=address) as front,
    ):
        # The one that is asked knows of no cluster, and says so to ASKING alone.
        assert front.hits([("new_", 2)]) == [[2]]


@pytest.mark.parametrize("addend", [2**64 - 50, INT64_MAX])
def test_a_full_counter_is_over_its_limit(server: RedisProcess, addend: int) -> None:
    server.client.flushall()
    with redis_front(REDIS_URL=server.address) as front:
        assert front.hit("k_", addend) == addend
        assert front.hit("k_") == INT64_MAX
        assert front.hit("k_", addend) == addend
        assert front.hit("k_", 0) == INT64_MAX
    assert server.client.get(f"k_{MINUTE}") == b"%d" % INT64_MAX


def test_who_may_not_expire_is_told_once(
    server: RedisProcess, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    server.client.flushall()
    server.client.acl_setuser(
        "counter", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", "-expire"]
    )
    with redis_front(REDIS_URL=server.address, REDIS_AUTH="counter:pw") as front:
        assert [front.hit("k_"), front.hit("k_")] == [1, 2]
    assert caplog.text.count("does not let counters expire: NOPERM") == 1


def test_masters_that_are_away_together_are_told_once_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    turns = iter(range(1_000_000))

    def answer(word: bytes) -> bytes:
        return b"$-5\r\n" if next(turns) % 2 else b"-MOVED x y\r\n"

    with scripted(answer) as address:
        front = RedisFront(REDIS_TYPE="CLUSTER", REDIS_URL=address)
        try:
            said: set[str] = set()

            def has_said_both() -> bool:
                said.update(str(front.hit("k_")) for _ in range(10))
                return len(said) > 1

            until(has_said_both, "both replies have come")
        finally:
            front.counters.close()
    warnings = [each.getMessage() for each in caplog.records if "Redis at" in each.getMessage()]
    assert warnings
    assert len(set(warnings)) == len(warnings)
