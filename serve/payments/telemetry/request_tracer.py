"""Traces requests: which are traced, and what of them becomes spans (docs/operations.md, Traces).

METHOD /route          from a request's headers to its reply; a child of the caller's span
  card network …       a call to a card network
  ledger Command       an order to the books, from when it was given to its answer
    shard batch        the call to the shard that carried it, beside others
"""

from starlette.types import Scope

from tollgate.actors.kernel.call_parts import PARTS
from tollgate.serve.payments.api.call import CallRecord
from tollgate.serve.ratelimit.fronts.front import BegunCall
from tollgate.serve.ratelimit.tracing.decided_calls import AnsweredCall
from tollgate.serve.ratelimit.tracing.propagation_headers import TRACE_HEADERS
from tollgate.serve.ratelimit.tracing.set_up import CallTracing

SERVICE_NAME = "Payments"
_HEADERS = frozenset(name.encode() for name in TRACE_HEADERS)


class RequestTracer:
    """Of one process. What is asked of the tracer is what a front of the rate limit asks."""

    def __init__(self, tracing: CallTracing) -> None:
        self._tracer = tracing.tracer

    def begin(self, scope: Scope) -> BegunCall | None:
        """A request that came; from now on its parts are noted, if it is traced."""
        said = [
            (name.decode(), value.decode("latin-1"))
            for name, value in scope["headers"]
            if name in _HEADERS
        ]
        begun = self._tracer.begin(said)
        PARTS.set(None if begun is None else [])
        return begun

    def end(self, begun: BegunCall, record: CallRecord, status: int, seconds: float) -> None:
        """A request that was answered."""
        parts = PARTS.get()
        told = {
            "http.request.method": record.method,
            "http.route": record.route,
            "http.response.status_code": str(status),
            "tollgate.request_id": record.request_id,
            "tollgate.merchant": record.merchant,
        }
        self._tracer.note(
            AnsweredCall(
                begun,
                f"{record.method} {record.route}",
                begun.arrived_s + seconds,
                tuple((name, value) for name, value in told.items() if value),
                tuple(parts or ()),
                f"HTTP status {status}" if status >= 500 else "",
            )
        )
