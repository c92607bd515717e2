"""The choice of the store that holds the counters (part A, "Backends")."""

from collections.abc import Callable, Mapping

from tollgate.serve.ratelimit.backends.memcached_store import memcached_store
from tollgate.serve.ratelimit.backends.outside_store import OutsideStore
from tollgate.serve.ratelimit.backends.redis import redis_store
from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import Backend

_STORES: Mapping[Backend, Callable[[Settings], OutsideStore]] = {
    Backend.ALTCACHE: memcached_store,
    Backend.KVSTORE: redis_store,
}


def outside_store(settings: Settings) -> OutsideStore | None:
    """The store outside that these settings choose; None where Tollgate's own partitions count."""
    make = _STORES.get(settings.counting.backend)
    return None if make is None else make(settings)
