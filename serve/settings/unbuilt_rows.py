"""The settings of features to be built: known by name, checked and shown, and driving nothing.

An environment written for the reference may hold any of them (B22).
"""

from collections.abc import Mapping

from tollgate.serve.settings.rows import Row, hidden
from tollgate.serve.settings.values import (
    PORT_MAX,
    boolean,
    duration,
    number,
    pairs,
    text,
    whole_number,
)

size = whole_number(0, 2**31 - 1)
port = whole_number(1, PORT_MAX)
time = duration()


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
    "statsd": (  # B19
        Row("STATSD_HOST", text, "localhost", "host of the statsd server"),
        Row("STATSD_PORT", port, "8125", "port of the statsd server"),
    ),
}
