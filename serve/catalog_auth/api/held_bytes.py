"""The bytes that calls hold in memory: of bodies that are coming or are worked on, and of replies
that their callers have yet to take.

    a body     as it was sent, compressed or not, from its first byte until its reply begins
    a reply    what is left of it: it is handed to the server in pieces, as its caller takes them

All calls of a process together hold HELD_BYTES_MAX; when there are more, large bodies are refused,
and above twice as many the small ones, too. Nobody holds anything for as long as they like: bodies
have to come, and replies to be taken, at a pace.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Message, Send

from tollgate.serve.catalog_auth.api.problems import BusyProblem

LOG = logging.getLogger("tollgate.catalog_auth")
HELD_BYTES_MAX = 128 * 1024 * 1024
SMALL_BYTES = 64 * 1024
# For a body to come, or a reply to be taken; and a second more for every piece.
TIME_S = 60.0
PIECE_BYTES = 64 * 1024


class HeldBytes:
    """The bytes that the calls of a process hold."""

    def __init__(self, bytes_max: int = HELD_BYTES_MAX, time_s: float = TIME_S) -> None:
        self.bytes = 0
        self.bytes_max = bytes_max
        self.time_s = time_s

    @contextmanager
    def call(self) -> Iterator["HeldByCall"]:
        """A call, which holds nothing yet, and nothing when it is over."""
        held = HeldByCall(self)
        try:
            yield held
        finally:
            held.become(0)


class HeldByCall:
    """The bytes that one call holds."""

    def __init__(self, together: HeldBytes) -> None:
        self._together = together
        self._bytes = 0

    def grow(self, count: int) -> None:
        """Holds so many bytes from now on. Raises BusyProblem when others hold too many for that;
        alone, a call is never refused."""
        bytes_max = self._together.bytes_max * (1 if count > SMALL_BYTES else 2)
        others = self._together.bytes - self._bytes
        if others > 0 and others + count > bytes_max:
            raise BusyProblem("as much of other bodies as is allowed is being read: call again")
        self.become(count)

    def become(self, count: int) -> None:
        """The same, whatever others hold."""
        self._together.bytes += count - self._bytes
        self._bytes = count

    def time_for(self, count: int) -> float:
        """The seconds that so many bytes may take to come or to go."""
        return self._together.time_s + count / PIECE_BYTES

    def sending(self, send: Send) -> Send:
        """A `send` that hands a long reply over in pieces. When its time is over, the rest of it is
        left out, which ends the connection."""
        is_given_up = False

        async def send_pieces(message: Message) -> None:
            nonlocal is_given_up
            body = message.get("body", b"")
            if is_given_up:
                return
            if len(body) <= PIECE_BYTES:
                await send(message)
                return
            try:
                async with asyncio.timeout(self.time_for(len(body))):
                    for start in range(0, len(body), PIECE_BYTES):
                        self.become(len(body) - start)
                        end = start + PIECE_BYTES
                        has_more = end < len(body) or message.get("more_body", False)
                        await send({**message, "body": body[start:end], "more_body": has_more})
            except TimeoutError:
                is_given_up = True
                LOG.info("a caller did not take a reply of %d bytes", len(body))

        return send_pieces
