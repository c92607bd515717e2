"""Counts requests and writes the request log (docs/operations.md, Metrics and Logs).

A name is made of the route that answered, as the API's document writes it, and of the status; never
of what a caller sent. So there are as many names as there are routes and statuses.
"""

import logging
from dataclasses import dataclass

from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.payments.api.call import CallRecord

LOG = logging.getLogger("tollgate.payments.requests")
REQUESTS = "payments.requests"
TIMES = "payments.request.duration"


@dataclass(frozen=True, slots=True)
class _Names:
    requests: str
    times: str


class RequestMeter:
    """Of one process."""

    def __init__(self, tallies: Tallies) -> None:
        self._tallies = tallies
        self._names: dict[tuple[str, str, int], _Names] = {}

    def note(self, record: CallRecord, status: int, seconds: float) -> None:
        """One request that was answered."""
        key = record.method, record.route, status
        names = self._names.get(key)
        if names is None:
            names = self._names[key] = _named(*key)
        self._tallies.count(names.requests)
        self._tallies.observe(names.times, 1, seconds)
        if LOG.isEnabledFor(logging.INFO):
            LOG.info(
                "%s %s: %d",
                record.method,
                record.route,
                status,
                extra={"fields": record.fields(status, seconds)},
            )


def _named(method: str, route: str, status: int) -> _Names:
    of_route = f".__method={method}.__route={route}"
    return _Names(f"{REQUESTS}{of_route}.__status={status}", f"{TIMES}{of_route}")
