"""Holds what is sent to a store and its reply to one deadline, and the reply to a size.

A time-out of a socket is one of each read: a server that sends a byte now and then would hold its
caller for ever.
"""

import socket
from ssl import SSLWantReadError, SSLWantWriteError

from tollgate.actors.kernel.clock import SystemClock

monotonic = SystemClock().monotonic_s


class LongReplyError(ValueError):
    """A reply is longer than any to what was sent."""


class TimedSocket:
    """A socket whose exchanges end in time as a whole; each begins with `sendall`.

    `reply_bytes_max`: the longest reply; `reply_bytes_for_each`: so much longer for each byte sent.
    """

    def __init__(
        self,
        connection: socket.socket,
        timeout_s: float,
        *,
        reply_bytes_max: int,
        reply_bytes_for_each: int = 0,
    ) -> None:
        self.connection = connection
        self._timeout_s = timeout_s
        self._reply_bytes_max = reply_bytes_max
        self._reply_bytes_for_each = reply_bytes_for_each
        self._deadline_s = 0.0
        self._left_bytes = 0
        self.fileno = connection.fileno
        self.shutdown = connection.shutdown
        self.close = connection.close

    def sendall(self, commands: bytes) -> None:
        """Begin an exchange. Raises OSError, as TimeoutError when it is late."""
        self._deadline_s = monotonic() + self._timeout_s
        self._left_bytes = self._reply_bytes_max + self._reply_bytes_for_each * len(commands)
        unsent = memoryview(commands)
        while unsent:
            self._wait_for_what_is_left()
            try:
                unsent = unsent[self.connection.send(unsent) :]
            except (BlockingIOError, SSLWantWriteError):
                raise TimeoutError from None

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Some of the reply. Raises OSError, as TimeoutError when it is late; LongReplyError."""
        self._wait_for_what_is_left()
        try:
            found = self.connection.recv(size, flags)
        except (BlockingIOError, SSLWantReadError):
            raise TimeoutError from None
        self._take(len(found))
        return found

    def recv_into(self, buffer: bytearray) -> int:
        """As `recv`: the number of bytes that came."""
        self._wait_for_what_is_left()
        try:
            size = self.connection.recv_into(buffer)
        except (BlockingIOError, SSLWantReadError):
            raise TimeoutError from None
        self._take(size)
        return size

    def _wait_for_what_is_left(self) -> None:
        # What is there already is taken, however late this process is.
        self.connection.settimeout(max(0.0, self._deadline_s - monotonic()))

    def _take(self, size: int) -> None:
        self._left_bytes -= size
        if self._left_bytes < 0:
            raise LongReplyError("a reply that does not end")
