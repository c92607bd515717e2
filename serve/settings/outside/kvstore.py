"""The rows about Redis, where it holds the counters (B6, B9, B10; BACKEND_TYPE=kvstore)."""
# ruff: noqa: RUF009  (`setting` makes a dataclass field, not a default that is computed once)

from dataclasses import dataclass

from tollgate.serve.settings.outside.redis_urls import Layout, SocketType
from tollgate.serve.settings.rows import hidden, setting, without_credentials
from tollgate.serve.settings.values import (
    boolean,
    duration,
    one_of,
    text,
    waiting_pool,
    whole_number,
)

layout = one_of({each.value: each for each in Layout}, ignores_case=True)
socket_type = one_of({each.value: each for each in SocketType}, ignores_case=True)
any_size = whole_number(0, 2**31 - 1)
connections = whole_number(1, 65_536)
parallelism = whole_number(0, 65_536)
any_time = duration()
timeout = duration("1ms", "10m")


@dataclass(frozen=True, slots=True)
class KvstoreSettings:
    """Redis, and what holds for the store per second as well."""

    socket: SocketType = setting("KVSTORE_SOCKET_TYPE", socket_type, "unix", "how it is reached")
    layout: Layout = setting("KVSTORE_TYPE", layout, "SINGLE", "how it is laid out")
    url: str = setting(
        "KVSTORE_URL",
        text,
        "/var/run/nutcracker/ratelimit.sock",
        "the store",
        show=without_credentials,
    )
    pool_size: int = setting("KVSTORE_POOL_SIZE", connections, "10", "connections")
    auth: str = setting("KVSTORE_AUTH", text, "", "password, or user:password", show=hidden)
    sentinel_auth: str = setting(
        "KVSTORE_SENTINEL_AUTH", text, "", "the same, for the sentinels", show=hidden
    )
    has_tls: bool = setting("KVSTORE_TLS", boolean, "false", "TLS to the store")
    gathers_s: float = setting(
        "KVSTORE_PIPELINE_WINDOW", any_time, "0", "longest wait for more commands: ours never waits"
    )
    pipeline_max: int = setting(
        "KVSTORE_PIPELINE_LIMIT", any_size, "0", "commands sent at once; 0: those of a batch"
    )
    parallelism: int = setting(
        "KVSTORE_CLUSTER_PIPELINE_PARALLELISM", parallelism, "1", "nodes asked at once; 0: a pool"
    )
    on_empty_pool: str = setting(
        "KVSTORE_POOL_ON_EMPTY_BEHAVIOR", waiting_pool, "WAIT", "an empty pool waits"
    )
    timeout_s: float = setting("KVSTORE_TIMEOUT", timeout, "10s", "longest wait for a reply")
    tls_cert: str = setting("KVSTORE_TLS_CLIENT_CERT", text, "", "file of our certificate")
    tls_key: str = setting("KVSTORE_TLS_CLIENT_KEY", text, "", "file of our private key")
    tls_ca: str = setting("KVSTORE_TLS_CACERT", text, "", "file of its CA; empty: the system's")
    takes_any_host: bool = setting(
        "KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION", boolean, "false", "any host name will do"
    )
    first_pause_s: float = setting(
        "KVSTORE_STARTUP_INITIAL_INTERVAL", duration("1ms"), "1s", "first pause between tries"
    )
    pause_max_s: float = setting(
        "KVSTORE_STARTUP_MAX_INTERVAL", duration("1ms"), "30s", "longest pause between tries"
    )
    gives_up_after_s: float = setting(
        "KVSTORE_STARTUP_MAX_ELAPSED_TIME", any_time, "0", "time to give up after; 0: never"
    )
    closes_on_readonly: bool = setting(
        "KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR", boolean, "true", "reconnect then"
    )


@dataclass(frozen=True, slots=True)
class KvstorePersecondSettings:
    """A second Redis, for limits per second (B10)."""

    is_on: bool = setting(
        "KVSTORE_PERSECOND", boolean, "false", "a second store for limits per second"
    )
    socket: SocketType = setting(
        "KVSTORE_PERSECOND_SOCKET_TYPE", socket_type, "unix", "how it is reached"
    )
    layout: Layout = setting("KVSTORE_PERSECOND_TYPE", layout, "SINGLE", "how it is laid out")
    url: str = setting(
        "KVSTORE_PERSECOND_URL",
        text,
        "/var/run/nutcracker/ratelimitpersecond.sock",
        "the store",
        show=without_credentials,
    )
    pool_size: int = setting(
        "KVSTORE_PERSECOND_POOL_SIZE", connections, "10", "connections at most"
    )
    auth: str = setting(
        "KVSTORE_PERSECOND_AUTH", text, "", "password, or user:password", show=hidden
    )
    sentinel_auth: str = setting(
        "KVSTORE_PERSECOND_SENTINEL_AUTH", text, "", "the same, for the sentinels", show=hidden
    )
    has_tls: bool = setting("KVSTORE_PERSECOND_TLS", boolean, "false", "TLS to the store")
    gathers_s: float = setting(
        "KVSTORE_PERSECOND_PIPELINE_WINDOW",
        any_time,
        "0",
        "longest wait for more commands: ours never waits",
    )
    pipeline_max: int = setting(
        "KVSTORE_PERSECOND_PIPELINE_LIMIT",
        any_size,
        "0",
        "commands sent at once; 0: those of a batch",
    )
    parallelism: int = setting(
        "KVSTORE_PERSECOND_CLUSTER_PIPELINE_PARALLELISM",
        parallelism,
        "1",
        "nodes asked at once; 0: a pool",
    )
    on_empty_pool: str = setting(
        "KVSTORE_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", waiting_pool, "WAIT", "an empty pool waits"
    )
    timeout_s: float = setting(
        "KVSTORE_PERSECOND_TIMEOUT", timeout, "10s", "longest wait for a reply"
    )
