"""The hand-over of a front's connections to the others at its port.

    listening --leave--> no new connections --GOAWAY--> callers open new ones, elsewhere --> quiet

A caller that hears GOAWAY (RFC 9113, 6.8) opens another connection for what it asks next, and gets
the answers to what it has asked on this one. The servers here say it only when they cut connections
(pygrpc_native), or refuse what is on its way to them (grpcio). So the frame is written into the
connection beside the server's own: the kernel keeps every write in one piece, and a connection is
left alone while it has not heard the server's first frame, or takes so little that the server may
have written half of one.
"""

import socket
import struct
import termios
import time
from fcntl import ioctl

from tollgate.actors.kernel.clock import Clock
from tollgate.serve.net.shared_ports import is_listening, leave, sockets_at, tcp_info

LAST_STREAM = 2**31 - 1  # whatever is under way, too
GOAWAY = struct.pack(">IBI", 8 << 8 | 7, 0, 0) + struct.pack(">II", LAST_STREAM, 0)
# The smallest buffer of a connection holds several times as much.
UNREAD_BYTES_MAX = 4_096
DATA_SEGMENTS_OUT = 156  # (in struct tcp_info)
TOLD_WITHIN_S = 5.0
TRY_EVERY_S = 0.02


def hand_over(address: str, grace_s: float, clock: Clock, *, says_goaway: bool = True) -> float:
    """Ends listening at a shared port, and sends its callers to the others; what is left of the
    grace. `says_goaway`: not where nobody but the server can write into a connection (TLS)."""
    started_s = clock.monotonic_s()
    port = int(address.rpartition(":")[2])
    leave(port, clock)
    if says_goaway:
        give_up_s = clock.monotonic_s() + min(grace_s, TOLD_WITHIN_S)
        told: set[object] = set()
        while _say_goaway(port, told) and clock.monotonic_s() < give_up_s:
            time.sleep(TRY_EVERY_S)
    return max(0.0, grace_s - (clock.monotonic_s() - started_s))


def _say_goaway(port: int, told: set[object]) -> bool:
    """Tells the connections that can be told and have not been; True when any is left."""
    is_any_left = False
    for _, connection in sockets_at(port):
        if is_listening(connection):
            continue
        try:
            peer = connection.getpeername()
            if peer in told:
                continue
            if _is_ready(connection):
                connection.send(GOAWAY, socket.MSG_DONTWAIT)
                told.add(peer)
            else:
                is_any_left = True
        except BlockingIOError:
            is_any_left = True
        except OSError:  # the caller has gone
            continue
    return is_any_left


def _is_ready(connection: socket.socket) -> bool:
    unread = struct.unpack("i", ioctl(connection, termios.TIOCOUTQ, bytes(4)))[0]
    segments = struct.unpack_from("I", tcp_info(connection), DATA_SEGMENTS_OUT)[0]
    return bool(unread < UNREAD_BYTES_MAX and segments > 0)
