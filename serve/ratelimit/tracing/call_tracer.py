"""The CallTracer of a front process: decided calls go to where they wait to become spans.

    begin --not wanted by its caller, or not drawn--> no more is done for the call
          --traced--> end --room--> waits to become spans
                          --none--> lost, and counted

This is what happens while calls are answered, so it copies and compares, and no more. Spans are
made by another thread (`span_thread.py`).
"""

from collections.abc import Callable, Iterable

from tollgate.serve.ratelimit.codec.request_text import head_of
from tollgate.serve.ratelimit.fronts.front import BegunCall, Metadata, WireReply
from tollgate.serve.ratelimit.tracing.decided_calls import (
    MESSAGE_BYTES_MAX,
    AnsweredCall,
    Counted,
    DecidedCall,
    RenderedReply,
    WaitingRecords,
)
from tollgate.serve.ratelimit.tracing.propagation_headers import (
    DRAWN_BITS,
    SPAN_BITS,
    TRACE_BITS,
    drawn_below,
    is_declined,
    is_root,
    trace_headers,
)

_DRAWN = (1 << DRAWN_BITS) - 1


class QueueingTracer:
    """A CallTracer (see there). `rate`: of the traces that begin here; `take_counted`: when the
    batch that this thread decided last was counted; `random_bits` draws ids."""

    def __init__(
        self,
        rate: float,
        waiting: WaitingRecords,
        take_counted: Callable[[], Counted | None],
        monotonic_s: Callable[[], float],
        random_bits: Callable[[int], int],
    ) -> None:
        self._drawn_below = drawn_below(rate)
        self._waiting = waiting
        self._take_counted = take_counted
        self._monotonic_s = monotonic_s
        self._random_bits = random_bits

    def begin(self, metadata: Metadata) -> BegunCall | None:
        headers = trace_headers(metadata)
        trace_id = self._random_bits(TRACE_BITS) or 1  # (0 is no id)
        if headers and is_declined(headers):
            return None
        if (not headers or is_root(headers)) and trace_id & _DRAWN >= self._drawn_below:
            return None
        span_id = self._random_bits(SPAN_BITS) or 1
        return BegunCall(trace_id, span_id, headers, self._monotonic_s())

    def note(self, call: AnsweredCall) -> None:
        """A call of another service, that was answered."""
        self._waiting.add([call])

    def end(self, calls: Iterable[tuple[BegunCall | None, bytes, WireReply]]) -> None:
        counted = self._take_counted()
        ended_s = self._monotonic_s()
        self._waiting.add(
            [
                DecidedCall(
                    begun,
                    head_of(request, MESSAGE_BYTES_MAX),
                    len(request),
                    _kept(reply),
                    counted,
                    ended_s,
                )
                for begun, request, reply in calls
                if begun is not None
            ]
        )

    def rendered(self, calls: Iterable[BegunCall | None], decided_s: float) -> None:
        ended_s = self._monotonic_s()
        self._waiting.add(
            [RenderedReply(begun, decided_s, ended_s) for begun in calls if begun is not None]
        )


def _kept(reply: WireReply) -> WireReply:
    return b"" if isinstance(reply, bytes) and len(reply) > MESSAGE_BYTES_MAX else reply
