"""`tollgate client`: what it sends, what it prints, and how it ends."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click.testing
import pytest
import trustme

from tests.support.ratelimit.grpc_peers import World
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.rules.descriptors import RateLimitDescriptor, RateLimitRequest
from tollgate.serve.commands.client import client, own_address
from tollgate.serve.node.run_record import RunRecord, write_record
from tollgate.serve.ratelimit.codec.answers import (
    STATUS_UNLIMITED,
    STATUS_WITHOUT_LIMIT,
    current_limit_bytes,
    response_bytes,
    status_bytes,
)
from tollgate.serve.ratelimit.codec.messages import ResponseMessage
from tollgate.serve.ratelimit.codec.requests import decode_request
from tollgate.serve.ratelimit.fronts.front import (
    ErrorStatus,
    Front,
    ListenAddress,
    ServerTls,
    StatusCode,
    WireReply,
)
from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import GrpcFront

OK, OVER_LIMIT = ResponseMessage.OK, ResponseMessage.OVER_LIMIT
Open = Callable[[ListenAddress], str]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tg-") as name:
        yield Path(name)


@pytest.fixture
def open_front(world: World, folder: Path) -> Iterator[Open]:
    fronts: list[Front] = []

    def opened(door: ListenAddress) -> str:
        front = world.front(GrpcFront.GRPCIO, folder, door)
        front.start()
        fronts.append(front)
        return front.address

    yield opened
    for front in fronts:
        front.drain(0)


@pytest.fixture
def address(open_front: Open) -> str:
    return open_front(ListenAddress("127.0.0.1", 0))


def run(*arguments: str, env: dict[str, str] | None = None) -> click.testing.Result:
    return click.testing.CliRunner().invoke(client, arguments, env=env)


def asked(world: World) -> RateLimitRequest:
    [[payload]] = world.decisions.batches
    return decode_request(payload)


def answering(*statuses: bytes, overall: int = OK) -> Callable[[Sequence[bytes]], list[WireReply]]:
    headers = [("RateLimit-Limit", "10"), ("RateLimit-Reset", "34")]
    payload = response_bytes(overall, statuses, headers)
    return lambda payloads: [payload] * len(payloads)


@pytest.mark.parametrize("dash", ["-", "--"])
def test_it_asks_what_it_was_told_and_prints_what_it_heard(
    dash: str, address: str, world: World
) -> None:
    limit = current_limit_bytes(10, Unit.MINUTE, "n")
    world.decisions.answer = answering(
        status_bytes(OVER_LIMIT, limit, 0, 34),
        STATUS_WITHOUT_LIMIT,
        STATUS_UNLIMITED,
        overall=OVER_LIMIT,
    )
    descriptors = [f"{dash}descriptors={text}" for text in ("a=b,c=d", "x=", "y=z")]
    result = run(f"{dash}dial_string", address, f"{dash}domain", "edge", *descriptors)
    assert asked(world) == RateLimitRequest(
        "edge",
        (
            RateLimitDescriptor((("a", "b"), ("c", "d"))),
            RateLimitDescriptor((("x", ""),)),
            RateLimitDescriptor((("y", "z"),)),
        ),
        hits_addend=1,
    )
    assert result.output.splitlines() == [
        "overall: OVER_LIMIT",
        "a=b,c=d: OVER_LIMIT, limit 10/MINUTE, remaining 0, reset 34s",
        "x=: OK, no limit",
        "y=z: OK, unlimited",
        "header RateLimit-Limit: 10",
        "header RateLimit-Reset: 34",
    ]
    assert result.exit_code == 0


def test_hits_are_counted_as_told(address: str, world: World) -> None:
    world.decisions.answer = answering()
    result = run("-dial_string", address, "-domain", "d", "-hits_addend", "7")
    assert result.exit_code == 0
    assert asked(world).hits_addend == 7


def test_a_flag_without_effect_says_so(address: str, world: World) -> None:
    world.decisions.answer = answering()
    result = run("-dial_string", address, "-oltp-protocol", "grpc")
    assert result.exit_code == 0
    assert "-oltp-protocol has no effect" in result.stderr


def test_a_call_that_fails_is_one_line_and_exit_1(address: str, world: World) -> None:
    refused = ErrorStatus(StatusCode.UNKNOWN, "rate limit domain must not be empty")
    world.decisions.answer = lambda payloads: [refused] * len(payloads)
    result = run("-dial_string", address, "-descriptors", "a=b")
    assert result.stderr == f"error: {address}: UNKNOWN: rate limit domain must not be empty\n"
    assert result.stdout == ""
    assert result.exit_code == 1


def test_nobody_there_is_one_line_and_exit_1(folder: Path) -> None:
    result = run("-dial_string", f"unix://{folder}/nobody.sock", "-domain", "d")
    assert result.stderr.startswith(f"error: unix://{folder}/nobody.sock: UNAVAILABLE: ")
    assert len(result.stderr.splitlines()) == 1
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-descriptors", "a=b,c"), "invalid descriptor list 'a=b,c': write name=value,name=value"),
        (("-descriptors", "a=b=c"), "invalid descriptor list 'a=b=c': write name=value,name=value"),
        (("-descriptors", ""), "invalid descriptor list '': write name=value,name=value"),
        (("-hits_addend", "-1"), "-1 is not in the range"),
        (("-hits_addend", "4294967296"), "4294967296 is not in the range"),
        (("-verbose",), "No such option"),
        (("-grpc-use-tls", "-grpc-cert-file", "c.pem"), "-grpc-cert-file and -grpc-key-file go"),
        (("-grpc-server-ca-file", "ca.pem"), "certificate files need -grpc-use-tls"),
        (
            ("-grpc-use-tls", "-grpc-server-ca-file", "/nonexistent/ca.pem"),
            "/nonexistent/ca.pem cannot be read: No such file or directory",
        ),
    ],
)
def test_wrong_flags_are_told_and_exit_2(arguments: tuple[str, ...], message: str) -> None:
    result = run("-domain", "d", *arguments)
    assert message in result.stderr
    assert result.exit_code == 2


def test_it_reaches_a_unix_socket(open_front: Open, folder: Path, world: World) -> None:
    world.decisions.answer = answering(STATUS_WITHOUT_LIMIT)
    path = folder / "front.sock"
    open_front(ListenAddress(unix_socket=str(path)))
    result = run("-dial_string", f"unix://{path}", "-domain", "d", "-descriptors", "a=b")
    assert result.output.splitlines()[:2] == ["overall: OK", "a=b: OK, no limit"]
    assert result.exit_code == 0


def test_it_speaks_tls_and_shows_its_certificate(
    open_front: Open, folder: Path, world: World
) -> None:
    world.decisions.answer = answering(STATUS_WITHOUT_LIMIT)
    authority = trustme.CA()
    leaf = authority.issue_cert("localhost")
    ca, cert, key = (str(folder / name) for name in ("ca.pem", "cert.pem", "key.pem"))
    authority.cert_pem.write_to_path(ca)
    leaf.cert_chain_pems[0].write_to_path(cert)
    leaf.private_key_pem.write_to_path(key)
    address = open_front(ListenAddress("127.0.0.1", 0, tls=ServerTls(cert, key, ca)))
    flags = ["-dial_string", address.replace("127.0.0.1", "localhost"), "-domain", "d"]
    flags += ["-grpc-use-tls", "-grpc-server-ca-file", ca]
    refused = run(*flags)
    assert "UNAVAILABLE" in refused.stderr
    assert refused.exit_code == 1
    assert run(*flags, "-grpc-cert-file", cert, "-grpc-key-file", key).exit_code == 0


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "localhost:8081"),
        ({"GRPC_PORT": "9"}, "localhost:9"),
        ({"GRPC_PORT": "9", "GRPC_HOST": "0.0.0.0"}, "localhost:9"),
        ({"GRPC_PORT": "9", "GRPC_HOST": "192.0.2.1"}, "192.0.2.1:9"),
        ({"GRPC_PORT": "9", "GRPC_HOST": "2001:db8::1"}, "[2001:db8::1]:9"),
        ({"GRPC_UDS": "/nonexistent/front.sock"}, "unix:///nonexistent/front.sock"),
    ],
)
def test_without_an_address_it_calls_the_configured_door(
    settings: dict[str, str], address: str
) -> None:
    assert own_address(Settings.from_environment(settings)) == address


def test_it_finds_the_port_that_a_start_chose(address: str, folder: Path, world: World) -> None:
    world.decisions.answer = answering(STATUS_WITHOUT_LIMIT)
    environment = {"GRPC_PORT": "0", "TOLLGATE_DATA": str(folder)}
    unknown = run("-domain", "d", "-descriptors", "a=b", env=environment)
    assert "nothing runs with these settings: say -dial_string" in unknown.stderr
    assert unknown.exit_code == 2
    supervisor = [sys.executable, "-c", "input()", "tollgate.serve.node.supervisor"]
    with subprocess.Popen(supervisor, stdin=subprocess.PIPE) as process:
        record = RunRecord(process.pid, 0.0, {"gRPC": address}, is_ready=True)
        write_record(str(folder), record)
        result = run("-domain", "d", "-descriptors", "a=b", env=environment)
        process.kill()
    assert result.output.splitlines()[0] == "overall: OK"
