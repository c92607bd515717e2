"""Which front listens, and what it says it listens on."""

from pathlib import Path

import pytest

from tests.support.manual_clock import ManualClock
from tollgate.serve.ratelimit.fronts.choice import make_front
from tollgate.serve.ratelimit.fronts.front import ErrorStatus, ListenAddress, Service
from tollgate.serve.ratelimit.fronts.grpcio import GrpcioFront, connection_age_arguments
from tollgate.serve.ratelimit.fronts.native import NativeFront, NativeTuning
from tollgate.serve.ratelimit.health import Health
from tollgate.serve.settings.choices import GrpcFront

GRACE_OF_1_5_S = ("grpc.max_connection_age_grace_ms", 1_500)
SERVICE = Service(
    decide_batch=lambda payloads: list(payloads),
    health=Health(),
    clock=ManualClock(),
    observe=lambda method, calls, seconds: None,
    on_error=lambda error: None,
    count=lambda name, by: None,
)
CLASSES = {GrpcFront.NATIVE: NativeFront, GrpcFront.GRPCIO: GrpcioFront}


@pytest.mark.parametrize("choice", CLASSES)
def test_a_front_is_chosen_by_its_name(choice: GrpcFront) -> None:
    tuning = NativeTuning(Path("sockets"))
    assert type(make_front(choice, ListenAddress(), SERVICE, tuning)) is CLASSES[choice]


@pytest.mark.parametrize(
    ("age_s", "grace_s", "arguments"),
    [
        (None, None, []),
        (60.0, None, [("grpc.max_connection_age_ms", 60_000)]),
        (None, 0.0001, [("grpc.max_connection_age_grace_ms", 1)]),
        # 720h is more than gRPC can count.
        (2_592_000.0, 1.5, [("grpc.max_connection_age_ms", 2**31 - 2), GRACE_OF_1_5_S]),
    ],
)
def test_any_age_is_one_that_grpc_can_count(
    age_s: float | None, grace_s: float | None, arguments: list[tuple[str, int]]
) -> None:
    listen = ListenAddress(connection_age_s=age_s, connection_age_grace_s=grace_s)
    assert connection_age_arguments(listen) == arguments


@pytest.mark.parametrize(
    ("listen", "target"),
    [
        (ListenAddress("0.0.0.0", 8081), "0.0.0.0:8081"),
        (ListenAddress("::", 8081), "[::]:8081"),
        (ListenAddress("[::1]", 8081), "[::1]:8081"),
        (ListenAddress(unix_socket="/run/grpc.sock"), "unix:/run/grpc.sock"),
    ],
)
def test_an_address_has_a_target(listen: ListenAddress, target: str) -> None:
    assert listen.target == target


@pytest.mark.parametrize("code", [0, -1, 17])
def test_a_refusal_is_no_success(code: int) -> None:
    with pytest.raises(AssertionError, match="other than OK"):
        ErrorStatus(code, "")
