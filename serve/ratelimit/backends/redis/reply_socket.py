"""Ends a reply of Redis that is longer than any honest one, before anybody parses it.

The parser makes room for as many elements as a reply announces, in a list that it then goes
through: 28 bytes of two nested announcements stopped a process for 40 s. So all that an exchange
announces is added up here, and its bytes are.

    a counter's reply     a number, or an error: shorter than its command, eight times over
    a table of slots      16,384 ranges at most, with their nodes: some MB, and 600,000 elements
"""

import re
import socket

from tollgate.serve.ratelimit.backends.timed_socket import LongReplyError, TimedSocket

REPLY_BYTES_MAX = 8 << 20
REPLY_BYTES_FOR_EACH = 8
ELEMENTS_MAX = 1_000_000
_MARKS = (b"*", b"~", b"%", b">", b"|")
_ANNOUNCEMENT = re.compile(rb"[*~%>|](\d{1,20})\r")
_ANNOUNCEMENT_BYTES_MAX = 22


class ReplySocket(TimedSocket):
    """A TimedSocket below a connection of Redis."""

    def __init__(self, connection: socket.socket, timeout_s: float) -> None:
        super().__init__(
            connection,
            timeout_s,
            reply_bytes_max=REPLY_BYTES_MAX,
            reply_bytes_for_each=REPLY_BYTES_FOR_EACH,
        )
        self._left_elements = 0
        self._tail = b""
        pending = getattr(connection, "pending", None)
        if pending is not None:
            # (of TLS alone: what it has decrypted and nobody has read)
            self.pending = pending

    def sendall(self, commands: bytes) -> None:
        self._left_elements = ELEMENTS_MAX
        self._tail = b""
        super().sendall(commands)

    def recv_into(self, buffer: bytearray) -> int:
        size = super().recv_into(buffer)
        self._add_up(self._tail + buffer[:size])
        return size

    def _add_up(self, text: bytes) -> None:
        """Count the elements that are announced. Raises LongReplyError."""
        if not any(mark in text for mark in _MARKS):
            self._tail = b""
            return
        end = 0
        for found in _ANNOUNCEMENT.finditer(text):
            self._left_elements -= int(found[1])
            end = found.end()
        if self._left_elements < 0:
            raise LongReplyError(f"a reply of more than {ELEMENTS_MAX} elements")
        self._tail = text[max(end, len(text) - _ANNOUNCEMENT_BYTES_MAX) :]
