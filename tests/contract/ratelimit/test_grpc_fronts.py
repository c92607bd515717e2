"""One suite for both gRPC fronts: what a caller sees does not depend on which one listens."""

import contextlib
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import grpc
import pytest

from tests.support.ratelimit.grpc_peers import (
    GRACE_S,
    PATIENCE_S,
    Caller,
    World,
    caller,
)
from tests.support.ratelimit.http2_by_hand import send_by_hand
from tollgate.actors.ratelimit.rules.descriptors import REQUEST_BYTES_MAX
from tollgate.serve.ratelimit.codec.messages import METHOD_PATH, SERVICE_NAME
from tollgate.serve.ratelimit.fronts.front import ErrorStatus, Front, WireReply
from tollgate.serve.settings.choices import GrpcFront

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

    def refuse_some(payloads: Sequence[bytes]) -> list[WireReply]:
        return [ErrorStatus(number, message) if p == b"refuse" else p for p in payloads]

    world.decisions.answer = refuse_some
    with pytest.raises(grpc.RpcError) as refusal:
        peer.decide(b"refuse", timeout=PATIENCE_S)
    assert refusal.value.code() is code
    assert refusal.value.details() == message
    assert peer.decide(b"answer", timeout=PATIENCE_S) == b"answer"


def broken(_: Sequence[bytes]) -> list[WireReply]:
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
    answer: Callable[[Sequence[bytes]], list[WireReply]],
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
