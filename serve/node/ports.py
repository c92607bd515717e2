"""The ports of a node, the settings that choose them, and whatever keeps one from being bound."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tollgate.serve.net.shared_ports import claim
from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import Transport

LOOPBACK = "127.0.0.1"
FRONTS_PORTS = ("GRPC_PORT", "JSON_PORT")


@dataclass(frozen=True, slots=True)
class PortUse:
    """A port that a start will bind, and the setting that says so; `host_setting`: the one that
    says at which address, empty when there is no other."""

    setting: str
    host: str
    port: int
    host_setting: str = ""


def port_uses(settings: Settings) -> Iterator[PortUse]:
    """The ports that these settings make a start bind, free choices (0) left out."""
    grpc, process, statistics = settings.grpc, settings.process, settings.statistics
    uses = [
        PortUse("PORT", settings.http.host, settings.http.port, "HOST"),
        PortUse("JSON_PORT", settings.json.host, settings.json.port, "JSON_HOST"),
        PortUse("DEBUG_PORT", settings.debug.host, settings.debug.port, "DEBUG_HOST"),
        PortUse("HAPROXY_METRICS_PORT", "0.0.0.0", process.haproxy_metrics_port),
        PortUse("HAPROXY_STATS_PORT", "0.0.0.0", process.haproxy_stats_port),
        PortUse("SERVE_FALLBACK_HTTP_PORT", "0.0.0.0", process.fallback_http_port),
    ]
    if process.has_ray_dashboard:
        uses.append(PortUse("RAY_DASHBOARD_PORT", LOOPBACK, process.ray_dashboard_port))
    if not grpc.uds:
        uses.append(PortUse("GRPC_PORT", grpc.host, grpc.port, "GRPC_HOST"))
    if statistics.transport is Transport.PULLMETRICS:
        page = statistics.pullmetrics_addr
        uses.append(PortUse("PULLMETRICS_ADDR", page.host, page.port, "PULLMETRICS_ADDR"))
    own = settings.payments
    if own.is_on and own.operator_key_file:
        address = own.operator_host, own.operator_port
        uses.append(PortUse("PAYMENTS_OPERATOR_PORT", *address, "PAYMENTS_OPERATOR_HOST"))
    return (use for use in uses if use.port)


def port_conflicts(settings: Settings) -> Iterator[str]:
    """One line for each port, or unix socket, that cannot be bound."""
    for use in port_uses(settings):
        try:
            _try(use.host, use.port)
        except OSError as error:
            yield _conflict(use, error, settings)
    path = settings.grpc.uds
    if path and (reason := _unix_socket_conflict(path)):
        yield f"{settings.spelled('GRPC_UDS')}: cannot listen on {path}: {reason}; set another path"


@contextmanager
def claimed_ports(settings: Settings) -> Iterator[None]:
    """Keeps the ports that fronts share, several of them or one and its successor, for those of
    this node. OSError, with a line for the operator, when somebody has one of them."""
    with ExitStack() as claims:
        for use in port_uses(settings):
            if use.setting in FRONTS_PORTS:
                try:
                    claims.enter_context(claim(use.host, use.port))
                except OSError as error:
                    raise OSError(error.errno, _conflict(use, error, settings)) from None
        yield


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _try(host: str, port: int) -> None:
    """Raises OSError if nobody can listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family):
        pass


def _conflict(use: PortUse, error: OSError, settings: Settings) -> str:
    reason = (error.strerror or str(error)).partition(" (while")[0]
    if use.host_setting and _is_about_the_host(error):
        name = settings.spelled(use.host_setting)
        return f"{name}: cannot listen on {use.host!r}: {reason}; name an address of this machine"
    address = f"{use.host or '0.0.0.0'}:{use.port}"
    name = settings.spelled(use.setting)
    return f"{name}: cannot listen on {address}: {reason}; free it, or set another"


def _is_about_the_host(error: OSError) -> bool:
    # (those of getaddrinfo(3) are below 0)
    return error.errno == errno.EADDRNOTAVAIL or (error.errno or 0) < 0


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
