"""Counters in a real Redis: what is written there, what comes back, and what else can happen."""

from collections.abc import Iterator
from dataclasses import replace
from secrets import randbelow

import pytest

from tests.conformance.ratelimit.decision_cases import Case
from tests.conformance.ratelimit.test_decisions import CASES, Run
from tests.support.ratelimit.engine import Engine, entries
from tests.support.ratelimit.redis_fronts import NOW_S, RedisFront, redis_front
from tests.support.servers.redis import RedisProcess, redis_process
from tests.support.waiting import until
from tollgate.actors.ratelimit.counting.counters import Conditional, Unreachable
from tollgate.actors.ratelimit.counting.windows import LENGTH_S, Unit
from tollgate.actors.ratelimit.decision.response import OK, OVER_LIMIT
from tollgate.actors.ratelimit.rules.descriptors import RateLimitDescriptor, RateLimitRequest
from tollgate.serve.ratelimit.backends.redis import store

MINUTE = NOW_S - NOW_S % 60
RULES = """\
domain: domain
descriptors:
  - {key: key, rate_limit: {unit: minute, requests_per_unit: 10}}
  - {key: second, rate_limit: {unit: second, requests_per_unit: 10}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[RedisProcess]:
    with redis_process() as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def late() -> Iterator[None]:
    """No counter expires while a test looks for it, however slow the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "randbelow", lambda bound: bound - 1)
        yield


@pytest.fixture(scope="module")
def late_front(server: RedisProcess, late: None) -> Iterator[RedisFront]:
    with redis_front(REDIS_URL=server.address, EXPIRATION_JITTER_MAX_SECONDS="3600") as found:
        yield found


@pytest.fixture
def front(server: RedisProcess, late_front: RedisFront) -> RedisFront:
    server.client.flushall()
    return late_front


@pytest.fixture
def exact(server: RedisProcess) -> Iterator[RedisFront]:
    """A front whose counters expire with their windows' length."""
    server.client.flushall()
    with redis_front(REDIS_URL=server.address, EXPIRATION_JITTER_MAX_SECONDS="0") as found:
        yield found


def ask(engine: Engine, text: str, addend: int = 1, *, is_refund: bool = False) -> tuple[int, int]:
    """The code and what remains of one descriptor."""
    descriptor = RateLimitDescriptor(entries(text), hits_addend=addend, is_negative_hits=is_refund)
    (status,) = engine.ask(RateLimitRequest("domain", (descriptor,))).statuses
    return status.code, status.remaining


# Whether partitions are out of reach is not Redis's to say; and where windows of two units begin
# together, they have one counter there (D41).
REDIS_CASES = [
    case for case in CASES if case.id != "D41" and not any("store" in step for step in case.steps)
]


@pytest.mark.parametrize("case", REDIS_CASES, ids=[case.id for case in REDIS_CASES])
def test_redis_answers_as_the_case_says(front: RedisFront, case: Case) -> None:
    policy = replace(case.policy, has_outside_counters=True)
    run = Run(replace(case, policy=policy), front.counters, route=front.route)
    for step in case.steps:
        run.step(step)


def test_counters_stand_there_as_the_reference_writes_them(
    server: RedisProcess, front: RedisFront
) -> None:
    engine = front.engine(RULES)
    ask(engine, "key=value", 3)
    ask(engine, "second=", 2)
    client = server.client
    assert {name: client.get(name) for name in client.scan_iter()} == {
        b"domain_key_value_%d" % MINUTE: b"3",
        b"domain_second__%d" % NOW_S: b"2",
    }
    assert 3_600 < client.ttl(b"domain_key_value_%d" % MINUTE) <= 60 + 3_599
    assert client.ttl(b"domain_second__%d" % NOW_S) <= 1 + 3_599


def test_units_whose_windows_begin_together_share_a_counter(front: RedisFront) -> None:
    assert front.hit("k_", 2, Unit.SECOND, MINUTE) == 2
    assert front.hit("k_", 3, Unit.MINUTE, MINUTE) == 5
    assert front.hit("k_", 1, Unit.SECOND, MINUTE + 1) == 1


def test_the_counts_of_another_service_go_on(server: RedisProcess, front: RedisFront) -> None:
    client, name = server.client, f"domain_key_value_{MINUTE}"
    theirs = client.pipeline(transaction=False)  # as the reference does it
    theirs.incrby(name, 9)
    theirs.expire(name, 360)
    theirs.execute()
    engine = front.engine(RULES)
    assert ask(engine, "key=value") == (OK, 0)
    assert ask(engine, "key=value") == (OVER_LIMIT, 0)
    assert client.incrby(name, 1) == 12


@pytest.mark.parametrize("unit", [Unit.SECOND, Unit.MINUTE, Unit.HOUR, Unit.DAY])
def test_a_counter_expires_with_its_unit(
    server: RedisProcess, exact: RedisFront, unit: Unit
) -> None:
    name = f"k_{NOW_S - NOW_S % LENGTH_S[unit]}"
    exact.hit("k_", unit=unit)
    assert 0 <= LENGTH_S[unit] - server.client.ttl(name) <= 60
    if unit is Unit.HOUR:
        server.client.expire(name, 5)
        exact.hit("k_", unit=unit)
        assert server.client.ttl(name) > 5, "each hit begins it anew"


def test_an_expiry_is_later_by_chance(
    server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "randbelow", randbelow)
    with redis_front(REDIS_URL=server.address, EXPIRATION_JITTER_MAX_SECONDS="100000") as front:
        front.hits([(f"chance{number}_", 1) for number in range(50)], Unit.HOUR)
        names = [f"chance{n}_{NOW_S - NOW_S % 3600}" for n in range(50)]
        expiries = {server.client.ttl(name) for name in names}
    assert len(expiries) > 25
    assert max(expiries) <= 3_600 + 100_000
    assert min(expiries) >= 3_600 - 60


def test_a_look_leaves_no_trace(server: RedisProcess, front: RedisFront) -> None:
    assert front.hit("k_", 0) == 0
    assert server.client.keys() == []
    front.hit("k_", 4)
    assert front.hit("k_", 0) == 4


def test_what_is_given_back_ends_at_zero_and_makes_no_counter(
    server: RedisProcess, front: RedisFront
) -> None:
    name = f"k_{MINUTE}"
    assert front.hit("k_", -3) == 0
    assert not server.client.exists(name)
    assert front.hits([("k_", 5), ("k_", -2), ("k_", 1)]) == [[5, 3, 4]]
    large = 2**53 + 1
    assert front.hits([("large_", large + 2), ("large_", -1)]) == [[large + 2, large + 1]]
    assert front.hit("large_", -large - 2) == 0
    ttl_s = server.client.ttl(name)
    assert front.hit("k_", -9) == 0
    assert server.client.get(name) == b"0"
    assert 0 < server.client.ttl(name) <= ttl_s, "its expiry stays"


def test_a_script_that_redis_has_forgotten_is_loaded_again(
    server: RedisProcess, front: RedisFront
) -> None:
    front.hit("k_", 5)
    assert front.hit("k_", -1) == 4
    server.client.script_flush()
    assert front.hits([("k_", -1), ("a_", 2), ("k_", -1)]) == [[3, 2, 2]]
    server.client.script_flush()
    assert front.hit("k_", -1) == 1


def test_what_is_no_number_is_told_for_that_counter_alone(
    server: RedisProcess, front: RedisFront
) -> None:
    server.client.set(f"bad_{MINUTE}", "text")
    server.client.lpush(f"list_{MINUTE}", "text")
    asked = [("a_", 1), ("bad_", 1), ("bad_", 0), ("bad_", -1), ("list_", 1)]
    ((good, bad, look, back, kind),) = front.hits(asked)
    assert good == 1
    assert "not an integer" in str(bad)
    assert "not an integer" in str(look)
    assert "not an integer" in str(back)
    assert "WRONGTYPE" in str(kind)


def test_a_request_over_a_limit_counts_only_what_is_over(front: RedisFront) -> None:
    end_s = MINUTE + 60
    front.hits([("a_", 9), ("b_", 3)])
    both = [b"2|a_", b"2|b_"]
    batch = [
        Conditional([end_s] * 2, both, [1, 1], [10, 10]),
        Conditional([end_s] * 2, both, [1, 1], [10, 10]),
        Conditional([end_s] * 2, both, [1, -1], [10, None]),
    ]
    (answer,) = front.counters.hit_conditionally({0: batch}, NOW_S).values()
    assert not isinstance(answer, Unreachable)
    # The first has room, the second does not, and what the third gives back it gives all the same.
    assert [list(counts) for counts in answer] == [[10, 4], [11, 4], [12, 3]]
    assert front.hits([("a_", 0), ("b_", 0)]) == [[12, 3]]


def test_a_pipeline_has_a_maximum(server: RedisProcess) -> None:
    server.client.flushall()
    with redis_front(REDIS_URL=server.address, REDIS_PIPELINE_LIMIT="3") as front:
        asked = [(f"k{number}_", number + 1) for number in range(10)]
        assert front.hits(asked) == [list(range(1, 11))]


def test_counters_of_seconds_have_a_server_of_their_own(server: RedisProcess, late: None) -> None:
    server.client.flushall()
    with (
        redis_process(password="p@ss:word") as other,
        redis_front(
            REDIS_URL=server.address,
            REDIS_PERSECOND="true",
            REDIS_PERSECOND_SOCKET_TYPE="tcp",
            REDIS_PERSECOND_URL=other.address,
            REDIS_PERSECOND_AUTH="default:p@ss:word",
        ) as front,
    ):
        engine = front.engine(RULES)
        descriptors = [RateLimitDescriptor(entries(text)) for text in ("key=a", "second=b")]
        engine.ask(RateLimitRequest("domain", tuple(descriptors)))
        assert server.client.keys() == [b"domain_key_a_%d" % MINUTE]
        assert other.client.keys() == [b"domain_second_b_%d" % NOW_S]
        gauges = front.tallies.drain().gauges
        assert gauges["ratelimit.redis_pool.cx_active"] >= 1
        assert gauges["ratelimit.redis_per_second_pool.cx_active"] >= 1
        other.kill()
        (answer,) = engine.decide(RateLimitRequest("domain", tuple(descriptors)))
        assert other.address in str(answer)
        assert server.client.get(f"domain_key_a_{MINUTE}") == b"2"
        until(lambda: front.counters.down == {1}, "no connection to it is left")
