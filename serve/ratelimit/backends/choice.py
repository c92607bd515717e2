"""The choice of the store that holds the counters (part A, "Backends")."""

from tollgate.serve.ratelimit.backends.outside_store import OutsideStore
from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import Backend


def outside_store(settings: Settings) -> OutsideStore | None:
    """The store outside that these settings choose; None where Tollgate's own partitions count."""
    # A client is imported where it is wanted: each is a good part of a start's imports.
    if settings.counting.backend is Backend.KVSTORE:
        from tollgate.serve.ratelimit.backends.redis.store import redis_store

        return redis_store(settings)
    if settings.counting.backend is Backend.ALTCACHE:
        from tollgate.serve.ratelimit.backends.memcached.store import memcached_store

        return memcached_store(settings)
    return None
