"""Settings that have an effect only beside others: what they need, and what is said without it.

For whoever reads an environment: a start takes such a setting silently, since it does no harm.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from tollgate.serve.settings import Settings
from tollgate.serve.settings.checks import has_tls_to_redis
from tollgate.serve.settings.choices import Backend, RuleSource, Transport
from tollgate.serve.settings.outside.mogrifiers import PREFIX as MOGRIFIER_PREFIX
from tollgate.serve.settings.outside.redis_urls import Layout
from tollgate.serve.settings.values import BadValueError


@dataclass(frozen=True, slots=True)
class Condition:
    """Settings whose canonical names match `names` (each ends in `*` or is whole), but for those in
    `but`, need something. `without`: what is the case when they do not have it."""

    names: tuple[str, ...]
    is_met: Callable[[Settings], bool]
    without: str
    but: tuple[str, ...] = ()

    def concerns(self, name: str) -> bool:
        """Whether the setting of this canonical name is one of them."""
        return name not in self.but and any(
            name.startswith(each[:-1]) if each.endswith("*") else name == each
            for each in self.names
        )


def _counts_in(*backends: Backend) -> Callable[[Settings], bool]:
    return lambda settings: any(map(settings.counting.is_counted_in, backends))


def _sends_to(*transports: Transport) -> Callable[[Settings], bool]:
    return lambda settings: settings.statistics.transport in transports


def _has_tls_to_redis(settings: Settings) -> bool:
    try:
        return has_tls_to_redis(settings)
    except BadValueError:
        return True  # (the URL is refused, and what it would mean is not known)


CONDITIONS = (
    Condition(
        ("KVSTORE_*",),
        _counts_in(Backend.KVSTORE),
        "counters are not in Redis (BACKEND_TYPE)",
        but=("KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION", "KVSTORE_URL"),
    ),
    Condition(
        ("KVSTORE_URL",),
        _counts_in(Backend.KVSTORE),
        "BACKEND_TYPE says that counters are elsewhere",
    ),
    Condition(
        ("KVSTORE_PERSECOND_*",),
        lambda settings: settings.persecond.is_on,
        "there is no second store for limits per second (KVSTORE_PERSECOND)",
    ),
    Condition(
        ("KVSTORE_TLS_*",),
        _has_tls_to_redis,
        "there is no TLS to Redis, all goes in clear (KVSTORE_TLS, or rediss:// in the URL)",
    ),
    Condition(
        ("KVSTORE_SENTINEL_AUTH",),
        lambda settings: settings.kvstore.layout is Layout.SENTINEL,
        "there are no sentinels (KVSTORE_TYPE)",
    ),
    Condition(
        ("KVSTORE_PERSECOND_SENTINEL_AUTH",),
        lambda settings: settings.persecond.layout is Layout.SENTINEL,
        "there are no sentinels (KVSTORE_PERSECOND_TYPE)",
    ),
    Condition(
        ("KVSTORE_CLUSTER_PIPELINE_PARALLELISM",),
        lambda settings: settings.kvstore.layout is Layout.CLUSTER,
        "there is no cluster (KVSTORE_TYPE)",
    ),
    Condition(
        ("KVSTORE_PERSECOND_CLUSTER_PIPELINE_PARALLELISM",),
        lambda settings: settings.persecond.layout is Layout.CLUSTER,
        "there is no cluster (KVSTORE_PERSECOND_TYPE)",
    ),
    Condition(
        ("KVSTORE_PIPELINE_WINDOW", "KVSTORE_PERSECOND_PIPELINE_WINDOW"),
        lambda settings: False,
        "commands are sent as soon as there are some, many at once",
    ),
    Condition(
        ("ALTCACHE_*",),
        _counts_in(Backend.ALTCACHE),
        "counters are not in Memcached (BACKEND_TYPE)",
    ),
    Condition(
        ("ALTCACHE_TLS_*",),
        lambda settings: settings.memcached.has_tls,
        "there is no TLS to Memcached (ALTCACHE_TLS)",
    ),
    Condition(
        ("ALTCACHE_SRV_REFRESH",),
        lambda settings: settings.memcached.srv != "",
        "nothing is looked up (ALTCACHE_SRV)",
    ),
    Condition(
        ("EXPIRATION_JITTER_MAX_SECONDS",),
        _counts_in(Backend.KVSTORE, Backend.ALTCACHE),
        "counters are in Tollgate's own actors, which know when a window ends",
    ),
    Condition(
        ("COUNTING", "COUNTER_*", "COUNTERS_*"),
        _counts_in(Backend.ACTORS),
        "counters are in a store outside (BACKEND_TYPE)",
    ),
    Condition(
        ("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",),
        lambda settings: settings.counting.backend is not Backend.ALTCACHE,
        "with Memcached nothing is held back, as in the reference",
    ),
    Condition(
        ("CONFIG_GRPC_XDS_*", "XDS_CLIENT_*"),
        lambda settings: settings.rules.source is RuleSource.XDS,
        "rules are read from files (CONFIG_TYPE)",
    ),
    Condition(
        ("RUNTIME_*", "RULES_POLL_INTERVAL"),
        lambda settings: settings.rules.source is RuleSource.FILE,
        "rules come over xDS (CONFIG_TYPE)",
    ),
    Condition(
        ("STATSD_*",),
        _sends_to(Transport.STATSD, Transport.AGENT_STATSD),
        "statistics are not sent to a statsd server",
    ),
    Condition(
        ("AGENT_STATSD_*",),
        _sends_to(Transport.AGENT_STATSD),
        "statistics are not sent to DogStatsD (USE_AGENT_STATSD)",
    ),
    Condition(
        ("PULLMETRICS_*",),
        _sends_to(Transport.PULLMETRICS),
        "there is no metrics page (USE_PULLMETRICS)",
    ),
    Condition(
        ("PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS",),
        lambda settings: not settings.statistics.pullmetrics_mapper,
        "a file maps statistics to metrics (PULLMETRICS_MAPPER_YAML)",
    ),
    Condition(
        ("STATS_FLUSH_INTERVAL", "EXTRA_TAGS", "DYNAMIC_SERIES_MAX"),
        lambda settings: not settings.statistics.is_disabled,
        "there are no statistics (DISABLE_STATS)",
    ),
    Condition(
        ("TRACING_*",),
        lambda settings: settings.tracing.is_on,
        "nothing is traced (TRACING_ENABLED)",
        but=("TRACING_ENABLED",),
    ),
    Condition(
        ("LIMIT_LIMIT_HEADER", "LIMIT_REMAINING_HEADER", "LIMIT_RESET_HEADER"),
        lambda settings: settings.decision.has_headers,
        "replies have no such headers (LIMIT_RESPONSE_HEADERS_ENABLED)",
    ),
    Condition(
        ("GRPC_SERVER_TLS_*",),
        lambda settings: settings.grpc.has_tls,
        "there is no TLS on the gRPC door (GRPC_SERVER_USE_TLS)",
    ),
    Condition(
        ("GRPC_HOST", "GRPC_PORT"),
        lambda settings: settings.grpc.uds == "",
        "the gRPC door is a unix socket (GRPC_UDS)",
    ),
)


_NAME = re.compile(r"\(([A-Z_]+)\)")


def missing_condition(settings: Settings, name: str) -> str:
    """Why the setting of this canonical name has no effect, with names as the environment would
    spell them; empty when it has one."""
    without = next(
        (each.without for each in CONDITIONS if each.concerns(name) and not each.is_met(settings)),
        "",
    )
    if without or not name.startswith(MOGRIFIER_PREFIX):
        return _NAME.sub(lambda found: f"({settings.spelled(found[1])})", without)
    listed = {each.upper() for each in settings.statistics.mogrifier_names}
    is_listed = name.removeprefix(MOGRIFIER_PREFIX).rpartition("_")[0] in listed
    list_name = settings.spelled("AGENT_STATSD_MOGRIFIERS")
    return "" if is_listed else f"no such mogrifier is listed ({list_name})"
