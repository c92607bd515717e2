"""One suite for both gRPC fronts: what a caller sees does not depend on which one listens."""

import contextlib
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1.health_pb2 import HealthCheckResponse
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from actors.ratelimit.descriptors import REQUEST_BYTES_MAX
from serve.ratelimit.codec import METHOD_PATH, SERVICE_NAME
from serve.ratelimit.front import Answer, Door, Front, Refused
from serve.ratelimit.health import Component, Health
from serve.settings.choices import GrpcFront
from tests.grpc_peers import GRACE_S, PATIENCE_S, Caller, Decisions, World, caller, send_by_hand

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING

# Makes a front in a world, listening at a free port unless a door is given.
Open = Callable[..., Front]


@pytest.fixture(params=[GrpcFront.NATIVE, GrpcFront.GRPCIO], ids=lambda choice: choice.value)
def choice(request: pytest.FixtureRequest) -> GrpcFront:
    assert isinstance(request.param, GrpcFront)
    return request.param


@pytest.fixture
def socket_dir() -> Iterator[Path]:
    """A folder with a short name: the path of a unix socket has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="tg-") as name:
        yield Path(name)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def open_front(choice: GrpcFront, world: World, socket_dir: Path) -> Iterator[Open]:
    fronts: list[Front] = []

    def opened(door: Door | None = None) -> Front:
        front = world.front(choice, socket_dir, door)
        front.start()
        fronts.append(front)
        return front

    yield opened
    world.decisions.release()
    for front in fronts:
        front.drain(0)


@pytest.fixture
def front(open_front: Open) -> Front:
    return open_front()


@pytest.fixture
def peer(front: Front) -> Iterator[Caller]:
    with caller(front.address) as connected:
        yield connected


# --- calls ----------------------------------------------------------------------------------------


def test_a_call_is_handed_on_and_answered_as_it_is(peer: Caller, world: World) -> None:
    for payload in (b"", b"\x00\xff not a protobuf message", b"x" * (REQUEST_BYTES_MAX + 1)):
        assert peer.decide(payload, timeout=PATIENCE_S) == b"re:" + payload
        assert world.decisions.batches.pop() == [payload]


def test_every_one_of_500_concurrent_calls_gets_its_own_answer(front: Front, world: World) -> None:
    with caller(front.address) as one, caller(front.address) as other:
        calls = [
            (each, (one, other)[each % 2].decide.future(b"%d" % each, timeout=PATIENCE_S))
            for each in range(500)
        ]
        for each, call in calls:
            assert call.result() == b"re:%d" % each
    decided = [payload for batch in world.decisions.batches for payload in batch]
    assert sorted(decided) == sorted(b"%d" % each for each in range(500))


def test_calls_gather_while_batches_are_in_flight(peer: Caller, world: World) -> None:
    world.decisions.hold()
    calls = peer.start([b"%d" % each for each in range(100)])
    world.decisions.release()
    assert [call.result() for call in calls] == [b"re:%d" % each for each in range(100)]
    assert max(len(batch) for batch in world.decisions.batches) > 10


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code.value[0] != 0])
def test_a_refusal_has_its_exact_code_and_message(
    code: grpc.StatusCode, peer: Caller, world: World
) -> None:
    number, message = code.value[0], "rate limit domain must not be empty: 100 % ü €"

    def refuse_some(payloads: Sequence[bytes]) -> list[Answer]:
        return [Refused(number, message) if p == b"refuse" else p for p in payloads]

    world.decisions.answer = refuse_some
    with pytest.raises(grpc.RpcError) as refusal:
        peer.decide(b"refuse", timeout=PATIENCE_S)
    assert refusal.value.code() is code
    assert refusal.value.details() == message
    assert peer.decide(b"answer", timeout=PATIENCE_S) == b"answer"


def broken(_: Sequence[bytes]) -> list[Answer]:
    raise ZeroDivisionError("the backend's secret")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (broken, ZeroDivisionError),
        (lambda payloads: [*payloads, b"one too many"], AssertionError),
        (lambda payloads: [None] * len(payloads), AssertionError),
    ],
    ids=["raises", "answers too often", "answers nonsense"],
)
def test_a_batch_that_fails_is_refused_and_the_next_is_not(
    answer: Callable[[Sequence[bytes]], list[Answer]],
    kind: type[Exception],
    peer: Caller,
    world: World,
) -> None:
    healthy_answer, world.decisions.answer = world.decisions.answer, answer
    # More failures than there are threads to die of them.
    for _ in range(5):
        with pytest.raises(grpc.RpcError) as refusal:
            peer.decide(b"x", timeout=PATIENCE_S)
        assert refusal.value.code() is grpc.StatusCode.INTERNAL
        assert refusal.value.details() == "internal error, see the log of the service"
    assert [type(error) for error in world.errors] == [kind] * 5
    world.decisions.answer = healthy_answer
    assert peer.decide(b"x", timeout=PATIENCE_S) == b"re:x"


def test_a_caller_that_gives_up_harms_nobody(peer: Caller, world: World) -> None:
    world.decisions.hold()
    calls = peer.start([b"%d" % each for each in range(20)])
    for call in calls[::2]:
        call.cancel()
    peer.check("")
    world.decisions.release()
    assert [call.result() for call in calls[1::2]] == [b"re:%d" % each for each in range(1, 20, 2)]
    assert all(call.cancelled() for call in calls[::2])
    assert peer.decide(b"next", timeout=PATIENCE_S) == b"re:next"


def test_a_deadline_passes_while_the_decision_is_held(peer: Caller, world: World) -> None:
    world.decisions.hold()
    with pytest.raises(grpc.RpcError) as refusal:
        peer.decide(b"late", timeout=0.2)
    assert refusal.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    world.decisions.release()
    assert peer.decide(b"next", timeout=PATIENCE_S) == b"re:next"


def test_compressed_requests_are_read(peer: Caller) -> None:
    payload = b"compress me " * 1000
    answer = peer.decide(payload, timeout=PATIENCE_S, compression=grpc.Compression.Gzip)
    assert answer == b"re:" + payload


def test_every_call_is_observed(choice: GrpcFront, world: World, socket_dir: Path) -> None:
    front = world.front(choice, socket_dir)
    front.start()
    with caller(front.address) as peer:
        for call in peer.start([b"%d" % each for each in range(100)]):
            call.result()
        world.decisions.answer = broken
        with pytest.raises(grpc.RpcError):
            peer.decide(b"fails", timeout=PATIENCE_S)
    # The last observation comes after the last answer, and before the end.
    front.drain(GRACE_S)
    assert world.calls_observed("ShouldRateLimit") == 101
    assert world.calls_observed("Check") == 2
    assert all(0 <= seconds < PATIENCE_S for _, _, seconds in world.observed)


# --- what is no proper call -----------------------------------------------------------------------

GRPC = {"content-type": "application/grpc", "te": "trailers"}
MESSAGE = b"\x00\x00\x00\x00\x03abc"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (GRPC, b""),
        (GRPC, b"garbage"),
        (GRPC, MESSAGE[:-1]),
        (GRPC, MESSAGE + MESSAGE),
        (GRPC, b"\x00\xff\xff\xff\xffabc"),
        (GRPC, b"\x01\x00\x00\x00\x03abc"),
        (GRPC | {"grpc-encoding": "gzip"}, b"\x01\x00\x00\x00\x03abc"),
        (GRPC | {"grpc-encoding": "br"}, b"\x01\x00\x00\x00\x03abc"),
        (GRPC | {"grpc-timeout": "soon"}, MESSAGE),
        (GRPC | {":method": "GET"}, MESSAGE),
        (GRPC | {":path": "/"}, MESSAGE),
        ({"content-type": "application/json", "te": "trailers"}, MESSAGE),
        ({}, MESSAGE),
    ],
    ids=[
        *("no message", "no frame", "half a message", "two messages", "a length of 4 GiB"),
        *(
            "compressed by nothing",
            "no gzip",
            "unknown compression",
            "no timeout",
            "GET",
            "no path",
        ),
        *("another content type", "no headers"),
    ],
)
def test_garbage_on_the_wire_is_answered_or_cut_off_and_serving_goes_on(
    headers: dict[str, str], body: bytes, front: Front, peer: Caller, world: World
) -> None:
    send_by_hand(front.address, headers, body)
    assert peer.decide(b"proper", timeout=PATIENCE_S) == b"re:proper"
    assert world.errors == []


def test_http_1_is_cut_off(front: Front, peer: Caller) -> None:
    host, port = front.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(4096):
                pass
    assert peer.decide(b"proper", timeout=PATIENCE_S) == b"re:proper"


@pytest.mark.parametrize(
    "path", ["/nobody.Service/Method", f"/{SERVICE_NAME}/Unknown", f"{METHOD_PATH}/More"]
)
def test_an_unknown_method_is_unimplemented(path: str, peer: Caller) -> None:
    with pytest.raises(grpc.RpcError) as refusal:
        peer.channel.unary_unary(path)(b"", timeout=PATIENCE_S)
    assert refusal.value.code() is grpc.StatusCode.UNIMPLEMENTED


# --- health and reflection ------------------------------------------------------------------------


def test_health_mirrors_the_overall_state(peer: Caller, world: World) -> None:
    seen = [peer.check("ratelimit")]
    for is_healthy in (False, True):
        world.health.set(Component.BACKEND, is_healthy=is_healthy)
        seen.append(peer.check("ratelimit"))
    assert seen == [SERVING, NOT_SERVING, SERVING]


def test_the_server_as_such_is_always_serving(peer: Caller, world: World) -> None:
    world.health.set(Component.BACKEND, is_healthy=False)
    assert peer.check("") == SERVING


def test_health_of_an_unknown_service_is_not_found(peer: Caller) -> None:
    with pytest.raises(grpc.RpcError) as refusal:
        peer.check("RateLimit")
    assert refusal.value.code() is grpc.StatusCode.NOT_FOUND


def test_watchers_are_told_of_every_turn(front: Front, world: World) -> None:
    with caller(front.address) as one, caller(front.address) as other:
        watches = [one.watch("ratelimit"), other.watch("ratelimit")]
        assert [next(watch).status for watch in watches] == [SERVING, SERVING]
        for is_healthy, status in ((False, NOT_SERVING), (True, SERVING), (False, NOT_SERVING)):
            world.health.set(Component.BACKEND, is_healthy=is_healthy)
            assert [next(watch).status for watch in watches] == [status, status]


def test_a_watcher_of_an_unknown_service_is_told_so(peer: Caller) -> None:
    assert next(peer.watch("nobody")).status == HealthCheckResponse.SERVICE_UNKNOWN


def test_reflection_lists_and_describes_the_services(peer: Caller) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(peer.channel)
    request = reflection_pb2.ServerReflectionRequest

    def ask(question: Any) -> Any:
        return next(iter(stub.ServerReflectionInfo(iter([question]), timeout=PATIENCE_S)))

    listed = ask(request(list_services="")).list_services_response.service
    assert {SERVICE_NAME, "grpc.health.v1.Health"} <= {service.name for service in listed}
    fields = set()
    for symbol in (SERVICE_NAME, "grpc.health.v1.Health"):
        answer = ask(request(file_containing_symbol=symbol)).file_descriptor_response
        for content in answer.file_descriptor_proto:
            file = descriptor_pb2.FileDescriptorProto.FromString(content)
            fields |= {field.name for message in file.message_type for field in message.field}
    # The service's own, one that the published classes lack, and the health service's.
    assert {"domain", "is_negative_hits", "service"} <= fields


# --- life -----------------------------------------------------------------------------------------


def test_the_address_is_what_is_bound(front: Front) -> None:
    host, port = front.address.rsplit(":", 1)
    assert host == "127.0.0.1"
    assert int(port) > 0


def test_ipv6_addresses_have_brackets(open_front: Open) -> None:
    front = open_front(Door("::1", 0))
    assert front.address.startswith("[::1]:")
    with caller(front.address) as peer:
        assert peer.decide(b"x", timeout=PATIENCE_S) == b"re:x"


def test_a_port_that_is_taken_is_a_clear_error(open_front: Open, socket_dir: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        threads_before = threading.active_count()
        with pytest.raises(
            OSError, match=rf"gRPC cannot listen on 127.0.0.1:{port}: Address alrea"
        ):
            open_front(Door("127.0.0.1", port))
    assert threading.active_count() == threads_before
    assert list(socket_dir.iterdir()) == []


def test_two_fronts_cannot_take_one_port_by_accident(front: Front, open_front: Open) -> None:
    with pytest.raises(OSError, match="Address already in use"):
        open_front(Door("127.0.0.1", int(front.address.rsplit(":", 1)[1])))


def test_two_fronts_can_share_one_port_on_purpose(open_front: Open) -> None:
    first = open_front(Door("127.0.0.1", 0, is_port_shared=True))
    port = int(first.address.rsplit(":", 1)[1])
    second = open_front(Door("127.0.0.1", port, is_port_shared=True))
    assert second.address == first.address


def test_a_drained_front_is_gone(front: Front, socket_dir: Path) -> None:
    with caller(front.address) as peer:
        peer.decide(b"x", timeout=PATIENCE_S)
    for _ in range(2):  # draining twice is draining once
        front.drain(GRACE_S)
    host, port = front.address.rsplit(":", 1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), PATIENCE_S)
    assert list(socket_dir.iterdir()) == []


def test_draining_tells_watchers_completes_calls_in_flight_and_ends(
    choice: GrpcFront, world: World, socket_dir: Path
) -> None:
    front = world.front(choice, socket_dir)
    front.start()
    with caller(front.address) as peer, caller(front.address) as watcher:
        watch = watcher.watch("ratelimit")
        assert next(watch).status == SERVING
        world.decisions.hold()
        calls = peer.start([b"%d" % each for each in range(50)])
        draining = threading.Thread(target=front.drain, args=(GRACE_S,))
        draining.start()
        assert next(watch).status == NOT_SERVING
        assert not world.health.is_healthy
        assert draining.is_alive()
        world.decisions.release()
        assert [call.result() for call in calls] == [b"re:%d" % each for each in range(50)]
        draining.join(PATIENCE_S)
    assert not draining.is_alive()
    assert world.calls_observed("ShouldRateLimit") == 50


def test_the_grace_is_the_end(choice: GrpcFront, socket_dir: Path) -> None:
    world = World(Decisions(), Health())
    front = world.front(choice, socket_dir)
    front.start()
    with caller(front.address) as peer:
        world.decisions.hold()
        call = peer.decide.future(b"held", timeout=PATIENCE_S)
        world.decisions.wait_for_a_batch()
        front.drain(0.1)
        with pytest.raises(grpc.RpcError) as refusal:
            call.result()
        assert refusal.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    world.decisions.release()


def test_the_inner_socket_is_for_this_user_alone(socket_dir: Path, world: World) -> None:
    front = world.front(GrpcFront.NATIVE, socket_dir)
    front.start()
    modes = [oct(folder.stat().st_mode & 0o777) for folder in socket_dir.iterdir()]
    front.drain(0)
    assert modes == ["0o700"]
