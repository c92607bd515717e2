"""The ports of a node, the settings that choose them, and whatever keeps one from being bound."""

import errno
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import Transport

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class PortUse:
    """A port that a start will bind, and the setting that says so."""

    setting: str
    host: str
    port: int


def port_uses(settings: Settings) -> Iterator[PortUse]:
    """The ports that these settings make a start bind, free choices (0) left out."""
    grpc, process, statistics = settings.grpc, settings.process, settings.statistics
    uses = [
        PortUse("PORT", settings.http.host, settings.http.port),
        PortUse("JSON_PORT", settings.json.host, settings.json.port),
        PortUse("DEBUG_PORT", settings.debug.host, settings.debug.port),
        PortUse("RAY_DASHBOARD_PORT", LOOPBACK, process.ray_dashboard_port),
        PortUse("HAPROXY_METRICS_PORT", "0.0.0.0", process.haproxy_metrics_port),
        PortUse("HAPROXY_STATS_PORT", "0.0.0.0", process.haproxy_stats_port),
        PortUse("SERVE_FALLBACK_HTTP_PORT", "0.0.0.0", process.fallback_http_port),
    ]
    if not grpc.uds:
        uses.append(PortUse("GRPC_PORT", grpc.host, grpc.port))
    if statistics.transport is Transport.PULLMETRICS:
        address = statistics.pullmetrics_addr
        uses.append(PortUse("PULLMETRICS_ADDR", address.host, address.port))
    payments = settings.payments
    if payments.is_on and payments.operator_key_file:
        uses.append(
            PortUse("PAYMENTS_OPERATOR_PORT", payments.operator_host, payments.operator_port)
        )
    return (use for use in uses if use.port)


def port_conflicts(settings: Settings) -> Iterator[str]:
    """One line for each port, or unix socket, that cannot be bound."""
    for use in port_uses(settings):
        reason = _port_conflict(use.host, use.port)
        if reason:
            yield (
                f"{settings.spelled(use.setting)}: cannot listen on {use.host or '0.0.0.0'}:"
                f"{use.port}: {reason}; free it, or set another"
            )
    path = settings.grpc.uds
    if path and (reason := _unix_socket_conflict(path)):
        yield f"{settings.spelled('GRPC_UDS')}: cannot listen on {path}: {reason}; set another path"


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _port_conflict(host: str, port: int) -> str:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family):
            return ""
    except OSError as error:
        return (error.strerror or str(error)).partition(" (while")[0]


def _unix_socket_conflict(path: str) -> str:
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.bind(path)
        os.unlink(path)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return error.strerror or str(error)
        return _socket_holder(path)
    return ""


def _socket_holder(path: str) -> str:
    """Says who is in the way of a socket. One that nobody listens on is not: gRPC replaces it."""
    if not Path(path).is_socket():
        return "there is another file of this name"
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)
    except OSError:
        return ""
    return "somebody is listening there"
