"""Connections to Memcached: addresses, how many there are, TLS (B11)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trustme

from tests.support.ratelimit.counting_in_memcached import counting_in, hit
from tests.support.servers.memcached import Memcached, memcached
from tests.support.waiting import until


def test_a_host_is_tried_at_all_of_its_addresses(server: Memcached, name: str) -> None:
    # `localhost` has two, and Memcached listens at one of them.
    with counting_in({"MEMCACHE_HOST_PORT": f"localhost:{server.port}"}) as counters:
        assert hit(counters, (name, 1)) == [1]
        assert hit(counters, (name, 1)) == [2]


def test_a_process_keeps_no_more_idle_connections_than_it_may(server: Memcached, name: str) -> None:
    environ = {"MEMCACHE_HOST_PORT": server.address, "MEMCACHE_MAX_IDLE_CONNS": "1"}
    before = connections_of(server)
    with counting_in(environ) as counters:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda _: hit(counters, (name, 1)), range(64)))
        # (the other one writes)
        until(lambda: connections_of(server) <= before + 2, "the others are closed")
        assert hit(counters, (name, 0)) == [64]


def connections_of(server: Memcached) -> int:
    lines = server.ask(b"stats").split(b"\r\n")
    return next(int(line.split()[2]) for line in lines if line.startswith(b"STAT curr_conn"))


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls_folder(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    trustme.CA().cert_pem.write_to_path(str(folder / "other-ca.pem"))
    for who in ("localhost", "client.example"):
        issued = authority.issue_cert(who)
        issued.private_key_pem.write_to_path(str(folder / f"{who}.key"))
        issued.cert_chain_pems[0].write_to_path(str(folder / f"{who}.pem"))
    return folder


@pytest.fixture(scope="module")
def tls_server(tls_folder: Path) -> Iterator[Memcached]:
    """It asks for a certificate of its clients."""
    files = {"chain_cert": "localhost.pem", "key": "localhost.key", "ca_cert": "ca.pem"}
    words = [f"ssl_{option}={tls_folder / file}" for option, file in files.items()]
    with memcached("-Z", "-o", ",".join([*words, "ssl_verify_mode=2"]), has_tls=True) as running:
        yield running


@pytest.mark.parametrize(
    ("host", "ca", "who", "more", "is_counted"),
    [
        ("localhost", "ca.pem", "client.example", {}, True),
        ("127.0.0.1", "ca.pem", "client.example", {}, False),
        ("127.0.0.1", "ca.pem", "client.example", {"SKIP_HOSTNAME_VERIFICATION": "true"}, True),
        ("localhost", "other-ca.pem", "client.example", {}, False),
        (
            "localhost",
            "other-ca.pem",
            "client.example",
            {"SKIP_HOSTNAME_VERIFICATION": "true"},
            False,
        ),
        ("localhost", "ca.pem", "", {}, False),
    ],
    ids=["good", "wrong host", "any host", "wrong CA", "wrong CA, any host", "no certificate"],
)
def test_tls_is_verified_both_ways(
    tls_server: Memcached,
    tls_folder: Path,
    name: str,
    host: str,
    ca: str,
    who: str,
    more: dict[str, str],
    is_counted: bool,
) -> None:
    environ = {
        "MEMCACHE_HOST_PORT": f"{host}:{tls_server.port}",
        "MEMCACHE_TLS": "true",
        "MEMCACHE_TLS_CACERT": str(tls_folder / ca),
        **{f"MEMCACHE_TLS_{option}": value for option, value in more.items()},
    }
    if who:
        environ["MEMCACHE_TLS_CLIENT_CERT"] = str(tls_folder / f"{who}.pem")
        environ["MEMCACHE_TLS_CLIENT_KEY"] = str(tls_folder / f"{who}.key")
    with counting_in(environ) as counters:
        hit(counters, (name, 1))
        assert hit(counters, (name, 1)) == [2 if is_counted else 1]
        assert counters.down == (frozenset() if is_counted else {0})
