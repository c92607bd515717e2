"""Both gRPC fronts, from the first bind to the last answer: health, reflection, drains."""

import socket
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1.health_pb2 import HealthCheckResponse
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.support.ratelimit.grpc_peers import GRACE_S, PATIENCE_S, Caller, Decisions, World, caller
from tollgate.serve.ratelimit.codec.messages import SERVICE_NAME
from tollgate.serve.ratelimit.fronts.front import Front, ListenAddress
from tollgate.serve.ratelimit.fronts.native import NativeFront, NativeTuning
from tollgate.serve.ratelimit.health import Component, Health
from tollgate.serve.settings.choices import GrpcFront

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
Open = Callable[..., Front]


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
    front = open_front(ListenAddress("::1", 0))
    assert front.address.startswith("[::1]:")
    with caller(front.address) as peer:
        assert peer.decide(b"x", timeout=PATIENCE_S) == b"re:x"


def test_a_port_that_is_taken_is_a_clear_error(open_front: Open, socket_dir: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        threads_before = set(threading.enumerate())
        with pytest.raises(
            OSError, match=rf"gRPC cannot listen on 127.0.0.1:{port}: Address alrea"
        ):
            open_front(ListenAddress("127.0.0.1", port))
    assert set(threading.enumerate()) <= threads_before
    assert list(socket_dir.iterdir()) == []


def test_two_fronts_cannot_take_one_port_by_accident(front: Front, open_front: Open) -> None:
    with pytest.raises(OSError, match="Address already in use"):
        open_front(ListenAddress("127.0.0.1", int(front.address.rsplit(":", 1)[1])))


def test_two_fronts_can_share_one_port_on_purpose(open_front: Open) -> None:
    first = open_front(ListenAddress("127.0.0.1", 0, is_port_shared=True))
    port = int(first.address.rsplit(":", 1)[1])
    second = open_front(ListenAddress("127.0.0.1", port, is_port_shared=True))
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


def test_calls_that_nobody_waits_for_are_not_decided(
    front: Front, peer: Caller, world: World
) -> None:
    # A cancellation is no part of its call: on a busy machine, it may come when that is decided.
    rounds = (decided_while_callers_go(front, peer, world) for _ in range(3))
    assert {b"held", b"last"} in rounds


def decided_while_callers_go(front: Front, peer: Caller, world: World) -> set[bytes]:
    """Calls whose callers wait, among calls whose deadline passes and which are cancelled."""
    world.decisions.batches.clear()
    world.decisions.hold()
    # As many as are decided side by side: what comes behind them waits.
    first = []
    for _ in range(2):
        first.append(peer.decide.future(b"held", timeout=PATIENCE_S))
        peer.check("")
    world.decisions.wait_for_a_batch()
    with caller(front.address) as other:
        expired = [other.decide.future(b"expired", timeout=0.2) for _ in range(20)]
        gone = other.start([b"gone"] * 20)
        for call in expired:
            assert call.exception(PATIENCE_S).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        for call in gone:
            call.cancel()
        other.check("")
        world.decisions.release()
        assert [call.result() for call in first] == [b"re:held"] * 2
        assert other.decide(b"last", timeout=PATIENCE_S) == b"re:last"
    return {payload for batch in world.decisions.batches for payload in batch}


def test_the_native_front_sheds_the_oldest_calls(world: World, socket_dir: Path) -> None:
    tuning = NativeTuning(socket_dir, pumps=1, queue_max=2)
    front = NativeFront(ListenAddress("127.0.0.1", 0), world.service(), tuning)
    front.start()
    with caller(front.address) as peer:
        world.decisions.hold()
        first = peer.decide.future(b"held", timeout=PATIENCE_S)
        world.decisions.wait_for_a_batch()
        calls = peer.start([b"%d" % each for each in range(5)])
        world.decisions.release()
        assert first.result() == b"re:held"
        errors = [call.exception(PATIENCE_S) for call in calls]
        codes = [error.code() for error in errors if error is not None]
        assert codes == [grpc.StatusCode.RESOURCE_EXHAUSTED] * 3
    front.drain(0)
    assert world.counted["ratelimit.front.calls_shed"] == 3


def test_a_drain_under_constant_traffic_cuts_no_call(
    choice: GrpcFront, world: World, socket_dir: Path
) -> None:
    front = world.front(choice, socket_dir)
    front.start()
    codes: Counter[grpc.StatusCode] = Counter()
    is_over = threading.Event()

    def keep_calling() -> None:
        with caller(front.address) as peer:
            while not is_over.is_set():
                calls = [peer.decide.future(b"x", timeout=PATIENCE_S) for _ in range(20)]
                errors = [call.exception(PATIENCE_S) for call in calls]
                codes.update(each.code() if each else grpc.StatusCode.OK for each in errors)

    callers = [threading.Thread(target=keep_calling) for _ in range(2)]
    for each in callers:
        each.start()
    world.decisions.wait_for_a_batch()
    front.drain(0.3)
    is_over.set()
    for each in callers:
        each.join(PATIENCE_S)
    # grpcio cancels what it has not looked at yet.
    code = grpc.StatusCode
    refusals = {code.UNAVAILABLE} | ({code.CANCELLED} if choice is GrpcFront.GRPCIO else set())
    assert codes.keys() <= refusals | {code.OK}
    assert codes[code.OK] == sum(map(len, world.decisions.batches))
