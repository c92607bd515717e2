"""Counters in a Redis of several processes: a cluster, and a master that sentinels watch."""

from collections.abc import Iterator

import pytest
from redis.crc import key_slot

from tests.support.ratelimit.redis_fronts import NOW_S, RedisFront, redis_front
from tests.support.servers.redis_groups import (
    RedisCluster,
    WatchedPair,
    created_cluster,
    redis_cluster,
    watched_pair,
)
from tests.support.waiting import until
from tollgate.actors.ratelimit.counting.counters import Unreachable

MINUTE = NOW_S - NOW_S % 60
ASKED = [(f"k{number}_", number + 1) for number in range(40)]
COUNTS = [addend for _, addend in ASKED]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(redis_cluster, id="four nodes"),
        pytest.param(created_cluster, id="redis-cli's six", marks=pytest.mark.repetition),
    ],
)
def cluster(request: pytest.FixtureRequest) -> Iterator[RedisCluster]:
    with request.param() as found:
        yield found


@pytest.fixture
def empty(cluster: RedisCluster) -> RedisCluster:
    for each in cluster.masters:
        each.client.flushall()
    return cluster


@pytest.mark.parametrize("parallelism", ["1", "0", "2"])
def test_counters_of_a_cluster_are_on_all_its_nodes(empty: RedisCluster, parallelism: str) -> None:
    with redis_front(
        REDIS_TYPE="CLUSTER",
        REDIS_URL=empty.seeds,
        REDIS_CLUSTER_PIPELINE_PARALLELISM=parallelism,
    ) as front:
        assert front.hits(ASKED) == [COUNTS]
        assert front.hits([(text, -1) for text, _ in ASKED]) == [[n - 1 for n in COUNTS]]
        assert front.hits([("a_", 1), ("a_", 2), ("b_", 1), ("a_", 3)]) == [[1, 3, 1, 6]]
    assert empty.counts() == {
        **{f"{text}{MINUTE}".encode(): b"%d" % (n - 1) for text, n in ASKED},
        b"a_%d" % MINUTE: b"6",
        b"b_%d" % MINUTE: b"1",
    }
    assert all(each.client.dbsize() for each in empty.masters)


def test_one_seed_is_enough(empty: RedisCluster) -> None:
    seed = empty.masters[2].address
    with redis_front(REDIS_TYPE="CLUSTER", REDIS_URL=f"127.0.0.1:1,{seed}") as front:
        assert front.hits(ASKED) == [COUNTS]


def test_a_counter_is_followed_when_its_slot_moves(empty: RedisCluster) -> None:
    name = f"moving_{MINUTE}"
    slot = key_slot(name.encode())
    source = empty.owner(name)
    target = next(each for each in empty.masters if each is not source)
    theirs, ours = (each.client.execute_command("CLUSTER", "MYID") for each in (target, source))
    with redis_front(REDIS_TYPE="CLUSTER", REDIS_URL=empty.seeds) as front:
        assert front.hit("moving_", 5) == 5
        target.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ours)
        source.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", theirs)
        source.client.execute_command("MIGRATE", "127.0.0.1", target.port, name, 0, 5_000)
        assert front.hit("moving_") == 6, "the source says whom to ask"
        for each in (target, source, *empty.masters):
            each.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", theirs)
        assert front.hits([("moving_", 1), ("other_", 1)]) == [[7, 1]], "and then: who has it now"
        assert front.hit("moving_") == 8


def test_a_node_that_is_killed_costs_its_own_counters_until_its_replica_has_them(
    empty: RedisCluster,
) -> None:
    with redis_front(REDIS_TYPE="CLUSTER", REDIS_URL=empty.seeds) as front:
        assert front.hits(ASKED) == [COUNTS]
        empty.lose_first()
        (counts,) = front.hits([(text, 0) for text, _ in ASKED])
        lost = [n for n, found in enumerate(counts) if isinstance(found, Unreachable)]
        assert 0 < len(lost) < len(ASKED), "the others are counted"
        assert front.counters.down == {0}

        empty.promote_replica()

        def all_are_counted() -> bool:
            (again,) = front.hits([(text, 1) for text, _ in ASKED])
            return not any(isinstance(found, Unreachable) for found in again)

        until(all_are_counted, "the replica is the master")
        until(lambda: not front.counters.down, "and all of it is there again")


def test_a_cluster_that_is_none_says_so() -> None:
    front = RedisFront(REDIS_TYPE="CLUSTER", REDIS_URL="127.0.0.1:1")
    try:
        assert "refused" in str(front.hit("k_"))
        assert not front.counters.has_begun
    finally:
        front.counters.close()


@pytest.fixture(scope="module")
def pair() -> Iterator[WatchedPair]:
    with watched_pair(password="one", sentinel_password="two") as found:
        yield found


def test_sentinels_want_their_own_password(pair: WatchedPair) -> None:
    front = RedisFront(REDIS_TYPE="SENTINEL", REDIS_URL=pair.url, REDIS_AUTH="one")
    try:
        assert isinstance(front.hit("k_"), Unreachable)
    finally:
        front.counters.close()


def test_who_becomes_the_master_is_followed(pair: WatchedPair) -> None:
    with redis_front(
        REDIS_TYPE="SENTINEL", REDIS_URL=pair.url, REDIS_AUTH="one", REDIS_SENTINEL_AUTH="two"
    ) as front:
        assert front.hit("k_", 5) == 5
        assert front.hit("k_", -1) == 4, "the script is known to the first"
        assert pair.master.client.get(f"k_{MINUTE}") == b"4"
        until(lambda: pair.replica.client.get(f"k_{MINUTE}") == b"4", "the replica has it")
        pair.lose_master()
        assert isinstance(front.hit("k_"), Unreachable)
        found = until(lambda: _number(front.hit("k_")), "the replica has become the master")
        assert found == 5
        assert front.hit("k_", -2) == 3, "and is told the script"
        until(lambda: not front.counters.down, "it is known to be there")


def _number(found: int | Unreachable) -> int:
    return 0 if isinstance(found, Unreachable) else found
