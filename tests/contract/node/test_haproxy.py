"""The patched HAProxy on a configuration that Serve wrote: slow, greedy and unlucky callers."""

import resource
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from ray.serve._private.haproxy import BackendConfig, HAProxyApi, HAProxyConfig, ServerConfig
from ray.serve.config import HTTPOptions

from tests.support.waiting import until
from tollgate.serve.node.haproxy import CallerLimits, write_program
from tollgate.serve.node.ports import free_port

PATIENT = CallerLimits()
IMPATIENT = CallerLimits(request_within_s=1, silence_max_s=2)
# Another address of the loopback than the tests' own.
GREEDY = "127.0.0.2"
SILENT = 4_200
ANSWERS_WITHIN_S = 5.0
# Four tries, 250 ms apart, and a busy machine; Serve's own would be a second apart.
REFUSED_WITHIN_S = 2.5
BULK = "/catalog-auth/validate/bulk"


class Echo(BaseHTTPRequestHandler):
    """A replica: answers with the body, and with the address that it was told."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Peer", self.headers.get_all("X-Tollgate-Peer", ["none"])[-1])
        self.send_header("Asked", self.path)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the tests look at answers."""


class EchoOnce(Echo):
    """No connection outlives its call."""

    protocol_version = "HTTP/1.0"


@pytest.fixture(scope="module")
def replica() -> Iterator[int]:
    """The port of a replica."""
    with echoing() as port:
        yield port


@pytest.fixture(scope="module")
def shared_haproxy(tmp_path_factory: pytest.TempPathFactory, replica: int) -> Iterator[str]:
    """The address of one before payments and the rest."""
    payments = replace(app(replica), name="http-payments", path_prefix="/payments")
    folder = tmp_path_factory.mktemp("h")
    with haproxy(folder, [payments, app(replica)], PATIENT) as address:
        yield address


@contextmanager
def echoing(handler: type[Echo] = Echo) -> Iterator[int]:
    """A replica, by its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@contextmanager
def haproxy(
    folder: Path, backends: list[BackendConfig], limits: CallerLimits, host: str = "127.0.0.1"
) -> Iterator[str]:
    """The address of a HAProxy as Serve starts it, with these backends."""
    folder.mkdir(exist_ok=True)
    port = free_port()
    options = HTTPOptions(host=host, port=port)
    state = str(folder / "server-state")
    config = HAProxyConfig(
        socket_path=str(folder / "admin.sock"),
        server_state_base=str(folder),
        server_state_file=state,
        metrics_socket_path=str(folder / "metrics.sock"),
        metrics_port=free_port(),
        stats_port=free_port(),
        http_options=options,
    )
    file = str(folder / "haproxy.cfg")
    HAProxyApi(
        config, {each.name: each for each in backends}, file
    )._generate_config_file_internal()
    command = [write_program(folder, limits), "-db", "-f", file]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            until(lambda: accepts(host, port) or process.poll() is not None, "HAProxy listens")
            yield f"http://{host}:{port}"
        finally:
            process.kill()


def accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host.strip("[]"), port)).close()
    except OSError:
        return False
    return True


def app(port: int, fallback_port: int = 0) -> BackendConfig:
    """An application with one replica."""
    fallback = ServerConfig("fallback", "127.0.0.1", fallback_port) if fallback_port else None
    server = ServerConfig("replica", "127.0.0.1", port)
    return BackendConfig(
        name="http-app",
        path_prefix="/",
        app_name="app",
        servers=[server],
        fallback_server=fallback,
        http_health_check_path="/",
    )


def connected(address: str, *, source: str = "127.0.0.1") -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), ANSWERS_WITHIN_S, (source, 0))


def is_answered(address: str) -> bool:
    return httpx.get(address, timeout=ANSWERS_WITHIN_S).status_code == 200


def test_calls_pass_with_the_address_of_the_peer(tmp_path: Path, replica: int) -> None:
    body = b"x" * 100_000
    with haproxy(tmp_path, [app(replica)], PATIENT) as address:
        forged = {"X-Tollgate-Peer": "198.51.100.1"}
        answer = httpx.post(address, content=body, headers=forged)
    assert (answer.status_code, answer.content) == (200, body)
    assert answer.headers["peer"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/pay/?key=k&value=1", "/payments/pay/?key=k&value=1"),
        ("/pay?key=k", "/payments/pay?key=k"),
        ("/pay/page.css", "/payments/pay/page.css"),
        ("/payments/pay/", "/payments/pay/"),
        ("/payments/me", "/payments/me"),
        ("/payroll", "/payroll"),
    ],
)
def test_the_payment_page_has_a_short_address(shared_haproxy: str, path: str, asked: str) -> None:
    assert httpx.get(f"{shared_haproxy}{path}").headers["asked"] == asked


def test_before_there_is_an_application_a_caller_asks_again(tmp_path: Path) -> None:
    with haproxy(tmp_path, [], PATIENT) as address:
        answer = httpx.get(f"{address}/payments/merchants/x")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_without_a_replica_a_caller_hears_it_at_once(tmp_path: Path, replica: int) -> None:
    # The fallback would answer: nobody waits for it.
    with haproxy(tmp_path, [app(free_port(), fallback_port=replica)], PATIENT) as address:
        answer = httpx.get(address, timeout=ANSWERS_WITHIN_S)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_when_the_only_replica_has_just_gone_a_caller_hears_it_soon(tmp_path: Path) -> None:
    with ExitStack() as alive:
        replica = alive.enter_context(echoing(EchoOnce))
        with haproxy(tmp_path, [app(replica)], PATIENT) as address:
            assert is_answered(address)
            alive.close()
            answer = httpx.get(address, timeout=REFUSED_WITHIN_S)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_nobody_else_may_steer_it(tmp_path: Path, replica: int) -> None:
    with haproxy(tmp_path, [app(replica)], PATIENT):
        assert (tmp_path / "admin.sock").stat().st_mode & 0o077 == 0


def test_silent_connections_of_one_address_leave_room_for_others(
    tmp_path: Path, replica: int
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * SILENT), hard))
    try:
        with haproxy(tmp_path, [app(replica)], PATIENT) as address, ExitStack() as silent:
            for _ in range(SILENT):
                with suppress(ConnectionResetError):  # (enough of them are open already)
                    silent.enter_context(connected(address, source=GREEDY))
            assert is_answered(address)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(("host", "key"), [("[::1]", "::"), ("127.0.0.1", "::ffff:127.0.0.1")])
def test_connections_are_counted_by_address_and_in_ipv6_by_network(
    tmp_path: Path, replica: int, host: str, key: str
) -> None:
    with (
        haproxy(tmp_path, [app(replica)], PATIENT, host) as address,
        httpx.Client() as caller,
        socket.socket(socket.AF_UNIX) as admin,
    ):
        assert caller.get(address).status_code == 200
        admin.connect(str(tmp_path / "admin.sock"))
        admin.sendall(b"show table http_frontend\n")
        with admin.makefile() as told:
            table = told.read()
    assert f"key={key} " in table
    assert table.count("key=") == 1


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\n", b"X: y\r\n"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", b"z"),
    ],
    ids=["silent", "slow head", "slow body"],
)
def test_a_slow_caller_is_let_go(tmp_path: Path, replica: int, start: bytes, piece: bytes) -> None:
    with haproxy(tmp_path, [app(replica)], IMPATIENT) as address, connected(address) as slow:
        slow.settimeout(0.1)
        slow.sendall(start)
        give_up_s = time.monotonic() + IMPATIENT.request_within_s + ANSWERS_WITHIN_S
        answer = None
        while answer is None and time.monotonic() < give_up_s:
            try:
                slow.sendall(piece)
                answer = slow.recv(1_000)
            except TimeoutError:
                continue
            except ConnectionError:
                answer = b""
        assert answer is not None, "it is still connected"
        assert answer == b"" or b" 408 " in answer
        assert is_answered(address)


def test_a_bulk_call_may_take_its_time(tmp_path: Path, replica: int) -> None:
    lines = [b"{}\n"] * 8
    with haproxy(tmp_path, [app(replica)], IMPATIENT) as address, connected(address) as bulk:
        length = sum(map(len, lines))
        bulk.sendall(
            f"POST {BULK} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()
        )
        bulk.settimeout(2 * IMPATIENT.request_within_s / len(lines))
        for line in lines[:-1]:
            bulk.sendall(line)
            with pytest.raises(TimeoutError):
                bulk.recv(1)
        bulk.sendall(lines[-1])
        bulk.settimeout(ANSWERS_WITHIN_S)
        assert bulk.recv(1_000).startswith(b"HTTP/1.1 200 ")
