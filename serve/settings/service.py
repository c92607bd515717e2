"""The rows about the service itself: its doors, processes, rules, decisions, bounds, statistics,
traces.

A field is a row of the table (`serve/settings/__init__.py` says how to add one). Defaults are the
reference's (B22) unless part A decides otherwise.
"""
# ruff: noqa: RUF009  (`setting` makes a dataclass field, not a default that is computed once)

import os
from dataclasses import dataclass

from tollgate.actors.ratelimit.decision.policy import FailureMode
from tollgate.actors.ratelimit.rules.descriptors import (
    DESCRIPTORS_PER_REQUEST_MAX,
    ENTRIES_PER_DESCRIPTOR_MAX,
    ENTRY_BYTES_MAX,
    REQUEST_BYTES_MAX,
)
from tollgate.serve.settings import choices
from tollgate.serve.settings.rows import hidden, setting
from tollgate.serve.settings.values import (
    PORT_MAX,
    Address,
    Pairs,
    address,
    boolean,
    duration,
    duration_or_zero,
    folder,
    header_name,
    pairs,
    ratio_float32,
    text,
    url_path,
    whole_number,
    words,
)

any_port = whole_number(0, PORT_MAX)
fixed_port = whole_number(1, PORT_MAX)
any_size = whole_number(0, 2**31 - 1)
size = whole_number(1, 2**31 - 1)
any_duration = duration()
FRONTS_MAX = 64


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The HTTP door (B16)."""

    host: str = setting("HOST", text, "0.0.0.0", "address of the HTTP door")
    port: int = setting("PORT", any_port, "8080", "port of the HTTP door; 0: a free one")


@dataclass(frozen=True, slots=True)
class JsonSettings:
    """The JSON door that a front opens itself, past HAProxy (B16)."""

    host: str = setting("JSON_HOST", text, "127.0.0.1", "address of the JSON door's own port")
    port: int = setting("JSON_PORT", any_port, "8083", "the JSON door's own port; 0: a free one")


@dataclass(frozen=True, slots=True)
class DebugSettings:
    """The debug port (B18)."""

    host: str = setting("DEBUG_HOST", text, "127.0.0.1", "address of the debug port")
    port: int = setting("DEBUG_PORT", any_port, "6070", "the debug port; 0: a free one")
    tracing_key: str = setting(
        "DEBUG_TRACING_KEY",
        text,
        "",
        "key for tracing and for counters; empty: nobody may",
        show=hidden,
    )


@dataclass(frozen=True, slots=True)
class GrpcSettings:
    """The gRPC door (B15). Empty paths: none."""

    host: str = setting("GRPC_HOST", text, "127.0.0.1", "address of the gRPC door")
    port: int = setting("GRPC_PORT", any_port, "8081", "port of the gRPC door; 0: a free one")
    uds: str = setting("GRPC_UDS", text, "", "unix socket of the gRPC door, instead of a port")
    connection_age_max_s: float = setting(
        "GRPC_MAX_CONNECTION_AGE", any_duration, "24h", "age at which a connection is closed"
    )
    connection_age_grace_s: float = setting(
        "GRPC_MAX_CONNECTION_AGE_GRACE", any_duration, "1h", "time its calls then have to end"
    )
    has_tls: bool = setting("GRPC_SERVER_USE_TLS", boolean, "false", "TLS on the gRPC door")
    tls_cert: str = setting("GRPC_SERVER_TLS_CERT", text, "", "file of the certificate chain")
    tls_key: str = setting("GRPC_SERVER_TLS_KEY", text, "", "file of the private key")
    client_ca: str = setting("GRPC_CLIENT_TLS_CACERT", text, "", "file of the clients' CA: mTLS")
    client_san: str = setting(
        "GRPC_CLIENT_TLS_SAN", text, "", "DNS name that client certificates must be good for"
    )
    front: choices.GrpcFront = setting(
        "GRPC_FRONT", choices.grpc_front, "auto", "implementation that listens for gRPC"
    )
    fronts: int = setting(
        "GRPC_FRONTS", whole_number(0, FRONTS_MAX), "1", "front processes; 0: one per core"
    )
    io_threads: int = setting(
        "GRPC_IO_THREADS", whole_number(1, 256), "1", "I/O threads of the native gRPC front"
    )

    @property
    def processes(self) -> int:
        """The front processes, which share the ports of gRPC and JSON."""
        return self.fronts or min(cores(), FRONTS_MAX)

    @property
    def has_peers(self) -> bool:
        """True when a front process is not the only one."""
        return self.processes > 1


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The log."""

    level: choices.LogLevel = setting(
        "LOG_LEVEL", choices.log_level, "WARN", "lowest level that is logged"
    )
    format: choices.LogFormat = setting(
        "LOG_FORMAT", choices.log_format, "text", "layout of a line"
    )


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """The processes of one machine, and the ports that Ray and Serve open on it."""

    data: str = setting("TOLLGATE_DATA", folder, "./data", "folder of what outlives a stop")
    drain_grace_s: float = setting(
        "DRAIN_GRACE", any_duration, "10s", "longest wait for calls in flight at a stop"
    )
    ray_dashboard_port: int = setting(
        "RAY_DASHBOARD_PORT", fixed_port, "8265", "port of the Ray dashboard"
    )
    has_ray_dashboard: bool = setting(
        "RAY_DASHBOARD_ENABLED", boolean, "true", "start the Ray dashboard, a dozen processes"
    )
    haproxy_metrics_port: int = setting(
        "HAPROXY_METRICS_PORT", fixed_port, "9101", "port of HAProxy's metrics"
    )
    haproxy_stats_port: int = setting(
        "HAPROXY_STATS_PORT", fixed_port, "8404", "port of HAProxy's own page"
    )
    fallback_http_port: int = setting(
        "SERVE_FALLBACK_HTTP_PORT", fixed_port, "8500", "port of Serve's fallback proxy"
    )
    replica_port_min: int = setting(
        "SERVE_REPLICA_PORT_MIN", fixed_port, "30000", "lowest port of a replica"
    )
    replica_port_max: int = setting(
        "SERVE_REPLICA_PORT_MAX", fixed_port, "30100", "highest port of a replica"
    )


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """The place of the rules, and the times at which they are read again (B20)."""

    source: choices.RuleSource = setting(
        "CONFIG_TYPE", choices.rule_source, "FILE", "files, or an xDS server"
    )
    root: str = setting("RUNTIME_ROOT", text, "/srv/runtime_data/current", "root of the rules")
    subdirectory: str = setting("RUNTIME_SUBDIRECTORY", text, "", "folder below the root")
    app_directory: str = setting("RUNTIME_APPDIRECTORY", text, "config", "folder of the files")
    ignores_dot_files: bool = setting(
        "RUNTIME_IGNOREDOTFILES", boolean, "false", "leave out files that begin with a dot"
    )
    watches_root: bool = setting(
        "RUNTIME_WATCH_ROOT", boolean, "true", "reload when the root is swapped as a symlink"
    )
    merges_domains: bool = setting(
        "MERGE_DOMAIN_CONFIG", boolean, "false", "several files may define one domain"
    )
    starts_without_rules: bool = setting(
        "FORCE_START_WITHOUT_INITIAL_CONFIG", boolean, "false", "do not wait for the first rules"
    )
    decides_health: bool = setting(
        "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", boolean, "false", "unhealthy without rules"
    )
    poll_interval_s: float = setting(
        "RULES_POLL_INTERVAL", duration("10ms", "1h"), "250ms", "time between looks at the files"
    )

    @property
    def need_to_be_there(self) -> bool:
        """True when nobody is healthy before the first rules: by the operator's word, or because a
        control plane may take as long as it likes, and is waited for."""
        is_waited_for = self.source is choices.RuleSource.XDS and not self.starts_without_rules
        return self.decides_health or is_waited_for


@dataclass(frozen=True, slots=True)
class DecisionSettings:
    """The content of a decision (B7, B12 to B14)."""

    near_limit_ratio: float = setting(
        "NEAR_LIMIT_RATIO", ratio_float32, "0.8", "share of a limit from which a hit is near it"
    )
    is_shadow: bool = setting("SHADOW_MODE", boolean, "false", "the overall code is always OK")
    is_quota: bool = setting("QUOTA_MODE", boolean, "false", "every rule is a quota")
    has_dynamic_metadata: bool = setting(
        "RESPONSE_DYNAMIC_METADATA", boolean, "false", "replies carry dynamic metadata"
    )
    has_headers: bool = setting(
        "LIMIT_RESPONSE_HEADERS_ENABLED", boolean, "false", "replies carry limit headers"
    )
    limit_header: str = setting(
        "LIMIT_LIMIT_HEADER", header_name, "RateLimit-Limit", "header: the limit"
    )
    remaining_header: str = setting(
        "LIMIT_REMAINING_HEADER", header_name, "RateLimit-Remaining", "header: hits that remain"
    )
    reset_header: str = setting(
        "LIMIT_RESET_HEADER", header_name, "RateLimit-Reset", "header: seconds to the next window"
    )
    has_calendar_months: bool = setting(
        "USE_CALENDAR_MONTH_RATE_LIMIT", boolean, "false", "a month is a calendar month, UTC"
    )
    failure_mode: FailureMode = setting(
        "FAILURE_MODE", choices.failure_mode, "error", "reply when the counters do not answer"
    )
    error_status_codes: choices.ErrorStatusCodes = setting(
        "ERROR_STATUS_CODES", choices.error_status_codes, "compatible", "statuses of errors"
    )


@dataclass(frozen=True, slots=True)
class BoundSettings:
    """Beyond a bound: a clear error, never memory growth (part A, "Bounds")."""

    descriptors_per_request_max: int = setting(
        "DESCRIPTORS_PER_REQUEST_MAX",
        size,
        str(DESCRIPTORS_PER_REQUEST_MAX),
        "descriptors in one request",
    )
    entries_per_descriptor_max: int = setting(
        "ENTRIES_PER_DESCRIPTOR_MAX",
        size,
        str(ENTRIES_PER_DESCRIPTOR_MAX),
        "entries in one descriptor",
    )
    entry_bytes_max: int = setting(
        "ENTRY_BYTES_MAX", size, str(ENTRY_BYTES_MAX), "bytes of a domain, a key or a value"
    )
    request_bytes_max: int = setting(
        "REQUEST_BYTES_MAX", size, str(REQUEST_BYTES_MAX), "bytes of a request"
    )
    plan_memo_entries_max: int = setting(
        "PLAN_MEMO_ENTRIES_MAX", size, "65536", "remembered plans of a front"
    )
    counters_per_partition_max: int = setting(
        "COUNTERS_PER_PARTITION_MAX", size, "1000000", "counters in one partition"
    )
    dynamic_series_max: int = setting(
        "DYNAMIC_SERIES_MAX", any_size, "10000", "series made by values of requests"
    )


@dataclass(frozen=True, slots=True)
class CountingSettings:
    """The counters and their owners (part A, "Backends"; B6, B8, B9)."""

    backend: choices.Backend = setting("BACKEND_TYPE", choices.backend, "actors", "who counts")
    place: choices.Counting = setting(
        "COUNTING", choices.counting, "lent", "fronts count what they borrow, or ask for each hit"
    )
    shadow: choices.Backend | None = setting(
        "COUNTING_SHADOW",
        choices.counting_shadow,
        "none",
        "who counts beside that, for nothing but a comparison",
    )
    partitions: int = setting(
        "COUNTER_PARTITIONS", whole_number(1, 1_024), "2", "actors that share the counters"
    )
    deadline_s: float = setting(
        "COUNTER_DEADLINE", duration("1ms", "1m"), "15ms", "longest wait for the counters"
    )
    term_s: float = setting(
        "COUNTER_TERM", duration("1s", "20s"), "2s", "silence after which a front's loans fall back"
    )
    when_full: choices.WhenFull = setting(
        "COUNTERS_WHEN_FULL", choices.when_full, "evict", "new counters when a partition is full"
    )
    snapshot_interval_s: float = setting(
        "COUNTERS_SNAPSHOT_INTERVAL",
        duration_or_zero("50ms", "1h"),
        "1s",
        "time between writes of counters to disk; 0s: they end with their process",
    )
    cache_key_prefix: str = setting("CACHE_KEY_PREFIX", text, "", "prefix of counter keys")
    expiration_jitter_max_s: int = setting(
        "EXPIRATION_JITTER_MAX_SECONDS",
        any_size,
        "300",
        "random seconds, fewer than this, added to the expiry of a counter in a store outside",
    )
    local_cache_bytes: int = setting(
        "LOCAL_CACHE_SIZE_IN_BYTES",
        whole_number(0, 2**40),
        "0",
        "memory for keys known to be over limit; 0: off",
        also=("LocalCacheSizeInBytes",),
    )
    stops_when_over_limit: bool = setting(
        "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
        boolean,
        "false",
        "count nothing of a request that is over a limit",
    )
    checks_backend: bool = setting(
        "KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION",
        boolean,
        "false",
        "unhealthy while a part of the counters is out of reach",
    )

    def is_counted_in(self, place: choices.Backend) -> bool:
        """True where this place counts, be it for a comparison."""
        return place in (self.backend, self.shadow)


@dataclass(frozen=True, slots=True)
class StatisticsSettings:
    """Statistics and their destination (part A, "Statistics transports"; B19)."""

    is_disabled: bool = setting("DISABLE_STATS", boolean, "false", "no statistics at all")
    uses_statsd: bool = setting("USE_STATSD", boolean, "true", "send to a statsd server")
    statsd_host: str = setting("STATSD_HOST", text, "localhost", "host of the statsd server")
    statsd_port: int = setting("STATSD_PORT", fixed_port, "8125", "port of the statsd server")
    statsd_protocol: choices.StatsdProtocol = setting(
        "STATSD_PROTOCOL", choices.statsd_protocol, "tcp", "way to the statsd server: tcp, udp"
    )
    flush_interval_s: float = setting(
        "STATS_FLUSH_INTERVAL", duration("1ms"), "10s", "time between two flushes"
    )
    extra_tags: Pairs = setting("EXTRA_TAGS", pairs(":"), "", "tags of every statistic, k:v,k:v")
    uses_agent_statsd: bool = setting("USE_AGENT_STATSD", boolean, "false", "send tagged metrics")
    mogrifier_names: tuple[str, ...] = setting(
        "AGENT_STATSD_MOGRIFIERS",
        words,
        "",
        "names of the mogrifiers, in order",
        also=("USE_AGENT_STATSD_MOGRIFIERS",),
    )
    uses_pullmetrics: bool = setting("USE_PULLMETRICS", boolean, "false", "serve a metrics page")
    pullmetrics_addr: Address = setting(
        "PULLMETRICS_ADDR", address, ":9090", "address of the metrics page; port 0: a free one"
    )
    pullmetrics_path: str = setting(
        "PULLMETRICS_PATH", url_path, "/metrics", "path of the metrics page"
    )
    pullmetrics_mapper: str = setting(
        "PULLMETRICS_MAPPER_YAML", text, "", "file that maps statistics to metrics"
    )
    is_response_time_in_ms: bool = setting(
        "PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS", boolean, "false", "response times in ms"
    )

    @property
    def transport(self) -> choices.Transport:
        """The one transport of statistics; two at once are refused at the start (B22)."""
        if self.is_disabled:
            return choices.Transport.DISABLED
        if self.uses_agent_statsd:
            return choices.Transport.AGENT_STATSD
        if self.uses_pullmetrics:
            return choices.Transport.PULLMETRICS
        return choices.Transport.STATSD if self.uses_statsd else choices.Transport.STDOUT
