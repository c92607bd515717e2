"""The chapter "From envoyproxy/ratelimit" of the manual, typed through: its commands and the
settings of its steps are read from it. An Envoy asks all the while, and waits for every decision.
"""

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event

import grpc
import httpx
import pytest

from tests.e2e.callers import CALL_TIMEOUT_S, Call, http_ask, own_connection, question
from tests.e2e.callers import running as traffic_of
from tests.e2e.conftest import StartEnvoy, StartTollgate
from tests.support.processes.envoy import EnvoyProcess, patient
from tests.support.processes.redeployment import redeploy
from tests.support.processes.tollgate import COMMAND, COMMAND_WITHIN_S, TollgateProcess
from tests.support.ratelimit.migration_chapter import commands, settings_of
from tests.support.ratelimit.service_stub import Code, RateLimitServiceStub
from tests.support.servers.memcached import memcached
from tests.support.servers.redis import RedisProcess, redis_process
from tests.support.waiting import until
from tollgate.serve.node.ports import free_port

LIMIT, FEW = 1_000_000, 40
EACH_TIME = 15  # of the few are asked for, after each of three steps
PAUSE_S = 0.01  # of each caller, before a call
JUST_TOLD_MAX = 25  # calls in the time that a shadow takes to count them, on a busy machine
EARLIER = 7  # hits that the reference has counted, beside
# Windows are long, so that none ends in the middle.
RULES = f"""\
domain: edge
descriptors:
  - {{key: path, value: /earlier, rate_limit: {{unit: year, requests_per_unit: {LIMIT}}}}}
  - {{key: path, value: /steady, rate_limit: {{unit: year, requests_per_unit: {LIMIT}}}}}
  - {{key: path, value: /few, rate_limit: {{unit: year, requests_per_unit: {FEW}}}}}
"""


@dataclass
class Migration:
    """The node that moves, its Envoy, and the stores outside."""

    tollgate: TollgateProcess
    envoy: EnvoyProcess
    redis: RedisProcess
    typed: dict[str, subprocess.CompletedProcess[str]] = field(default_factory=dict)

    def shadow(self, what: str) -> int:
        """A statistic of the second place, as the debug port shows it."""
        page = httpx.get(self.tollgate.url("DEBUG_PORT", "/stats"), timeout=CALL_TIMEOUT_S).text
        found = re.search(rf"^ratelimit\.counting_shadow\.{what}: (\d+)$", page, re.MULTILINE)
        return int(found[1]) if found else 0

    def count_beside(self, path: str) -> None:
        """Count EARLIER hits of a path as the reference does, in the same counter."""
        (key,) = self.redis.client.keys(f"edge_path_{path}_*")
        self.redis.client.incrby(key, EARLIER)


@pytest.fixture(scope="module")
def migration(
    start_tollgate: StartTollgate, start_envoy: StartEnvoy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Migration]:
    folder = tmp_path_factory.mktemp("migration")
    (folder / "runtime/config").mkdir(parents=True)
    (folder / "runtime/config/edge.yaml").write_text(RULES)
    with redis_process() as redis:
        settings = {
            "LOG_LEVEL": "warn",
            "USE_STATSD": "false",
            "REDIS_SOCKET_TYPE": "tcp",
            "REDIS_URL": redis.address,
            "RUNTIME_ROOT": str(folder / "runtime"),
            "RUNTIME_WATCH_ROOT": "false",
            "GOMAXPROCS": "2",
        }
        lines = ["# what the reference was started with"]
        lines += [f'{name}="{value}"' for name, value in settings.items()]
        (folder / "ratelimit.env").write_text("\n".join(lines))
        typed: dict[str, subprocess.CompletedProcess[str]] = {}

        def type_all(tollgate: TollgateProcess) -> None:
            environment = {
                name: value for name, value in tollgate.environment.items() if name not in settings
            }
            environment["PATH"] = f"{COMMAND.parent}:{environment['PATH']}"
            for command in commands():
                done = typed[command] = subprocess.run(
                    ["bash", "-c", command],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=COMMAND_WITHIN_S,
                    check=False,
                )
                assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            tollgate.remember_processes()

        services = {"PAYMENTS_ENABLED": "false", "CATALOG_ENABLED": "false", "DRAIN_GRACE": "2s"}
        with (
            start_tollgate({**settings, **services}, type_all) as tollgate,
            start_envoy(tollgate, patient) as envoy,
        ):
            yield Migration(tollgate, envoy, redis, typed)


def test_the_commands_of_the_chapter_say_that_all_is_well(migration: Migration) -> None:
    config, environment, up = migration.typed.values()
    assert config.stdout.splitlines()[-1] == "all rate limit configs ok"
    told = {line.split()[1]: line.split()[2:6] for line in environment.stdout.splitlines()[:7]}
    assert told["REDIS_URL"] == ["means", "KVSTORE_URL", "=", migration.redis.address]
    assert told["GOMAXPROCS"][0] == "ignored"
    assert environment.stdout.splitlines()[-1] == (
        "6 means, 1 ignored: a start with this file would be taken"
    )
    assert "Tollgate is running" in up.stdout


@contextmanager
def few_left(tollgate: TollgateProcess) -> Iterator[Callable[[], int]]:
    """Takes one of the few, over gRPC; what remains of them then."""
    with own_connection(tollgate.grpc_address) as channel:
        stub = RateLimitServiceStub(channel)

        def taken() -> int:
            answer = stub.ShouldRateLimit(question("edge", "path=/few"), timeout=CALL_TIMEOUT_S)
            assert answer.overall_code == Code.OK
            return int(answer.statuses[0].limit_remaining)

        yield taken


def test_callers_hear_of_a_redis_that_ends_and_nothing_once_it_is_back(
    migration: Migration,
) -> None:
    redis = migration.redis
    with few_left(migration.tollgate) as taken:

        def taken_or_none() -> int:
            try:
                return taken()
            except grpc.RpcError:
                return 0

        assert [taken(), taken()] == [FEW - 1, FEW - 2]
        redis.kill()
        with pytest.raises(grpc.RpcError) as failure:
            taken()
        assert failure.value.code() is grpc.StatusCode.UNKNOWN
        assert f"connecting to {redis.address}" in str(failure.value.details())
        redis.start()
        # (nothing was in it when it started)
        assert until(taken_or_none, "Redis counts again") == FEW - 1
    redis.client.flushall()


def paced(path: str, client: httpx.Client) -> Call:
    Event().wait(PAUSE_S)
    return http_ask(path, client, client.build_request("GET", path))()


def test_the_move_fails_no_request_and_admits_what_one_place_would(migration: Migration) -> None:
    tollgate, envoy = migration.tollgate, migration.envoy
    errors = envoy.statistic("cluster.service.ratelimit.error")
    redis_decides, own_decides = settings_of(4), settings_of(5)
    assert redis_decides == {"BACKEND_TYPE": "redis", "COUNTING_SHADOW": "actors"}
    assert own_decides == {"BACKEND_TYPE": "actors", "COUNTING_SHADOW": "redis"}
    with httpx.Client(base_url=envoy.url, timeout=CALL_TIMEOUT_S) as client:
        few: list[Call] = []

        def ask_few() -> None:
            few.extend(paced("/few", client) for _ in range(EACH_TIME))

        asked = {path: partial(paced, path, client) for path in ("/earlier", "/steady")}
        with traffic_of({"/earlier": asked["/earlier"]}) as of_earlier:
            of_earlier.next_call(lambda call: call.code == 200, "Redis decides")
            migration.count_beside("/earlier")
            redeploy(tollgate, redis_decides)
            # From here on Tollgate's own counters have every hit of these.
            with traffic_of({"/steady": asked["/steady"]}) as of_steady:
                ask_few()
                until(lambda: migration.shadow("agrees") > len(few), "the places agree")
                redeploy(tollgate, own_decides)
                ask_few()
                of_steady.next_call(lambda call: call.code == 200, "own counters decide")
                redeploy(tollgate, redis_decides)
                ask_few()
                of_steady.next_call(lambda call: call.code == 200, "Redis decides again")
    calls = [*of_earlier.calls, *of_steady.calls, *few]
    assert {call.error for call in calls} == {""}
    assert {call.code for call in (*of_earlier.calls, *of_steady.calls)} == {200}
    assert envoy.statistic("cluster.service.ratelimit.error") == errors, "each was decided"
    assert [call.code for call in few] == [200] * FEW + [429] * (len(few) - FEW)
    # Whoever decides has counted all before, but for what the other one was just being told.
    for number, call in enumerate(of_steady.calls, start=1):
        assert abs(LIMIT - call.remaining - number) <= JUST_TOLD_MAX, (number, call)
    assert LIMIT - of_steady.calls[-1].remaining == len(of_steady.calls)
    assert LIMIT - of_earlier.calls[-1].remaining == len(of_earlier.calls) + EARLIER
    told = {what: migration.shadow(what) for what in ("code_differs", "unreachable", "dropped")}
    assert told == {"code_differs": 0, "unreachable": 0, "dropped": 0}
    # What own counters lack, they have said.
    assert migration.shadow("remaining_differs") >= EARLIER


def test_callers_hear_nothing_of_a_memcached_that_ends(migration: Migration) -> None:
    with memcached("-p", str(free_port())) as server, few_left(migration.tollgate) as taken:
        there = {"MEMCACHE_HOST_PORT": server.address, "MEMCACHE_TIMEOUT": "10s"}
        redeploy(migration.tollgate, {"BACKEND_TYPE": "memcache", **there})
        assert [taken(), taken(), taken()] == [FEW - 1, FEW - 2, FEW - 3]
        server.kill()
        # (what is out of reach reads as 0)
        until(lambda: taken() == FEW - 1, "the node is down")
        assert taken() == FEW - 1
        server.start()
        until(lambda: taken() < FEW - 1, "Memcached counts again")
