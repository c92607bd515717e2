"""Ports on which several of our processes listen, each with a socket of its own (SO_REUSEPORT).

    claimed --processes listen--> shared --one leaves--> shared by the others

The kernel gives every new connection to one of the listening sockets, and lets in whoever asks to
share. So the port is claimed first, for us alone: a claim is bound as if nobody could share, and
agrees to share only then. Whoever begins later finds the port taken, another Tollgate like anybody.

A listening socket that is closed resets the connections that nobody has accepted yet. So whoever
leaves turns new callers away first: their SYN is dropped, and sent again after a second, when the
kernel gives it to another. Meanwhile those that came before are accepted.
"""

import ctypes
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from errno import EADDRINUSE

from tollgate.actors.kernel.clock import Clock

# The system's tables of TCP sockets (proc(5)), and the state of those that listen.
LISTENING_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
LISTENING = "0A"
SO_ATTACH_FILTER = 26
TCP_INFO_BYTES = 160
# Handshakes that had begun are complete by then, unless their callers are far away.
HANDSHAKES_WITHIN_S = 0.1
ACCEPTED_WITHIN_S = 5.0
LOOK_EVERY_S = 0.005

# Packets that open a connection (SYN without ACK) are dropped, all others pass. An instruction of
# the kernel's filter: code, jumps if true and if false, operand; a packet begins with TCP's header.
_FLAGS, _SYN, _SYN_ACK = 13, 0x02, 0x12
_DROP_SYN = (
    (0x30, 0, 0, _FLAGS),  # load the byte of flags
    (0x54, 0, 0, _SYN_ACK),  # and
    (0x15, 0, 1, _SYN),  # equal?
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFFFFFF),  # pass
)


def claim(host: str, port: int) -> socket.socket:
    """A socket that keeps the port for processes of ours, until it is closed; it never listens.
    OSError when somebody has the port.

    What is left of old connections is in the way of a firm claim for a minute. Then it is one that
    a second claim is held off by only once somebody listens.
    """
    try:
        return _claim(host, port, is_firm=True)
    except OSError as error:
        if error.errno != EADDRINUSE:
            raise
    return _claim(host, port, is_firm=False)


def _claim(host: str, port: int, *, is_firm: bool) -> socket.socket:
    claimed = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        claimed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, not is_firm)
        claimed.bind((host, port))
        claimed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError:
        claimed.close()
        raise
    return claimed


def others_listen(address: str) -> bool:
    """Whether another process listens at the very address where this one does, `host:port`."""
    port = address.rpartition(":")[2]
    if not port.isdecimal():
        return False  # (it is a unix socket's)
    inodes = {os.fstat(number).st_ino for number, _ in sockets_at(int(port))}
    rows = [row for table in LISTENING_TABLES for row in _listening_rows(table, int(port))]
    ours = {where for where, inode in rows if inode in inodes}
    return any(where in ours and inode not in inodes for where, inode in rows)


def _listening_rows(table: str, port: int) -> Iterator[tuple[tuple[str, str], int]]:
    """Table and address, and the inode, of every socket of this machine that listens at a port."""
    with suppress(FileNotFoundError), open(table, encoding="ascii") as lines:  # (without IPv6)
        next(lines)
        for line in lines:
            fields = line.split()
            where, state, inode = fields[1], fields[3], fields[9]
            if state == LISTENING and int(where.rpartition(":")[2], 16) == port:
                yield (table, where), int(inode)


def turn_callers_away(listening: socket.socket) -> None:
    """Gives this socket no new connection, as far as the system can do that."""
    code = b"".join(struct.pack("HBBI", *each) for each in _DROP_SYN)
    held = ctypes.create_string_buffer(code)
    program = struct.pack("HP", len(_DROP_SYN), ctypes.addressof(held))
    with suppress(OSError):
        listening.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


def callers_waiting(listening: socket.socket) -> int:
    """The connections that nobody has accepted yet."""
    return int(struct.unpack_from("I", tcp_info(listening), 24)[0])


def tcp_info(connection: socket.socket) -> bytes:
    """The kernel's `struct tcp_info` of a socket, as far as this house reads it."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    return info.ljust(TCP_INFO_BYTES, b"\0")


def sockets_at(port: int) -> Iterator[tuple[int, socket.socket]]:
    """The TCP sockets of this process at a local port: the number of each, and a duplicate that
    says and does the same, and is closed behind. For libraries that do not hand out their own."""
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            if not os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(number)) as found:
                is_tcp = found.family in (socket.AF_INET, socket.AF_INET6)
                if is_tcp and found.getsockname()[1] == port:
                    yield number, found


def is_listening(found: socket.socket) -> bool:
    """True for a socket that takes connections."""
    return bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def leave(port: int, clock: Clock) -> None:
    """Ends this process's listening at a shared port: no caller that it was given is reset.

    The sockets belong to libraries that know nothing of it: in their place stand others, on which
    nothing comes, until the libraries close them.
    """
    for number, listening in sockets_at(port):
        if not is_listening(listening):
            continue
        turn_callers_away(listening)
        time.sleep(HANDSHAKES_WITHIN_S)
        give_up_s = clock.monotonic_s() + ACCEPTED_WITHIN_S
        while callers_waiting(listening) and clock.monotonic_s() < give_up_s:
            time.sleep(LOOK_EVERY_S)
        with socket.socket(socket.AF_UNIX) as nothing:
            os.dup2(nothing.fileno(), number, inheritable=False)
