"""The rows about servers that Tollgate connects to: xDS, the stores that count, the span collector.

A field is a row of the table (`serve/settings/__init__.py` says how to add one). Defaults are the
reference's (specification, B22).
"""
# ruff: noqa: RUF009  (`setting` makes a dataclass field, not a default that is computed once)

from dataclasses import dataclass

from tollgate.serve.settings import choices
from tollgate.serve.settings.rows import hidden, setting, without_credentials
from tollgate.serve.settings.values import (
    Address,
    Pairs,
    boolean,
    duration,
    number,
    pairs,
    peers,
    srv_name,
    text,
    waiting_pool,
    whole_number,
)

any_size = whole_number(0, 2**31 - 1)
connections = whole_number(1, 65_536)
parallelism = whole_number(0, 65_536)
any_duration = duration()


@dataclass(frozen=True, slots=True)
class XdsSettings:
    """The configuration management server (B20)."""

    node_id: str = setting("CONFIG_GRPC_XDS_NODE_ID", text, "default", "node id")
    node_metadata: Pairs = setting(
        "CONFIG_GRPC_XDS_NODE_METADATA", pairs("="), "", "node metadata, k=v,k=v"
    )
    server_url: str = setting("CONFIG_GRPC_XDS_SERVER_URL", text, "localhost:18000", "the server")
    connect_retry_interval_s: float = setting(
        "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", any_duration, "3s", "time between tries"
    )
    additional_headers: Pairs = setting(
        "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
        pairs(":"),
        "",
        "request headers, k:v,k:v",
        show=hidden,
    )
    has_tls: bool = setting("CONFIG_GRPC_XDS_SERVER_USE_TLS", boolean, "false", "TLS to it")
    client_cert: str = setting("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", text, "", "our certificate")
    client_key: str = setting("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", text, "", "our private key")
    server_ca: str = setting("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", text, "", "CA of the server")
    server_san: str = setting("CONFIG_GRPC_XDS_SERVER_TLS_SAN", text, "", "name of the server")
    backoff_initial_s: float = setting(
        "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", any_duration, "10s", "first pause before a retry"
    )
    backoff_max_s: float = setting(
        "XDS_CLIENT_BACKOFF_MAX_INTERVAL", any_duration, "60s", "longest pause before a retry"
    )
    backoff_factor: float = setting(
        "XDS_CLIENT_BACKOFF_RANDOM_FACTOR", number(0, 1_000), "0.5", "growth of the pauses"
    )
    has_backoff_jitter: bool = setting(
        "XDS_CLIENT_BACKOFF_JITTER", boolean, "true", "pauses vary at random"
    )
    message_bytes_max: int = setting(
        "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", any_size, "0", "largest message; 0: 4 MiB"
    )


@dataclass(frozen=True, slots=True)
class KvstoreSettings:
    """The key-value store (B6, B9, B10, 3I)."""

    socket_type: choices.SocketType = setting(
        "KVSTORE_SOCKET_TYPE", choices.socket_type, "unix", "how the store is reached"
    )
    type: choices.StoreType = setting(
        "KVSTORE_TYPE", choices.store_type, "SINGLE", "how the store is laid out"
    )
    url: str = setting(
        "KVSTORE_URL",
        text,
        "/var/run/nutcracker/ratelimit.sock",
        "the store; setting it selects BACKEND_TYPE=kvstore",
        show=without_credentials,
    )
    pool_size: int = setting("KVSTORE_POOL_SIZE", connections, "10", "connections")
    auth: str = setting("KVSTORE_AUTH", text, "", "password, or user:password", show=hidden)
    sentinel_auth: str = setting(
        "KVSTORE_SENTINEL_AUTH", text, "", "the same, for the sentinels", show=hidden
    )
    has_tls: bool = setting("KVSTORE_TLS", boolean, "false", "TLS to the store")
    client_cert: str = setting("KVSTORE_TLS_CLIENT_CERT", text, "", "our certificate")
    client_key: str = setting("KVSTORE_TLS_CLIENT_KEY", text, "", "our private key")
    server_ca: str = setting("KVSTORE_TLS_CACERT", text, "", "CA of the store")
    skips_hostname_check: bool = setting(
        "KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION", boolean, "false", "any host name will do"
    )
    pipeline_window_s: float = setting(
        "KVSTORE_PIPELINE_WINDOW", any_duration, "0", "time to gather commands; 0: none"
    )
    pipeline_limit: int = setting("KVSTORE_PIPELINE_LIMIT", any_size, "0", "has no effect")
    cluster_parallelism: int = setting(
        "KVSTORE_CLUSTER_PIPELINE_PARALLELISM",
        parallelism,
        "1",
        "key groups at once; 0: as the pool",
    )
    pool_on_empty: str = setting(
        "KVSTORE_POOL_ON_EMPTY_BEHAVIOR", waiting_pool, "WAIT", "an empty pool waits (I04)"
    )
    timeout_s: float = setting("KVSTORE_TIMEOUT", any_duration, "10s", "longest wait for a reply")
    checks_connection: bool = setting(
        "KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION", boolean, "false", "unhealthy without a connection"
    )
    startup_interval_s: float = setting(
        "KVSTORE_STARTUP_INITIAL_INTERVAL", any_duration, "1s", "first pause between tries (I01)"
    )
    startup_interval_max_s: float = setting(
        "KVSTORE_STARTUP_MAX_INTERVAL", any_duration, "30s", "longest pause between tries"
    )
    startup_elapsed_max_s: float = setting(
        "KVSTORE_STARTUP_MAX_ELAPSED_TIME", any_duration, "0", "time to give up after; 0: never"
    )
    closes_on_readonly: bool = setting(
        "KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR", boolean, "false", "reconnect on READONLY"
    )


@dataclass(frozen=True, slots=True)
class PersecondSettings:
    """The second key-value store, for limits per second alone (B10)."""

    is_used: bool = setting(
        "KVSTORE_PERSECOND", boolean, "false", "a second store for limits per second"
    )
    socket_type: choices.SocketType = setting(
        "KVSTORE_PERSECOND_SOCKET_TYPE", choices.socket_type, "unix", "how it is reached"
    )
    type: choices.StoreType = setting(
        "KVSTORE_PERSECOND_TYPE", choices.store_type, "SINGLE", "how it is laid out"
    )
    url: str = setting(
        "KVSTORE_PERSECOND_URL",
        text,
        "/var/run/nutcracker/ratelimitpersecond.sock",
        "the second store",
        show=without_credentials,
    )
    pool_size: int = setting("KVSTORE_PERSECOND_POOL_SIZE", connections, "10", "connections")
    auth: str = setting(
        "KVSTORE_PERSECOND_AUTH", text, "", "password, or user:password", show=hidden
    )
    sentinel_auth: str = setting(
        "KVSTORE_PERSECOND_SENTINEL_AUTH", text, "", "the same, for the sentinels", show=hidden
    )
    has_tls: bool = setting("KVSTORE_PERSECOND_TLS", boolean, "false", "TLS to the store")
    pipeline_window_s: float = setting(
        "KVSTORE_PERSECOND_PIPELINE_WINDOW", any_duration, "0", "time to gather commands; 0: none"
    )
    pipeline_limit: int = setting(
        "KVSTORE_PERSECOND_PIPELINE_LIMIT", any_size, "0", "has no effect"
    )
    cluster_parallelism: int = setting(
        "KVSTORE_PERSECOND_CLUSTER_PIPELINE_PARALLELISM",
        parallelism,
        "1",
        "key groups at once; 0: as the pool",
    )
    pool_on_empty: str = setting(
        "KVSTORE_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", waiting_pool, "WAIT", "an empty pool waits"
    )
    timeout_s: float = setting(
        "KVSTORE_PERSECOND_TIMEOUT", any_duration, "10s", "longest wait for a reply"
    )


@dataclass(frozen=True, slots=True)
class AltcacheSettings:
    """The distributed cache (B11)."""

    host_port: tuple[Address, ...] = setting(
        "ALTCACHE_HOST_PORT", peers, "", "nodes, host:port,host:port"
    )
    srv: str = setting("ALTCACHE_SRV", srv_name, "", "SRV record of the nodes, instead of a list")
    srv_refresh_s: float = setting(
        "ALTCACHE_SRV_REFRESH", any_duration, "0", "time between look-ups of it; 0: once"
    )
    idle_connections_max: int = setting(
        "ALTCACHE_MAX_IDLE_CONNS", parallelism, "2", "idle connections per node"
    )
    has_tls: bool = setting("ALTCACHE_TLS", boolean, "false", "TLS to the nodes")
    client_cert: str = setting("ALTCACHE_TLS_CLIENT_CERT", text, "", "our certificate")
    client_key: str = setting("ALTCACHE_TLS_CLIENT_KEY", text, "", "our private key")
    server_ca: str = setting("ALTCACHE_TLS_CACERT", text, "", "CA of the nodes")
    skips_hostname_check: bool = setting(
        "ALTCACHE_TLS_SKIP_HOSTNAME_VERIFICATION", boolean, "false", "any host name will do"
    )


@dataclass(frozen=True, slots=True)
class TracingSettings:
    """Spans; where they go is said by the OTEL_* variables (B20, "Tracing")."""

    is_enabled: bool = setting("TRACING_ENABLED", boolean, "false", "send spans")
    protocol: choices.TracingProtocol = setting(
        "TRACING_EXPORTER_PROTOCOL", choices.tracing_protocol, "http", "how they are sent"
    )
    service_name: str = setting("TRACING_SERVICE_NAME", text, "RateLimit", "service.name")
    service_namespace: str = setting("TRACING_SERVICE_NAMESPACE", text, "", "service.namespace")
    service_instance_id: str = setting(
        "TRACING_SERVICE_INSTANCE_ID", text, "", "service.instance.id; empty: a random UUID"
    )
    sampling_rate: float = setting(
        "TRACING_SAMPLING_RATE", number(0, 1), "1", "share of the calls that are traced"
    )
