"""The rows about a control plane that sends rules, with CONFIG_TYPE=GRPC_XDS_SOTW (B20)."""
# ruff: noqa: RUF009  (`setting` makes a dataclass field, not a default that is computed once)

import re
from dataclasses import dataclass

from tollgate.serve.settings.rows import hidden, setting
from tollgate.serve.settings.values import (
    BadValueError,
    Pairs,
    boolean,
    duration,
    number,
    pairs,
    text,
    whole_number,
)

# Shorter pauses would be a storm of calls, longer ones the end of trying.
pause = duration("10ms", "24h")
_HEADER_NAME = re.compile(r"[0-9a-z_.-]+")
MESSAGE_BYTES_MAX = 4 * 1024 * 1024


def server(value: str) -> str:
    """An address that gRPC can connect to."""
    if not value or any(map(str.isspace, value)):
        raise BadValueError("is not an address such as control-plane:18000")
    if value.lower().startswith(("http://", "https://")):
        raise BadValueError(
            "has a scheme, but is an address of gRPC: write control-plane:18000, and for TLS "
            "CONFIG_GRPC_XDS_SERVER_USE_TLS=true"
        )
    return value


def headers(value: str) -> Pairs:
    """Headers of a gRPC call, `k:v,k:v`; letter case does not count in names."""
    found = tuple((name.lower(), content) for name, content in pairs(":")(value))
    for position, (name, content) in enumerate(found, start=1):
        is_ours = not name.startswith("grpc-") and not name.endswith("-bin")
        if not is_ours or not _HEADER_NAME.fullmatch(name):
            raise BadValueError(f"has an item (number {position}) whose name no header can have")
        if not content.isascii() or not content.isprintable():
            raise BadValueError(f"has an item (number {position}) with a value beyond ASCII")
    return found


@dataclass(frozen=True, slots=True)
class ControlPlaneSettings:
    """The control plane, how it is reached, and how long it is waited for. Empty paths: none."""

    node_id: str = setting("CONFIG_GRPC_XDS_NODE_ID", text, "default", "node id")
    node_metadata: Pairs = setting(
        "CONFIG_GRPC_XDS_NODE_METADATA", pairs("="), "", "node metadata, k=v,k=v"
    )
    target: str = setting(
        "CONFIG_GRPC_XDS_SERVER_URL", server, "localhost:18000", "address of the control plane"
    )
    retry_s: float = setting(
        "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL",
        pause,
        "3s",
        "pause before a connection is tried again",
    )
    headers: Pairs = setting(
        "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
        headers,
        "",
        "headers of the call, k:v,k:v",
        show=hidden,
    )
    has_tls: bool = setting("CONFIG_GRPC_XDS_SERVER_USE_TLS", boolean, "false", "TLS to it")
    cert: str = setting("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", text, "", "file of our certificate")
    key: str = setting("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", text, "", "file of our private key")
    server_ca: str = setting(
        "CONFIG_GRPC_XDS_SERVER_TLS_CACERT", text, "", "file of its CA; empty: the public ones"
    )
    server_san: str = setting(
        "CONFIG_GRPC_XDS_SERVER_TLS_SAN", text, "", "name in its certificate; empty: its host"
    )
    pause_min_s: float = setting(
        "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", pause, "10s", "pause after a stream that ended"
    )
    pause_max_s: float = setting(
        "XDS_CLIENT_BACKOFF_MAX_INTERVAL", pause, "60s", "longest of these pauses"
    )
    pause_growth: float = setting(
        "XDS_CLIENT_BACKOFF_RANDOM_FACTOR",
        number(0, 1_000),
        "0.5",
        "factor from pause to pause; up to 1 they stay as they are",
    )
    has_jitter: bool = setting(
        "XDS_CLIENT_BACKOFF_JITTER", boolean, "true", "pauses that have grown vary at random"
    )
    message_bytes_max: int = setting(
        "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES",
        whole_number(0, 2**31 - 1),
        "0",
        "largest message; 0: 4 MiB",
    )
