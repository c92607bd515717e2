"""The ways to a real Redis, and what becomes of hits when one of them breaks."""

import json
import logging
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner

from tests.support.ratelimit.redis_fronts import NOW_S, RedisFront, redis_front
from tests.support.servers.gated_proxy import gated_proxy
from tests.support.servers.redis import RedisProcess, redis_process
from tests.support.waiting import PATIENCE_S, until
from tollgate.actors.ratelimit.counting.counters import Unreachable
from tollgate.serve.commands.status import status
from tollgate.serve.node.ports import free_port
from tollgate.serve.ratelimit.backends.redis import counters
from tollgate.serve.ratelimit.backends.redis.counters import GaveUp, WatchedServer

MINUTE = NOW_S - NOW_S % 60


@pytest.fixture(scope="module")
def server() -> Iterator[RedisProcess]:
    with redis_process("--unixsocket", "socket", "--maxclients", "100") as found:
        yield found


def problem_of(found: int | Unreachable) -> str:
    assert isinstance(found, Unreachable), found
    return str(found)


def test_it_is_reached_over_a_unix_socket(server: RedisProcess) -> None:
    path = str(server.folder / "socket")
    for environment in (
        {"REDIS_URL": path},
        {"REDIS_URL": f"unix://{path}"},
        {"REDIS_URL": path, "REDIS_SOCKET_TYPE": "unix"},
    ):
        with redis_front(**environment) as front:
            before = front.hit("unix_", 0)
            assert isinstance(before, int)
            assert front.hit("unix_") == before + 1


@pytest.fixture(scope="module")
def certificates() -> Iterator[dict[str, str]]:
    """Files: of an authority, of a server's pair, and of a client's."""
    ca = trustme.CA()
    with tempfile.TemporaryDirectory(prefix="tg-") as name:
        folder = Path(name)
        ca.cert_pem.write_to_path(folder / "ca.pem")
        trustme.CA().cert_pem.write_to_path(folder / "other-ca.pem")
        for who, host in (("server", "redis.test"), ("local", "127.0.0.1"), ("client", "client")):
            pair = ca.issue_cert(host)
            pair.private_key_pem.write_to_path(folder / f"{who}.key")
            with (folder / f"{who}.pem").open("wb") as file:
                file.writelines(blob.bytes() for blob in pair.cert_chain_pems)
        yield {path.name: str(path) for path in folder.iterdir()}


def tls_words(certificates: dict[str, str], who: str) -> list[str]:
    return [
        *("--tls-cert-file", certificates[f"{who}.pem"]),
        *("--tls-key-file", certificates[f"{who}.key"]),
        *("--tls-ca-cert-file", certificates["ca.pem"]),
    ]


def test_it_is_reached_over_tls_with_a_certificate_of_ours(certificates: dict[str, str]) -> None:
    ours = {
        "REDIS_TLS_CACERT": certificates["ca.pem"],
        "REDIS_TLS_CLIENT_CERT": certificates["client.pem"],
        "REDIS_TLS_CLIENT_KEY": certificates["client.key"],
    }
    words = tls_words(certificates, "local")
    with redis_process(*words, "--tls-auth-clients", "optional", has_tls=True) as server:
        with redis_front(REDIS_URL=server.address, REDIS_TLS="true", **ours) as front:
            assert front.hit("tls_") == 1
        with redis_front(REDIS_URL=f"rediss://{server.address}", **ours) as front:
            assert front.hit("tls_") == 2
        assert server.client.config_set("tls-auth-clients", "yes")
        with redis_front(REDIS_URL=server.address, REDIS_TLS="true", **ours) as front:
            assert front.hit("tls_") == 3
        stranger = {"REDIS_TLS_CACERT": certificates["ca.pem"]}
        assert is_refused(REDIS_URL=server.address, REDIS_TLS="true", **stranger)


def is_refused(**environment: str) -> str:
    """Why a front does not reach its Redis."""
    front = RedisFront(**environment)
    try:
        return until(lambda: problem_of(front.hit("k_")), "a reason")
    finally:
        front.counters.close()


def test_whose_certificate_it_is_is_looked_at(certificates: dict[str, str]) -> None:
    words = [*tls_words(certificates, "server"), "--tls-auth-clients", "no"]
    with redis_process(*words, has_tls=True) as server:
        address = {"REDIS_URL": server.address, "REDIS_TLS": "true"}
        known = address | {"REDIS_TLS_CACERT": certificates["ca.pem"]}
        other = address | {"REDIS_TLS_CACERT": certificates["other-ca.pem"]}
        assert "certificate verify failed" in is_refused(**known), "another host's"
        assert "certificate verify failed" in is_refused(**other), "another authority's"
        any_host = {"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION": "true"}
        assert "certificate verify failed" in is_refused(**other, **any_host)
        with redis_front(**known, **any_host) as front:
            assert front.hit("tls_") == 1


def test_it_asks_for_a_password(caplog: pytest.LogCaptureFixture) -> None:
    with redis_process(password="s3cr@t") as server:
        url = server.address
        assert "uthentication" in is_refused(REDIS_URL=url)
        assert "invalid username-password pair" in is_refused(REDIS_URL=url, REDIS_AUTH="wr0ng")
        server.client.acl_setuser(
            "gate", enabled=True, passwords=["+p:w"], keys=["*"], commands=["+@all"]
        )
        for number, environment in enumerate(
            (
                {"REDIS_URL": url, "REDIS_AUTH": "s3cr@t"},
                {"REDIS_URL": url, "REDIS_AUTH": "gate:p:w"},
                {"REDIS_URL": f"redis://gate:p:w@{url}"},
            )
        ):
            with redis_front(**environment) as front:
                assert front.hit("auth_") == number + 1
    shown = caplog.text
    assert "s3cr@t" not in shown
    assert "p:w" not in shown
    assert "wr0ng" not in shown


def test_one_that_is_not_there_is_tried_until_it_is(caplog: pytest.LogCaptureFixture) -> None:
    with redis_process() as server:
        server.kill()
        front = RedisFront(REDIS_URL=server.address)
        try:
            assert "onnection refused" in problem_of(front.hit("k_"))
            assert not front.counters.has_begun
            assert front.counters.down == {0}
            front.counters.probe()
            server.start()
            front.until_begun()
            assert front.hit("k_") == 1
            assert not front.counters.down
        finally:
            front.counters.close()
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert any(f"Redis at {server.address}: " in each for each in warnings)
    assert f"Redis at {server.address} answers again" in warnings


def test_a_start_gives_up_in_the_end() -> None:
    front = RedisFront(REDIS_URL=f"127.0.0.1:{free_port()}", REDIS_STARTUP_MAX_ELAPSED_TIME="100ms")

    def reason() -> str:
        try:
            front.counters.probe()
        except GaveUp as error:
            return str(error)
        return ""

    try:
        assert "within 0.1 s" in until(reason, "it gives up")
    finally:
        front.counters.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_watch_that_ends_is_reported(
    server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    with redis_front(REDIS_URL=server.address) as front:
        front.counters.probe()
        monkeypatch.setattr(WatchedServer, "ping", lambda self: 1 // 0)

        def is_reported() -> bool:
            try:
                front.counters.probe()
            except AssertionError:
                return True
            return False

        until(is_reported, "the next ping ends the thread")
    front.counters.probe()


def test_a_killed_server_costs_errors_until_it_is_back() -> None:
    with redis_process() as server, redis_front(REDIS_URL=server.address) as front:
        assert front.hit("k_", 5) == 5
        server.kill()
        assert server.address in problem_of(front.hit("k_"))
        until(lambda: front.counters.down == {0}, "no connection is left")
        assert front.counters.has_begun, "it was reached once"
        server.start()
        assert until(lambda: _number(front.hit("k_")), "hits are counted again") == 1
        until(lambda: not front.counters.down, "a ping shows that all is well")


def _number(found: int | Unreachable) -> int:
    return 0 if isinstance(found, Unreachable) else found


def test_hits_go_on_while_connections_are_cut(server: RedisProcess) -> None:
    server.client.flushall()
    with redis_front(REDIS_URL=server.address) as front:
        front.hit("k_")
        server.client.client_kill_filter(_type="normal", skipme=True)
        assert until(lambda: _number(front.hit("k_")), "the next call, or the one behind") >= 2
        counts = front.tallies.drain()
        assert counts.gauges["ratelimit.redis_pool.cx_active"] >= 1
        assert counts.counts["ratelimit.redis_pool.cx_total"] >= 2
        assert counts.counts["ratelimit.redis_pool.cx_local_close"] >= 1


def test_a_server_that_says_nothing_is_waited_for_once(server: RedisProcess) -> None:
    with (
        gated_proxy(server.port) as proxy,
        redis_front(REDIS_URL=proxy.address, REDIS_TIMEOUT="300ms") as front,
    ):
        assert until(lambda: _number(front.hit("slow_")), "it answers")
        with proxy.held():
            said = [problem_of(front.hit("slow_")) for _ in range(100)]
            assert all("Timeout" in each or "not answering" in each for each in said)
            assert said.count(f"Redis at {proxy.address} is not answering") >= 90
            assert front.counters.down == {0}
        assert until(lambda: _number(front.hit("slow_")), "it answers again")
        until(lambda: not front.counters.down, "and is known to")


def test_a_server_that_was_late_once_is_asked_again_at_once(
    server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at the next look, which never comes here."""
    monkeypatch.setattr(counters, "LOOK_EVERY_S", 10 * PATIENCE_S)
    with (
        gated_proxy(server.port) as proxy,
        redis_front(REDIS_URL=proxy.address, REDIS_TIMEOUT="1s") as front,
    ):
        until(lambda: _number(front.hit("late_")), "it answers")
        pinged = server.client.info("commandstats")["cmdstat_ping"]["calls"]
        with proxy.held():
            assert "Timeout" in problem_of(front.hit("late_"))
            until(
                lambda: server.client.info("commandstats")["cmdstat_ping"]["calls"] > pinged,
                "a ping is on its way",
            )
        assert until(lambda: _number(front.hit("late_")), "it is answered")


def test_threads_wait_for_a_connection(server: RedisProcess) -> None:
    server.client.flushall()
    with redis_front(REDIS_URL=server.address, REDIS_POOL_SIZE="2") as front:
        found: list[int | Unreachable] = []

        def hit() -> None:
            found.extend(front.hit("pool_") for _ in range(50))

        threads = [threading.Thread(target=hit) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(_number, found)) == list(range(1, 401))
        assert front.gauge("ratelimit.redis_pool.cx_active") <= 2


def test_a_full_server_says_so() -> None:
    with (
        redis_process("--maxmemory-policy", "noeviction") as full,
        redis_front(REDIS_URL=full.address) as front,
    ):
        front.hit("k_", 3)
        full.client.config_set("maxmemory", "1")
        assert "OOM command not allowed when used memory" in problem_of(front.hit("k_"))
        assert front.hit("k_", 0) == 3, "one may still look"
        assert not front.counters.down


@pytest.mark.parametrize("closes", ["true", "false"])
def test_a_replica_takes_no_hits(server: RedisProcess, closes: str) -> None:
    with (
        redis_process() as replica,
        redis_front(
            REDIS_URL=replica.address, REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR=closes
        ) as front,
    ):
        front.hit("k_")
        front.tallies.drain()
        replica.client.replicaof("127.0.0.1", server.port)
        assert "READONLY You can't write against a read only replica" in problem_of(front.hit("k_"))
        assert front.counted("ratelimit.redis_pool.cx_local_close") == (closes == "true")
        replica.client.replicaof("no", "one")
        assert isinstance(front.hit("k_"), int)


def test_the_status_says_where_the_counters_are(tmp_path: Path) -> None:
    environment = {"REDIS_URL": "redis://user:s3cret@redis:6380", "TOLLGATE_DATA": str(tmp_path)}
    result = CliRunner().invoke(status, ["--json"], env=environment)
    assert json.loads(result.stdout)["counters"] == "Redis at redis:6380"


def test_an_idle_front_knows_that_its_server_has_gone() -> None:
    with redis_process() as server, redis_front(REDIS_URL=server.address) as front:
        front.hit("k_")
        server.kill()
        until(lambda: front.counters.down == {0}, "a ping is not answered")
        server.start()
        until(lambda: not front.counters.down, "it connects by itself")
