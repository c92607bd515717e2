"""Which front listens, and what it says it listens on."""

from pathlib import Path

import pytest

from tollgate.actors.kernel.clock import ManualClock
from tollgate.serve.ratelimit.fronts.front import (
    Door,
    Front,
    NativeTuning,
    Refused,
    ServerTls,
    Service,
    choose_front,
)
from tollgate.serve.ratelimit.fronts.grpcio import GrpcioFront
from tollgate.serve.ratelimit.fronts.native import NativeFront
from tollgate.serve.ratelimit.health import Health
from tollgate.serve.settings.choices import GrpcFront

TLS = ServerTls("server.pem", "server.key")
SERVICE = Service(
    decide_batch=lambda payloads: list(payloads),
    health=Health(),
    clock=ManualClock(),
    observe=lambda method, calls, seconds: None,
    on_error=lambda error: None,
)
DEMANDS = [
    (Door(tls=TLS), "TLS"),
    (Door(unix_socket="/run/grpc.sock"), "a unix socket"),
    (Door(connection_age_s=60.0), "a maximum connection age"),
    (Door(connection_age_grace_s=60.0), "a maximum connection age"),
]


def chosen(choice: GrpcFront, door: Door) -> Front:
    return choose_front(choice, door, SERVICE, NativeTuning(Path("sockets")))


@pytest.mark.parametrize("choice", [GrpcFront.AUTO, GrpcFront.NATIVE])
def test_a_plain_door_gets_the_native_front(choice: GrpcFront) -> None:
    assert isinstance(chosen(choice, Door()), NativeFront)


def test_grpcio_is_chosen_by_its_name() -> None:
    assert isinstance(chosen(GrpcFront.GRPCIO, Door()), GrpcioFront)


@pytest.mark.parametrize(("door", "demand"), DEMANDS)
def test_what_only_grpcio_does_chooses_it(door: Door, demand: str) -> None:
    assert isinstance(chosen(GrpcFront.AUTO, door), GrpcioFront)


@pytest.mark.parametrize(("door", "demand"), DEMANDS)
def test_the_native_front_says_what_it_cannot_serve(door: Door, demand: str) -> None:
    with pytest.raises(ValueError, match=f"^GRPC_FRONT=native cannot serve {demand}: remove"):
        chosen(GrpcFront.NATIVE, door)


@pytest.mark.parametrize(
    ("door", "target"),
    [
        (Door("0.0.0.0", 8081), "0.0.0.0:8081"),
        (Door("::", 8081), "[::]:8081"),
        (Door("[::1]", 8081), "[::1]:8081"),
        (Door(unix_socket="/run/grpc.sock"), "unix:/run/grpc.sock"),
    ],
)
def test_a_door_has_a_target(door: Door, target: str) -> None:
    assert door.target == target


@pytest.mark.parametrize("code", [0, -1, 17])
def test_a_refusal_is_no_success(code: int) -> None:
    with pytest.raises(AssertionError, match="other than OK"):
        Refused(code, "")
