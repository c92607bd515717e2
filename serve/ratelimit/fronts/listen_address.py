"""The address of a gRPC front, its TLS files, and the error for one that cannot be bound."""

import contextlib
import os
import socket
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerTls:
    """Paths of PEM files. With `client_ca_file`, clients must show a certificate that it signed;
    with `client_san` too, one that carries this DNS name."""

    cert_file: str
    key_file: str
    client_ca_file: str = ""
    client_san: str = ""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where and how a front listens (B15).

    `unix_socket`, a path, takes the place of host and port. `connection_age_s` and its grace:
    None for no end. Fronts of several processes share one port when each says
    `is_port_shared`; the kernel then spreads connections over them.
    """

    host: str = "0.0.0.0"
    port: int = 8081
    unix_socket: str = ""
    tls: ServerTls | None = None
    connection_age_s: float | None = None
    connection_age_grace_s: float | None = None
    is_port_shared: bool = False

    @property
    def target(self) -> str:
        """`host:port`, with an IPv6 host in brackets, or `unix:path`."""
        return f"unix:{self.unix_socket}" if self.unix_socket else host_port(self.host, self.port)


def host_port(host: str, port: int) -> str:
    """The usual text for a host and a port; an IPv6 address gets its brackets."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def cannot_listen(listen: ListenAddress) -> OSError:
    """The error for an address that a gRPC server failed to bind, with the system's reason.

    gRPC libraries do not say why, or each in its own way.
    """
    try:
        _bind_once(listen)
        code, reason = None, "gRPC refused the address, though the system would have taken it"
    except OSError as error:
        code, reason = error.errno, error.strerror or str(error)
    return OSError(code, f"gRPC cannot listen on {listen.target}: {reason}")


def _bind_once(listen: ListenAddress) -> None:
    if listen.unix_socket:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.bind(listen.unix_socket)
        with contextlib.suppress(OSError):
            os.unlink(listen.unix_socket)
        return
    flags = socket.AI_PASSIVE
    addresses = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=flags)
    for family, kind, protocol, _, address in addresses:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
