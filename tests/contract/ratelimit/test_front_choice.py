"""The settings choose the front, and the log says when it is the slower one (B15)."""

import logging
from pathlib import Path

import pytest

from tests.support.ratelimit.json_port import a_service, passing
from tollgate.serve.ratelimit.fronts.grpcio import GrpcioFront
from tollgate.serve.ratelimit.fronts.native import NativeFront
from tollgate.serve.ratelimit.health import Health
from tollgate.serve.ratelimit.wiring import grpc_front
from tollgate.serve.settings import Settings


@pytest.mark.parametrize(
    ("environ", "expected", "is_told"),
    [
        ({}, NativeFront, False),
        ({"GRPC_MAX_CONNECTION_AGE": "0"}, NativeFront, False),
        ({"GRPC_MAX_CONNECTION_AGE": "720h"}, GrpcioFront, True),
        ({"GRPC_FRONT": "grpcio"}, GrpcioFront, False),
    ],
    ids=str,
)
def test_the_slower_front_is_told_unless_it_was_asked_for(
    environ: dict[str, str],
    expected: type,
    is_told: bool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = Settings.from_environment({**environ, "TOLLGATE_DATA": str(tmp_path)})
    with caplog.at_level(logging.WARNING, "tollgate.ratelimit"):
        front = grpc_front(settings, a_service(passing, Health()))
    assert isinstance(front, expected)
    told = [record.getMessage() for record in caplog.records]
    assert told == (
        ["gRPC is served by grpcio, a slower front with more bounds, for GRPC_MAX_CONNECTION_AGE"]
        if is_told
        else []
    )
