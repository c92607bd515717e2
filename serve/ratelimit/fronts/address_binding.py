"""Why an address cannot be listened on, in one line: gRPC libraries do not say, or in their way."""

import contextlib
import os
import socket

from tollgate.serve.ratelimit.fronts.front import Door


def cannot_listen(door: Door) -> OSError:
    """The error for a door that a gRPC server failed to bind, with the system's reason."""
    try:
        _bind_once(door)
        code, reason = None, "gRPC refused the address, though the system would have taken it"
    except OSError as error:
        code, reason = error.errno, error.strerror or str(error)
    return OSError(code, f"gRPC cannot listen on {door.target}: {reason}")


def _bind_once(door: Door) -> None:
    if door.unix_socket:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.bind(door.unix_socket)
        with contextlib.suppress(OSError):
            os.unlink(door.unix_socket)
        return
    flags = socket.AI_PASSIVE
    addresses = socket.getaddrinfo(door.host, door.port, type=socket.SOCK_STREAM, flags=flags)
    for family, kind, protocol, _, address in addresses:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
