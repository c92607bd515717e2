"""Ways to a statsd server: a TCP connection, and UDP datagrams. Belong to one thread at a time.

Lines are taken in order. Taken is what was given to the network, whether or not it arrives: a line
of which a part went out is never sent again, so nothing counts twice. A server that ends is noticed
before the next lines are given to its connection, not by losing them: TCP by the end of what it
says, UDP by the ICMP message that nobody listens, where that comes back.
"""

import os
import socket
from collections.abc import Sequence
from errno import ECONNREFUSED
from select import POLLIN, POLLOUT, poll
from typing import Protocol

from tollgate.actors.kernel.clock import Clock

CONNECT_WITHIN_S = 2.0
DATAGRAM_BYTES_MAX = 1_432
"""The content of a datagram that fits into an Ethernet frame, with room for headers on the way."""
PIECE_BYTES_MAX = 65_536
RESOLVE_EVERY_S = 60.0
SILENT_FOR_MS_MAX = 30_000
"""A peer that acknowledges nothing for so long is gone."""
_HEARD_BYTES_MAX = 65_536


class StatsdConnection(Protocol):
    """A way to a server. `address` is for people; `lost` the lines known not to have arrived."""

    address: str
    lost: int

    def open(self) -> None:
        """Be connected, if it is not yet. OSError when nobody is there."""

    def send(self, lines: Sequence[bytes], within_s: float) -> int:
        """Gives as many lines as are taken within that time; how many were, from the first."""

    def close(self) -> None: ...


class TcpConnection:
    """A stream of lines."""

    def __init__(self, host: str, port: int) -> None:
        self.address = f"{host}:{port} (TCP)"
        self.lost = 0
        self._target = (host, port)
        self._socket: socket.socket | None = None
        self._rest = b""  # of the last line that was begun

    def open(self) -> None:
        if self._socket is not None and _has_ended(self._socket):
            self.close()
        if self._socket is None:
            opened = socket.create_connection(self._target, CONNECT_WITHIN_S)
            if opened.getsockname() == opened.getpeername():
                # Nobody listens, and the system took this port for the connection itself.
                opened.close()
                raise ConnectionRefusedError(ECONNREFUSED, os.strerror(ECONNREFUSED))
            opened.setblocking(False)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_FOR_MS_MAX)
            self._socket = opened

    def send(self, lines: Sequence[bytes], within_s: float) -> int:
        taken = 0
        while self._socket is not None and (taken < len(lines) or self._rest):
            _, content = _joined(lines, taken, PIECE_BYTES_MAX)
            pending = self._rest + content
            try:
                sent = self._socket.send(pending) if _is_writable(self._socket, within_s) else 0
            except BlockingIOError:
                sent = 0
            except OSError:
                self.close()
                break
            if not sent:
                break
            # Up to the end of a line; of the one that was cut the rest goes first the next time.
            end = pending.find(b"\n", sent - 1) + 1
            taken += pending[len(self._rest) : end].count(b"\n")
            self._rest = pending[sent:end]
        return taken

    def close(self) -> None:
        """What the network has is still delivered, if somebody reads it."""
        if self._socket is not None:
            self._socket.close()
        self.lost += bool(self._rest)
        self._socket, self._rest = None, b""


class UdpConnection:
    """Datagrams of whole lines. An empty line before them asks whether anybody listens: of the same
    machine the answer is there at once, of others by the next time."""

    def __init__(self, host: str, port: int, clock: Clock) -> None:
        self.address = f"{host}:{port} (UDP)"
        self.lost = 0
        self._target = (host, port)
        self._clock = clock
        self._socket: socket.socket | None = None
        self._resolved_s = 0.0
        self._unconfirmed = 0

    def open(self) -> None:
        self._look_for_refusal()
        self._unconfirmed = 0
        now_s = self._clock.monotonic_s()
        if self._socket is None or now_s >= self._resolved_s + RESOLVE_EVERY_S:
            self.close()
            self._socket, self._resolved_s = _datagram_socket(self._target), now_s
        self._socket.send(b"\n")
        self._look_for_refusal()

    def send(self, lines: Sequence[bytes], within_s: float) -> int:
        assert self._socket is not None, "it was opened"
        taken = 0
        try:
            while taken < len(lines):
                count, content = _joined(lines, taken, DATAGRAM_BYTES_MAX)
                if len(content) > DATAGRAM_BYTES_MAX:  # (a line that is too long alone)
                    self.lost += count
                elif _is_writable(self._socket, within_s):
                    self._socket.send(content)
                    self._unconfirmed += count
                else:
                    break
                taken += count
            self._look_for_refusal()
        except BlockingIOError:
            pass
        except OSError:  # about an earlier datagram: this one was not sent
            self._note_refusal()
        return taken

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _look_for_refusal(self) -> None:
        """Raises what came back since the last look. A socket keeps one error, and is as good as
        new once that was read."""
        if self._socket is None:
            return
        if number := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._note_refusal()
            raise OSError(number, os.strerror(number))

    def _note_refusal(self) -> None:
        self.lost += self._unconfirmed
        self._unconfirmed = 0
        self.close()  # somebody else may have the name by now


def _has_ended(connected: socket.socket) -> bool:
    """True when the peer has closed. Nothing that it says is of interest."""
    heard = poll()
    heard.register(connected, POLLIN)
    while heard.poll(0):
        try:
            if not connected.recv(_HEARD_BYTES_MAX):
                return True
        except BlockingIOError:
            return False
        except OSError:
            return True
    return False


def _is_writable(connected: socket.socket, within_s: float) -> bool:
    writable = poll()
    writable.register(connected, POLLOUT)
    return bool(writable.poll(within_s * 1_000))


def _joined(lines: Sequence[bytes], first: int, bytes_max: int) -> tuple[int, bytes]:
    """So many lines from `first` on as go together, each with its end: at least one, if there is
    any, even if that is too long."""
    size = count = 0
    while first + count < len(lines):
        more = len(lines[first + count]) + 1
        if count and size + more > bytes_max:
            break
        size, count = size + more, count + 1
    return count, b"".join(line + b"\n" for line in lines[first : first + count])


def _datagram_socket(target: tuple[str, int]) -> socket.socket:
    """Connected, so that refusals come back. IPv4 first, where agents listen."""
    found = socket.getaddrinfo(*target, type=socket.SOCK_DGRAM)
    family, kind, protocol, _, address = min(found, key=lambda row: row[0] != socket.AF_INET)
    opened = socket.socket(family, kind, protocol)
    try:
        opened.connect(address)
    except OSError:
        opened.close()
        raise
    opened.setblocking(False)
    return opened
