"""Redis as a store of counters: out of the settings, what leads to it ("Redis" in part A)."""

from functools import partial
from secrets import randbelow
from ssl import create_default_context

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.routes import per_second_apart, spread_over
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.backends.outside_store import OutsideStore
from tollgate.serve.ratelimit.backends.redis.cluster import ClusterServer
from tollgate.serve.ratelimit.backends.redis.commands import Naming
from tollgate.serve.ratelimit.backends.redis.connections import (
    ConnectionCounts,
    connection_options,
    connection_pool,
)
from tollgate.serve.ratelimit.backends.redis.counters import Patience, RedisCounters, WatchedServer
from tollgate.serve.ratelimit.backends.redis.server import RedisServer, SingleServer
from tollgate.serve.settings import Settings
from tollgate.serve.settings.checks import has_tls_to_redis, redis_place
from tollgate.serve.settings.outside.kvstore import KvstorePersecondSettings, KvstoreSettings
from tollgate.serve.settings.outside.redis_urls import Layout, RedisEndpoint

POOL, PER_SECOND_POOL = "ratelimit.redis_pool", "ratelimit.redis_per_second_pool"


def redis_store(settings: Settings) -> OutsideStore:
    """The store of these settings. Nothing is opened yet."""
    place = f"Redis at {redis_place(settings, settings.kvstore)}"
    if not settings.persecond.is_on:
        return OutsideStore(place, 1, spread_over(1), partial(open_counters, settings))
    place = f"{place}, and for seconds at {redis_place(settings, settings.persecond)}"
    return OutsideStore(place, 2, per_second_apart, partial(open_counters, settings))


def check_certificates(settings: Settings) -> None:
    """Read the files of a Redis over TLS. Raises OSError for one that cannot be used."""
    if not has_tls_to_redis(settings):
        return
    redis = settings.kvstore
    context = create_default_context(cafile=redis.tls_ca or None)
    if redis.tls_cert:
        context.load_cert_chain(redis.tls_cert, redis.tls_key)


def open_counters(settings: Settings, clock: Clock, tallies: Tallies) -> RedisCounters:
    """A process's way to its counters, which begins to reach for them."""
    servers = [_watched(settings, settings.kvstore, POOL, tallies)]
    if settings.persecond.is_on:
        servers.append(_watched(settings, settings.persecond, PER_SECOND_POOL, tallies))
    naming = Naming(
        has_calendar_months=settings.decision.has_calendar_months,
        jitter_max_s=settings.counting.expiration_jitter_max_s,
        draw=randbelow,
    )
    redis = settings.kvstore
    patience = Patience(redis.first_pause_s, redis.pause_max_s, redis.gives_up_after_s)
    counters = RedisCounters(servers, naming, patience, clock)
    counters.start()
    return counters


def _watched(
    settings: Settings,
    server: KvstoreSettings | KvstorePersecondSettings,
    scope: str,
    tallies: Tallies,
) -> WatchedServer:
    counts = ConnectionCounts(scope, tallies)
    endpoint = redis_place(settings, server)
    return WatchedServer(str(endpoint), _server(settings, server, counts), counts)


def _server(
    settings: Settings,
    server: KvstoreSettings | KvstorePersecondSettings,
    counts: ConnectionCounts,
) -> RedisServer:
    endpoint = redis_place(settings, server)
    options = connection_options(settings.kvstore, server, endpoint)

    def opened(place: RedisEndpoint) -> SingleServer:
        return SingleServer(
            connection_pool(options, place, server, counts),
            pipeline_max=server.pipeline_max,
            closes_on_readonly=settings.kvstore.closes_on_readonly,
        )

    if server.layout is not Layout.CLUSTER:
        return opened(endpoint)
    # 0: as many as there are connections; more could not be at work at once.
    parallelism = min(server.parallelism or server.pool_size, server.pool_size)
    return ClusterServer(
        lambda address: opened(RedisEndpoint(addresses=(address,))),
        endpoint.addresses,
        parallelism,
    )
