"""The settings of features to be built: known by name, checked and shown, and driving nothing.

An environment written for the reference may hold any of them (B22).
"""

from collections.abc import Mapping

from tollgate.serve.settings.rows import Row, hidden, without_credentials
from tollgate.serve.settings.values import (
    PORT_MAX,
    boolean,
    duration,
    number,
    one_of,
    pairs,
    text,
    waiting_pool,
    whole_number,
)

size = whole_number(0, 2**31 - 1)
port = whole_number(1, PORT_MAX)
connections = whole_number(1, 65_536)
parallelism = whole_number(0, 65_536)
time = duration()
layout = one_of({word: word for word in ("SINGLE", "SENTINEL", "CLUSTER")}, ignores_case=True)
socket = one_of({word: word for word in ("unix", "tcp")}, ignores_case=True)


def _store(name: str, url: str) -> tuple[Row, ...]:
    """The settings that both key-value stores have."""
    return (
        Row(f"{name}_SOCKET_TYPE", socket, "unix", "how it is reached"),
        Row(f"{name}_TYPE", layout, "SINGLE", "how it is laid out"),
        Row(f"{name}_URL", text, url, "the store", show=without_credentials),
        Row(f"{name}_POOL_SIZE", connections, "10", "connections"),
        Row(f"{name}_AUTH", text, "", "password, or user:password", show=hidden),
        Row(f"{name}_SENTINEL_AUTH", text, "", "the same, for the sentinels", show=hidden),
        Row(f"{name}_TLS", boolean, "false", "TLS to the store"),
        Row(f"{name}_PIPELINE_WINDOW", time, "0", "time to gather commands; 0: none"),
        Row(f"{name}_PIPELINE_LIMIT", size, "0", "has no effect"),
        Row(f"{name}_CLUSTER_PIPELINE_PARALLELISM", parallelism, "1", "groups at once; 0: a pool"),
        Row(f"{name}_POOL_ON_EMPTY_BEHAVIOR", waiting_pool, "WAIT", "an empty pool waits"),
        Row(f"{name}_TIMEOUT", time, "10s", "longest wait for a reply"),
    )


UNBUILT_ROWS: Mapping[str, tuple[Row, ...]] = {
    "xds": (  # B20
        Row("CONFIG_GRPC_XDS_NODE_ID", text, "default", "node id"),
        Row("CONFIG_GRPC_XDS_NODE_METADATA", pairs("="), "", "node metadata, k=v,k=v"),
        Row("CONFIG_GRPC_XDS_SERVER_URL", text, "localhost:18000", "the server"),
        Row("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", time, "3s", "time between tries"),
        Row("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", pairs(":"), "", "headers", show=hidden),
        Row("CONFIG_GRPC_XDS_SERVER_USE_TLS", boolean, "false", "TLS to it"),
        Row("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", text, "", "our certificate"),
        Row("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", text, "", "our private key"),
        Row("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", text, "", "CA of the server"),
        Row("CONFIG_GRPC_XDS_SERVER_TLS_SAN", text, "", "name of the server"),
        Row("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", time, "10s", "first pause before a retry"),
        Row("XDS_CLIENT_BACKOFF_MAX_INTERVAL", time, "60s", "longest pause before a retry"),
        Row("XDS_CLIENT_BACKOFF_RANDOM_FACTOR", number(0, 1_000), "0.5", "growth of the pauses"),
        Row("XDS_CLIENT_BACKOFF_JITTER", boolean, "true", "pauses vary at random"),
        Row("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", size, "0", "largest message; 0: 4 MiB"),
    ),
    "kvstore": (  # B6, B9, B10; setting its url selects BACKEND_TYPE=kvstore
        *_store("KVSTORE", "/var/run/nutcracker/ratelimit.sock"),
        Row("KVSTORE_TLS_CLIENT_CERT", text, "", "our certificate"),
        Row("KVSTORE_TLS_CLIENT_KEY", text, "", "our private key"),
        Row("KVSTORE_TLS_CACERT", text, "", "CA of the store"),
        Row("KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION", boolean, "false", "any host name will do"),
        Row("KVSTORE_STARTUP_INITIAL_INTERVAL", time, "1s", "first pause between tries"),
        Row("KVSTORE_STARTUP_MAX_INTERVAL", time, "30s", "longest pause between tries"),
        Row("KVSTORE_STARTUP_MAX_ELAPSED_TIME", time, "0", "time to give up after; 0: never"),
        Row("KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR", boolean, "false", "reconnect then"),
    ),
    "persecond": (  # B10
        Row("KVSTORE_PERSECOND", boolean, "false", "a second store for limits per second"),
        *_store("KVSTORE_PERSECOND", "/var/run/nutcracker/ratelimitpersecond.sock"),
    ),
    "statsd": (  # B19
        Row("STATSD_HOST", text, "localhost", "host of the statsd server"),
        Row("STATSD_PORT", port, "8125", "port of the statsd server"),
    ),
}
