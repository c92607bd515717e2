"""What only the grpcio front does: TLS, unix sockets, connection ages, a bounded message."""

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import grpc
import pytest
import trustme
from grpc_health.v1.health_pb2 import HealthCheckResponse

from tests.support.ratelimit.grpc_peers import GRACE_S, PATIENCE_S, Caller, World, caller
from tests.support.waiting import until
from tollgate.serve.net.tls_files import TlsError
from tollgate.serve.ratelimit.fronts.front import Front, ListenAddress, ServerTls
from tollgate.serve.ratelimit.fronts.grpcio import GrpcioFront
from tollgate.serve.settings.choices import GrpcFront

HANDS_OVER = {"hands_over": True}


class Authority:
    """A certificate authority with a folder for the server's files."""

    def __init__(self, folder: Path) -> None:
        self.ca = trustme.CA()
        self.ca_file = str(folder / "ca.pem")
        self.cert_file = str(folder / "server.pem")
        self.key_file = str(folder / "server.key")
        self.ca.cert_pem.write_to_path(self.ca_file)
        self.issue_server_pair()

    @property
    def ca_pem(self) -> bytes:
        return self.ca.cert_pem.bytes()

    def issue_server_pair(self, name: str = "localhost") -> None:
        """Puts a new certificate and key in the place of the server's, as a rename does."""
        key, chain = self.pair(name)
        replace_file(self.cert_file, chain)
        replace_file(self.key_file, key)

    def pair(self, *names: str) -> tuple[bytes, bytes]:
        """Key and chain of a new leaf."""
        leaf = self.ca.issue_cert(*names)
        return leaf.private_key_pem.bytes(), b"".join(p.bytes() for p in leaf.cert_chain_pems)

    def server_tls(self, client_ca_file: str = "", client_san: str = "") -> ServerTls:
        return ServerTls(self.cert_file, self.key_file, client_ca_file, client_san)

    def credentials(self, *client_names: str) -> grpc.ChannelCredentials:
        """For a client that trusts this authority, and shows a leaf if it is given names."""
        key, chain = self.pair(*client_names) if client_names else (None, None)
        return grpc.ssl_channel_credentials(self.ca_pem, key, chain)


def replace_file(path: str, content: bytes) -> None:
    new = Path(f"{path}.new")
    new.write_bytes(content)
    os.replace(new, path)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def fronts(world: World) -> Iterator["Fronts"]:
    opened = Fronts(world)
    yield opened
    for front in opened.started:
        front.drain(0)


class Fronts:
    """Opens fronts and remembers them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.started: list[Front] = []

    def open(self, door: ListenAddress) -> str:
        """A front at `door`, chosen as it is chosen in service; returns its address."""
        front = self._world.front(GrpcFront.GRPCIO, Path("/nonexistent"), door)
        assert isinstance(front, GrpcioFront)
        front.start()
        self.started.append(front)
        return front.address

    def open_tls(self, tls: ServerTls) -> str:
        address = self.open(ListenAddress("127.0.0.1", 0, tls=tls))
        return address.replace("127.0.0.1", "localhost")


def assert_answers(peer: Caller) -> None:
    assert peer.decide(b"x", timeout=PATIENCE_S) == b"re:x"


def assert_refuses(peer: Caller, code: grpc.StatusCode) -> str:
    with pytest.raises(grpc.RpcError) as refusal:
        peer.decide(b"x", timeout=PATIENCE_S)
    assert refusal.value.code() is code
    return str(refusal.value.details())


# --- TLS ------------------------------------------------------------------------------------------


def test_a_client_with_the_right_authority_gets_in(authority: Authority, fronts: Fronts) -> None:
    address = fronts.open_tls(authority.server_tls())
    with caller(address, authority.credentials()) as peer:
        assert_answers(peer)
        assert peer.check("ratelimit") == HealthCheckResponse.SERVING


def test_nothing_is_written_into_a_secure_connection_that_is_handed_over(
    authority: Authority, fronts: Fronts, world: World
) -> None:
    shared = ListenAddress("127.0.0.1", 0, tls=authority.server_tls(), is_port_shared=True)
    port = int(fronts.open(shared).rpartition(":")[2])
    with caller(f"localhost:{port}", authority.credentials()) as peer:
        world.decisions.hold()
        call = peer.decide.future(b"x", timeout=PATIENCE_S)
        world.decisions.wait_for_a_batch()
        draining = Thread(target=fronts.started[0].drain, args=(GRACE_S,), kwargs=HANDS_OVER)
        draining.start()
        until(lambda: is_refused(port), "nobody listens")
        world.decisions.release()
        assert call.result() == b"re:x"
        draining.join(PATIENCE_S)
    assert not draining.is_alive()


def is_refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.1).close()
    except ConnectionRefusedError:
        return True
    except TimeoutError:  # its SYN was dropped: it is leaving
        return False
    return False


def test_a_client_with_a_wrong_authority_does_not(
    authority: Authority, fronts: Fronts, tmp_path: Path, world: World
) -> None:
    address = fronts.open_tls(authority.server_tls())
    (tmp_path / "other").mkdir()
    with caller(address, Authority(tmp_path / "other").credentials()) as peer:
        assert_refuses(peer, grpc.StatusCode.UNAVAILABLE)
    assert world.decisions.batches == []


def test_a_client_in_plain_text_does_not(
    authority: Authority, fronts: Fronts, world: World
) -> None:
    with caller(fronts.open_tls(authority.server_tls())) as peer:
        assert_refuses(peer, grpc.StatusCode.UNAVAILABLE)
    assert world.decisions.batches == []


def test_mutual_tls_wants_a_certificate_of_its_authority(
    authority: Authority, fronts: Fronts, tmp_path: Path, world: World
) -> None:
    (tmp_path / "clients").mkdir()
    clients = Authority(tmp_path / "clients")
    address = fronts.open_tls(authority.server_tls(clients.ca_file))
    with caller(address, authority.credentials()) as without_one:
        assert_refuses(without_one, grpc.StatusCode.UNAVAILABLE)
    with caller(address, authority.credentials("client")) as of_the_servers_authority:
        assert_refuses(of_the_servers_authority, grpc.StatusCode.UNAVAILABLE)
    assert world.decisions.batches == []
    credentials = grpc.ssl_channel_credentials(authority.ca_pem, *clients.pair("client"))
    with caller(address, credentials) as of_the_clients_authority:
        assert_answers(of_the_clients_authority)


@pytest.mark.parametrize(
    "names",
    [
        ("proxy.example.com",),
        ("other.example.com", "PROXY.example.com"),
        ("*.example.com",),
    ],
)
def test_a_client_that_carries_the_name_gets_in(
    names: tuple[str, ...], authority: Authority, fronts: Fronts
) -> None:
    address = fronts.open_tls(authority.server_tls(authority.ca_file, "proxy.example.com"))
    with caller(address, authority.credentials(*names)) as peer:
        assert_answers(peer)


@pytest.mark.parametrize(
    "names",
    [
        ("other.example.com",),
        ("example.com",),
        ("*.com",),
        ("*.proxy.example.com",),
        ("127.0.0.1",),
        ("proxy.example.com@example.com",),
    ],
)
def test_a_client_that_does_not_carry_the_name_is_refused_everywhere(
    names: tuple[str, ...], authority: Authority, fronts: Fronts, world: World
) -> None:
    address = fronts.open_tls(authority.server_tls(authority.ca_file, "proxy.example.com"))
    with caller(address, authority.credentials(*names)) as peer:
        message = assert_refuses(peer, grpc.StatusCode.PERMISSION_DENIED)
        assert message == "the client certificate does not carry the DNS name proxy.example.com"
        with pytest.raises(grpc.RpcError) as check:
            peer.check("ratelimit")
        with pytest.raises(grpc.RpcError) as watch:
            next(peer.watch("ratelimit"))
        reflect = peer.channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        )
        with pytest.raises(grpc.RpcError) as reflection:
            next(reflect(iter([b"\x3a\x00"]), timeout=PATIENCE_S))
    for refusal in (check, watch, reflection):
        assert refusal.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert world.decisions.batches == []


def test_where_a_name_is_wanted_every_kind_of_call_works_with_it(
    authority: Authority, fronts: Fronts
) -> None:
    address = fronts.open_tls(authority.server_tls(authority.ca_file, "localhost"))
    with caller(address, authority.credentials("localhost")) as peer:
        assert peer.check("ratelimit") == HealthCheckResponse.SERVING
        assert next(peer.watch("ratelimit")).status == HealthCheckResponse.SERVING
        reflect = peer.channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        )
        assert b"grpc.health.v1.Health" in next(reflect(iter([b"\x3a\x00"]), timeout=PATIENCE_S))
        with pytest.raises(grpc.RpcError) as refusal:
            peer.channel.unary_unary("/nobody.Service/Method")(b"", timeout=PATIENCE_S)
        assert refusal.value.code() is grpc.StatusCode.UNIMPLEMENTED


# --- certificates that change ---------------------------------------------------------------------


def test_a_new_certificate_is_shown_to_the_next_connection(
    authority: Authority, fronts: Fronts, tmp_path: Path
) -> None:
    address = fronts.open_tls(authority.server_tls())
    (tmp_path / "next").mkdir()
    successor = Authority(tmp_path / "next")
    with caller(address, authority.credentials()) as connected:
        assert_answers(connected)
        replace_file(authority.cert_file, Path(successor.cert_file).read_bytes())
        replace_file(authority.key_file, Path(successor.key_file).read_bytes())
        with caller(address, successor.credentials()) as peer:
            assert_answers(peer)
        with caller(address, authority.credentials()) as late:
            assert_refuses(late, grpc.StatusCode.UNAVAILABLE)
        assert_answers(connected)


@pytest.mark.parametrize("broken", ["half replaced", "not PEM", "gone"])
def test_a_broken_certificate_leaves_the_old_one_until_it_is_whole(
    broken: str, authority: Authority, fronts: Fronts, tmp_path: Path
) -> None:
    address = fronts.open_tls(authority.server_tls())
    (tmp_path / "next").mkdir()
    successor = Authority(tmp_path / "next")
    match broken:
        case "half replaced":
            replace_file(authority.cert_file, Path(successor.cert_file).read_bytes())
        case "not PEM":
            replace_file(authority.key_file, b"not PEM")
        case "gone":
            os.unlink(authority.cert_file)
    for _ in range(2):
        with caller(address, authority.credentials()) as peer:
            assert_answers(peer)
    replace_file(authority.cert_file, Path(successor.cert_file).read_bytes())
    replace_file(authority.key_file, Path(successor.key_file).read_bytes())
    with caller(address, successor.credentials()) as peer:
        assert_answers(peer)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("server.pem", None, "server.pem cannot be read: No such file or directory"),
        ("server.key", b"not PEM", "are not a PEM certificate chain and its unencrypted key: "),
        ("ca.pem", b"not PEM", "ca.pem holds no PEM certificate of a client CA"),
    ],
)
def test_at_the_start_a_broken_file_is_a_clear_error(
    name: str, content: bytes | None, message: str, authority: Authority, fronts: Fronts
) -> None:
    path = Path(authority.ca_file).parent / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TlsError) as refusal:
        fronts.open_tls(authority.server_tls(authority.ca_file))
    assert message in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_a_key_of_another_certificate_is_a_clear_error(
    authority: Authority, fronts: Fronts
) -> None:
    Path(authority.key_file).write_bytes(authority.pair("localhost")[0])
    with pytest.raises(TlsError, match="KEY_VALUES_MISMATCH"):
        fronts.open_tls(authority.server_tls())


def test_a_name_without_an_authority_is_a_clear_error(authority: Authority, fronts: Fronts) -> None:
    with pytest.raises(TlsError, match="needs a client CA file"):
        fronts.open_tls(authority.server_tls(client_san="proxy.example.com"))


# --- unix sockets, connection ages, bounds --------------------------------------------------------


@pytest.fixture
def socket_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tg-") as name:
        yield Path(name)


def test_a_unix_socket_is_served_also_where_a_dead_server_left_one(
    socket_dir: Path, fronts: Fronts
) -> None:
    path = socket_dir / "front.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    address = fronts.open(ListenAddress(unix_socket=str(path)))
    assert address == f"unix:{path}"
    with caller(address) as peer:
        assert_answers(peer)
        assert peer.check("ratelimit") == HealthCheckResponse.SERVING


@pytest.mark.parametrize(
    ("path", "reason"),
    [("nobody/front.sock", "No such file or directory"), ("x" * 108, "AF_UNIX path too long")],
)
def test_a_socket_that_cannot_be_made_is_a_clear_error(
    path: str, reason: str, socket_dir: Path, fronts: Fronts
) -> None:
    with pytest.raises(OSError, match=f"gRPC cannot listen on unix:{socket_dir / path}: {reason}"):
        fronts.open(ListenAddress(unix_socket=str(socket_dir / path)))


def test_an_old_connection_is_replaced_without_a_failed_call(fronts: Fronts) -> None:
    address = fronts.open(
        ListenAddress("127.0.0.1", 0, connection_age_s=0.2, connection_age_grace_s=10)
    )
    with caller(address) as peer:
        states: list[grpc.ChannelConnectivity] = []
        peer.channel.subscribe(states.append)
        # The channel is idle before its first connection, and again between two of them.
        calls_max = 100_000
        for _ in range(calls_max):
            assert_answers(peer)
            if grpc.ChannelConnectivity.IDLE in states[1:]:
                break
        assert grpc.ChannelConnectivity.IDLE in states[1:]
        assert_answers(peer)


def test_a_message_beyond_the_bound_is_refused(fronts: Fronts, world: World) -> None:
    address = fronts.open(ListenAddress("127.0.0.1", 0, connection_age_s=30 * 24 * 3600.0))
    with caller(address) as peer:
        for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
            with pytest.raises(grpc.RpcError) as refusal:
                peer.decide(bytes(5 * 1024 * 1024), PATIENCE_S, compression=compression)
            assert refusal.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert world.decisions.batches == []
