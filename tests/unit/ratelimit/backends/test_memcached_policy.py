"""Settings that mean something else where Memcached counts (B9, B11)."""

import pytest

from tollgate.serve.ratelimit.engine import decision_policy
from tollgate.serve.settings import Settings

STOP = {"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT": "true"}
REDIS = {"REDIS_URL": "redis:6379", "REDIS_SOCKET_TYPE": "tcp"}
MEMCACHED = {"BACKEND_TYPE": "memcache", "MEMCACHE_HOST_PORT": "cache:11211"}


@pytest.mark.parametrize(
    ("environ", "stops"),
    [({}, True), (REDIS, True), (MEMCACHED, False)],
    ids=["own counters", "Redis", "Memcached"],
)
def test_nothing_is_held_back_with_memcached(environ: dict[str, str], stops: bool) -> None:
    policy = decision_policy(Settings.from_environment(STOP | environ))
    assert policy.stops_when_over is stops
    assert policy.has_outside_counters is bool(environ)
