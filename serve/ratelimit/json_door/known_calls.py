"""The memo of calls: the bytes of a whole request -> the body that they hold.

Proxies ask the same questions over and over, in the same words. Between two requests the parser of
every connection is in the same state, so the same bytes say the same, on any of them. What is kept
came in one piece, was one call for a decision and nothing else, and left its connection open.
"""

from tollgate.actors.kernel.bounded_cache import LruCache

CALLS_KEPT_MAX = 4_096
KEPT_CALL_BYTES_MAX = 1_024


class KnownCalls:
    """At most CALLS_KEPT_MAX calls, those longest that come again. Not thread-safe."""

    def __init__(self) -> None:
        self._bodies: LruCache[bytes, bytes] = LruCache(CALLS_KEPT_MAX)
        self.body = self._bodies.get
        """The body of the call that these bytes are; None when they are not known."""

    def keep(self, call: bytes, body: bytes) -> None:
        """Remembers that these bytes are one whole call."""
        if len(call) <= KEPT_CALL_BYTES_MAX:
            self._bodies.put(call, body)
