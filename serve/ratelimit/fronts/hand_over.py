"""The hand-over of a front's connections to the others at its port.

    listening --leave--> no new connections --GOAWAY--> callers open new ones, elsewhere --> quiet

A caller that hears GOAWAY (RFC 9113, 6.8) opens another connection for what it asks next, and gets
the answers to what it has asked on this one. The servers here say it only when they cut connections
(pygrpc_native), or refuse what is on its way to them (grpcio). So the frame is written into the
connection beside the server's own, where it must not come between two parts of another frame.

The kernel keeps every write in one piece, and a server writes a frame in several only when the
connection is full. So answers are held back for a moment (`AnswerGate`), and a server that could
write all that time, and wrote nothing, has no rest of a frame left to write. Where a connection was
seen full, its threads must have been seen asleep as well, so that none waits for a processor to
write that rest. A caller that does not read is told when it has read.

Who has connected and says nothing is a probe, or a caller whose first bytes are on their way:
HTTP/2 begins with the caller (RFC 9113, 3.4). It gets a moment for them, and keeps nobody waiting.

Connections take turns, AT_ONCE of them, whose duplicates are made before the gate closes: to find
all of a busy front's takes longer than a proxy waits. So an answer waits for QUIET_S and a little.
"""

import os
import socket
import struct
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fcntl import ioctl
from itertools import islice
from pathlib import Path
from select import POLLOUT, poll
from threading import Event

from tollgate.actors.kernel.clock import Clock
from tollgate.serve.net.shared_ports import is_listening, leave, sockets_at, tcp_info
from tollgate.serve.ratelimit.fronts.front import DecideBatch, WireReply

LAST_STREAM = 2**31 - 1  # whatever is under way, too
GOAWAY = struct.pack(">IBI", 8 << 8 | 7, 0, 0) + struct.pack(">II", LAST_STREAM, 0)
# (in struct tcp_info)
BYTES_ACKNOWLEDGED = 120
DATA_SEGMENTS_IN = 152
DATA_SEGMENTS_OUT = 156
# A server's thread has its turn within this time, and a proxy's patience (20 ms) is longer.
QUIET_S = 0.01
HELD_MAX_S = 1.0
TOLD_WITHIN_S = 5.0
# What a caller has sent arrives within this time after nobody can connect any more.
SPEAKS_WITHIN_S = 0.5
TRY_EVERY_S = 0.1
LOOK_EVERY_S = 0.002
AT_ONCE = 50
# The names that the threads of both libraries have, which write into connections.
WRITERS = frozenset({"grpc-native-io", "event_engine"})

Peer = object
Connections = Sequence[tuple[Peer, socket.socket]]
"""By the address of the caller."""
Written = dict[Peer, int]
"""The bytes that were written into connections which take more, by the address of the caller."""


class AnswerGate:
    """Answers pass, but for moments in which they are held back. Thread-safe."""

    def __init__(self) -> None:
        self._is_open = Event()
        self._is_open.set()

    def held(self, decide_batch: DecideBatch) -> DecideBatch:
        """The same decisions, whose answers wait while the gate is closed."""

        def decide(payloads: Sequence[bytes]) -> list[WireReply]:
            replies = decide_batch(payloads)
            self._is_open.wait(HELD_MAX_S)
            return replies

        return decide

    @property
    def is_closed(self) -> bool:
        return not self._is_open.is_set()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Holds answers back meanwhile."""
        self._is_open.clear()
        try:
            yield
        finally:
            self._is_open.set()


def hand_over(
    address: str, grace_s: float, clock: Clock, gate: AnswerGate, *, says_goaway: bool = True
) -> float:
    """Ends listening at a shared port, and sends its callers to the others; what is left of the
    grace. `says_goaway`: not where nobody but the server can write into a connection (TLS)."""
    started_s = clock.monotonic_s()
    port = int(address.rpartition(":")[2])
    notices = Notices(port)
    if says_goaway:
        for connections in notices.turns():
            notices.look(connections)
    leave(port, clock)
    if says_goaway:
        left_s = clock.monotonic_s()
        give_up_s = left_s + min(grace_s, TOLD_WITHIN_S)
        while notices.has_left and clock.monotonic_s() < give_up_s:
            notices.heeds_silent = clock.monotonic_s() < left_s + SPEAKS_WITHIN_S
            for connections in notices.turns():
                if notices.look(connections):
                    with gate.closed():
                        _tell_the_quiet(notices, connections, clock)
                    time.sleep(QUIET_S)  # in which answers pass
            if notices.has_left:
                time.sleep(TRY_EVERY_S)
    return max(0.0, grace_s - (clock.monotonic_s() - started_s))


def _tell_the_quiet(notices: "Notices", connections: Connections, clock: Clock) -> None:
    written = notices.look(connections)
    until_s = clock.monotonic_s() + QUIET_S
    while clock.monotonic_s() < until_s:
        time.sleep(LOOK_EVERY_S)
        notices.look(connections)
    notices.tell(connections, written)


class Notices:
    """Tells every connection at a port, once, that this server goes away.

    `has_left`: whether any was not told when its last turn ended, but for those that nobody has
    said anything on, unless it `heeds_silent` ones. `are_asleep`: whether no thread of the server
    is about to write."""

    def __init__(self, port: int, are_asleep: Callable[[], bool] | None = None) -> None:
        self._port = port
        self._are_asleep = are_asleep or are_writers_asleep
        self._told: set[Peer] = set()
        self._seen_full: set[Peer] = set()
        self.has_left = True
        self.heeds_silent = True

    def turns(self) -> Iterator[Connections]:
        """The connections that are not told yet, some at a time, as duplicates of the server's,
        which are closed behind."""
        self.has_left = False
        untold = self._untold()
        while turn := list(islice(untold, AT_ONCE)):
            try:
                yield turn
            finally:
                self.has_left = self.has_left or any(self._is_left(*each) for each in turn)
                for _, connection in turn:
                    connection.close()

    def look(self, connections: Connections) -> Written:
        """Those that can be written to."""
        written = {}
        for peer, connection in connections:
            with suppress(OSError):  # the caller has gone
                if not _is_writable(connection):
                    self._seen_full.add(peer)
                elif _has_spoken(connection):  # (until then its first frame is to come)
                    written[peer] = _written(connection)
        return written

    def tell(self, connections: Connections, before: Written) -> None:
        """Tells those into which nothing was written since that look, though it could be."""
        for peer, connection in connections:
            with suppress(OSError):  # full after all, or gone
                if self._is_quiet(peer, connection, before):
                    connection.send(GOAWAY, socket.MSG_DONTWAIT)
                    self._told.add(peer)

    def _is_left(self, peer: Peer, connection: socket.socket) -> bool:
        if peer in self._told:
            return False
        try:
            return self.heeds_silent or _has_spoken(connection) or _has_been_spoken_to(connection)
        except OSError:  # the caller has gone
            return False

    def _is_quiet(self, peer: Peer, connection: socket.socket, before: Written) -> bool:
        if not _is_writable(connection):
            self._seen_full.add(peer)
            return False
        # Whoever has something to write wakes as soon as that can be, and is awake until then.
        is_idle = peer not in self._seen_full or self._are_asleep()
        return is_idle and before.get(peer) == _written(connection)

    def _untold(self) -> Iterator[tuple[Peer, socket.socket]]:
        for _, connection in sockets_at(self._port):
            with suppress(OSError):  # the caller has gone
                if is_listening(connection):
                    continue
                peer = connection.getpeername()
                if peer not in self._told:
                    # (its own `dup` would make the server's connection a blocking one)
                    yield peer, socket.socket(fileno=os.dup(connection.fileno()))


def _is_writable(connection: socket.socket) -> bool:
    asked = poll()
    asked.register(connection, POLLOUT)
    return any(what == POLLOUT for _, what in asked.poll(0))


def _has_spoken(connection: socket.socket) -> bool:
    return bool(struct.unpack_from("I", tcp_info(connection), DATA_SEGMENTS_OUT)[0])


def _has_been_spoken_to(connection: socket.socket) -> bool:
    return bool(struct.unpack_from("I", tcp_info(connection), DATA_SEGMENTS_IN)[0])


def _written(connection: socket.socket) -> int:
    """The bytes that were ever written: those that have arrived, and those that have not."""
    while True:
        (arrived,) = struct.unpack_from("Q", tcp_info(connection), BYTES_ACKNOWLEDGED)
        (unread,) = struct.unpack("i", ioctl(connection, termios.TIOCOUTQ, bytes(4)))
        if struct.unpack_from("Q", tcp_info(connection), BYTES_ACKNOWLEDGED)[0] == arrived:
            return int(arrived + unread)


def are_writers_asleep() -> bool:
    """Whether all threads that write for the servers of this process were asleep just now."""
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended
            name, _, rest = (thread / "stat").read_text().partition(" (")[2].rpartition(") ")
            if name in WRITERS and not rest.startswith("S"):
                return False
    return True
