"""Fronts of two processes at one port: one leaves, or is killed, and callers go on at the other."""

import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.support.ratelimit.front_peer import ANSWER, REFUSED, front_peer, shared
from tests.support.ratelimit.grpc_peers import (
    GRACE_S,
    PATIENCE_S,
    Caller,
    World,
    caller,
    end,
)
from tests.support.ratelimit.json_port import Reader, a_service, call, dialled, passing
from tests.support.waiting import until
from tollgate.serve.net.shared_ports import claim, others_listen
from tollgate.serve.ratelimit.fronts import native
from tollgate.serve.ratelimit.fronts.front import Front, ListenAddress
from tollgate.serve.ratelimit.fronts.inner_socket import SOCKET_NAME, inner_socket_folder
from tollgate.serve.ratelimit.health import Health
from tollgate.serve.ratelimit.json_door.exchange import JsonExchange
from tollgate.serve.ratelimit.json_door.server import JsonDoor
from tollgate.serve.settings.choices import GrpcFront

OURS = b"re:x"
# Callers on a busy machine may say nothing for longer than a front usually waits for them.
QUIET_S = 5.0
# So many connections in a row do not all go to one of two.
DRAWS_MAX = 100
OTHER_LISTENER = """
import socket, sys
host, port, family = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with socket.create_server((host, port), family=family, reuse_port=True):
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """Claimed for this test's fronts: gRPC's and JSON's."""
    with claim("127.0.0.1", 0) as grpc_port, claim("127.0.0.1", 0) as json_port:
        yield grpc_port.getsockname()[1], json_port.getsockname()[1]


class Calls:
    """Calls over and over, in threads, until the end: what was answered, or went wrong."""

    def __init__(self) -> None:
        self.answers: Counter[object] = Counter()
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []

    def keep(self, ask: Callable[[], object]) -> None:
        def run() -> None:
            while not self._is_over.is_set():
                self.answers[ask()] += 1

        self._threads.append(threading.Thread(target=run))
        self._threads[-1].start()

    @contextmanager
    def flowing(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._is_over.set()
            for thread in self._threads:
                thread.join(PATIENCE_S)

    def wait_for_more(self, answer: object) -> None:
        seen = self.answers[answer]
        until(lambda: self.answers[answer] > seen + 5, f"more answers {answer!r}")


def asked(peer: Caller) -> object:
    """The answer, or the status and the text of the error."""
    try:
        return peer.decide(b"x", timeout=PATIENCE_S)
    except grpc.RpcError as error:
        return error.code(), error.details()


def asked_anew(address: str) -> object:
    with caller(address) as peer:
        return asked(peer)


@contextmanager
def connected_to(address: str, answer: bytes) -> Iterator[Caller]:
    """A caller whose connection the kernel gave to the front that answers so."""
    with ExitStack() as others:
        for _ in range(DRAWS_MAX):
            peer = others.enter_context(caller(address))
            if asked(peer) == answer:
                yield peer
                return
    raise AssertionError(f"{DRAWS_MAX} connections, and none was answered {answer!r}")


@pytest.fixture
def ours(
    choice: GrpcFront,
    world: World,
    socket_dir: Path,
    ports: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> Front:
    """The front of this process, listening."""
    monkeypatch.setattr(native, "QUIET_S", QUIET_S)
    front = world.front(choice, socket_dir, shared(ports[0]))
    front.start()
    return front


def test_a_front_that_hands_over_costs_no_caller_a_call(
    ours: Front, choice: GrpcFront, ports: tuple[int, int], socket_dir: Path, world: World
) -> None:
    calls = Calls()
    with (
        front_peer(choice, *ports, socket_dir),
        connected_to(ours.address, OURS) as steady,
        connected_to(ours.address, ANSWER) as elsewhere,
        calls.flowing(),
    ):
        calls.keep(lambda: asked(steady))
        calls.keep(lambda: asked(elsewhere))
        calls.keep(lambda: asked_anew(ours.address))
        calls.wait_for_more(OURS)
        ours.drain(GRACE_S, hands_over=True)
        ours_at_the_end = calls.answers[OURS]
        calls.wait_for_more(ANSWER)
        assert world.health.is_healthy, "whoever asks at the port asks for all of them"
    assert calls.answers.keys() == {OURS, ANSWER}
    assert calls.answers[OURS] - ours_at_the_end <= 3, "each thread may still note one"


def test_a_call_in_flight_is_answered_by_the_front_that_hands_over(
    ours: Front, choice: GrpcFront, ports: tuple[int, int], socket_dir: Path, world: World
) -> None:
    with front_peer(choice, *ports, socket_dir), connected_to(ours.address, OURS) as peer:
        world.decisions.hold()
        calls = peer.start([b"%d" % each for each in range(20)])
        draining = threading.Thread(target=ours.drain, args=(GRACE_S,), kwargs={"hands_over": True})
        draining.start()
        later: list[Any] = []

        def is_elsewhere() -> bool:
            later.append(peer.decide.future(b"x", timeout=PATIENCE_S))
            return any(each.done() and each.result() == ANSWER for each in later)

        until(is_elsewhere, "what is asked next is asked elsewhere")
        world.decisions.release()
        assert {each.result() for each in later} <= {OURS, ANSWER}
        assert [each.result() for each in calls] == [b"re:%d" % each for each in range(20)]
        draining.join(PATIENCE_S)
    assert not draining.is_alive()


def test_a_killed_front_is_noticed_by_its_own_callers_alone(
    ours: Front, choice: GrpcFront, ports: tuple[int, int], socket_dir: Path
) -> None:
    calls = Calls()
    with (
        front_peer(choice, *ports, socket_dir) as other,
        connected_to(ours.address, OURS) as steady,
        connected_to(ours.address, ANSWER) as bereft,
        calls.flowing(),
    ):
        calls.keep(lambda: asked(steady))
        calls.wait_for_more(OURS)
        other.kill()
        other.wait()
        assert [asked_anew(ours.address) for _ in range(10)] == [OURS] * 10
        until(lambda: asked(bereft) == OURS, "its own callers come back elsewhere")
        calls.wait_for_more(OURS)
    assert calls.answers.keys() == {OURS}
    end(ours)


def test_a_json_door_that_leaves_costs_no_caller_a_call(
    ports: tuple[int, int], socket_dir: Path
) -> None:
    health = Health()
    door = JsonDoor(
        shared(ports[1]), a_service(passing, health), JsonExchange(health, is_precise=True)
    )
    door.start()

    def asked_by_json() -> object:
        try:
            with dialled(door) as link:
                link.sendall(call())
                return Reader(link).answer()[0]
        except OSError as error:
            return repr(error)

    calls = Calls()
    with front_peer(GrpcFront.NATIVE, *ports, socket_dir), calls.flowing():
        for _ in range(4):
            calls.keep(asked_by_json)
        calls.wait_for_more(200)
        door.drain(GRACE_S, hands_over=True)
        calls.wait_for_more(REFUSED)
    assert calls.answers.keys() == {200, REFUSED}


# --- the port -------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])
def test_a_claimed_port_is_for_those_who_share_it(host: str) -> None:
    with claim(host, 0) as claimed:
        port = claimed.getsockname()[1]
        with pytest.raises(OSError, match="Address already in use"):
            claim(host, port)
        family = claimed.family
        with pytest.raises(OSError, match="Address already in use"):
            socket.create_server((host, port), family=family)
        for _ in range(2):
            socket.create_server((host, port), family=family, reuse_port=True).close()


def test_old_connections_are_not_in_the_way(
    choice: GrpcFront, world: World, socket_dir: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as earlier:
        port = earlier.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as link:
            taken, _ = earlier.accept()
            taken.close()  # whoever closes first keeps what is left of it
            assert link.recv(1) == b""
    with claim("127.0.0.1", port):
        front = world.front(choice, socket_dir, shared(port))
        front.start()
        assert asked_anew(front.address) == OURS
        end(front)


def test_a_front_that_shares_does_not_share_with_somebody_else(
    choice: GrpcFront, world: World, socket_dir: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        door = JsonDoor(
            shared(port), a_service(passing, Health()), JsonExchange(Health(), is_precise=True)
        )
        for doer, words in (
            (world.front(choice, socket_dir, shared(port)), "gRPC"),
            (door, "JSON"),
        ):
            with pytest.raises(
                OSError, match=rf"{words}.* cannot listen on 127.0.0.1:{port}: Addr"
            ):
                doer.start()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])
def test_a_process_sees_whether_others_listen_where_it_does(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with claim(host, 0) as claimed:
        port = claimed.getsockname()[1]
        listening = partial(socket.create_server, (host, port), family=family, reuse_port=True)
        with listening(), listening():
            assert not others_listen(f"{host}:{port}")
            other = subprocess.Popen(
                [sys.executable, "-c", OTHER_LISTENER, host, str(port), str(int(family))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            with other:
                assert other.stdout is not None
                assert other.stdout.readline() == b"ready\n"
                assert others_listen(f"{host}:{port}")
                other.kill()
                other.wait()
            assert not others_listen(f"{host}:{port}")
    assert not others_listen("unix:/door.sock")


def test_a_wildcard_is_shared_too(choice: GrpcFront, world: World, socket_dir: Path) -> None:
    with claim("0.0.0.0", 0) as claimed:
        listen = ListenAddress("0.0.0.0", claimed.getsockname()[1], is_port_shared=True)
        fronts = [world.front(choice, socket_dir, listen) for _ in range(2)]
        for front in fronts:
            front.start()
        for front in fronts:
            end(front)


# --- what a killed process leaves -----------------------------------------------------------------


def test_the_folders_of_killed_fronts_are_removed(socket_dir: Path) -> None:
    nobody = 2**22 + 1  # (the system gives no pid above 2**22)
    alive, silent, starting = (inner_socket_folder(socket_dir) for _ in range(3))
    ended, early = socket_dir / f"grpc-{nobody}-left", socket_dir / "grpc-anearlierversions"
    for folder in (ended, early):
        folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as bound:
        listening.bind(str(alive / SOCKET_NAME))
        listening.listen()
        bound.bind(str(silent / SOCKET_NAME))
        new = inner_socket_folder(socket_dir)
    assert set(socket_dir.iterdir()) == {alive, starting, new}
