"""Counts requests and writes the request log (docs/operations.md, Metrics and Logs).

A name is made of the route that answered, as the API's document writes it, and of the status; never
of what a caller sent. So there are as many names as there are routes and statuses.
"""

import logging
from dataclasses import dataclass

from starlette.types import Scope

from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.payments.api.asgi import INTERNAL_STATUS
from tollgate.serve.payments.api.call import CallRecord
from tollgate.serve.payments.telemetry.request_tracer import RequestTracer
from tollgate.serve.ratelimit.fronts.front import BegunCall
from tollgate.serve.ratelimit.tracing.set_up import CallTracing

LOG = logging.getLogger("tollgate.payments.requests")
REQUESTS = "payments.requests"
TIMES = "payments.request.duration"


@dataclass(frozen=True, slots=True)
class _Names:
    requests: str
    times: str


class RequestMeter:
    """Of one process. `tracing` None: nothing is traced."""

    def __init__(self, tallies: Tallies, tracing: CallTracing | None = None) -> None:
        self._tallies = tallies
        self._tracer = None if tracing is None else RequestTracer(tracing)
        self._names: dict[tuple[str, str, int], _Names] = {}

    def begin(self, scope: Scope) -> BegunCall | None:
        """One request that came; None when it is not traced."""
        return None if self._tracer is None else self._tracer.begin(scope)

    def note(
        self, record: CallRecord, status: int, seconds: float, begun: BegunCall | None = None
    ) -> None:
        """One request that was answered; `begun`: as `begin` gave it."""
        if begun is not None and self._tracer is not None:
            self._tracer.end(begun, record, status, seconds)
        key = record.method, record.route, status
        names = self._names.get(key)
        if names is None:
            names = self._names[key] = _named(*key)
        self._tallies.count(names.requests)
        self._tallies.observe(names.times, 1, seconds)
        # (callers of what should not have happened are told that the log has their request's id)
        level = logging.ERROR if status == INTERNAL_STATUS else logging.INFO
        if LOG.isEnabledFor(level):
            fields = record.fields(status, seconds)
            LOG.log(level, "%s %s: %d", *key, extra={"fields": fields})


def _named(method: str, route: str, status: int) -> _Names:
    of_route = f".__method={method}.__route={route}"
    return _Names(f"{REQUESTS}{of_route}.__status={status}", f"{TIMES}{of_route}")
