"""Response times as Prometheus shows them: as histograms, and as quantiles of late.

What is known of a call is the bucket that it fell into, of those in `actors/kernel/latencies.py`.
Buckets with other bounds get their shares of it, and quantiles lie straight between its bounds.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from math import inf, nan

from prometheus_client.core import Sample

from tollgate.actors.kernel.latencies import Latency
from tollgate.serve.ratelimit.sinks.mapping import Histogram, Summary

READINGS_MAX = 60


class RecentLatencies:
    """What the latencies were at earlier looks, for `max_age_s` back. Times are monotonic."""

    def __init__(self, max_age_s: float) -> None:
        self._max_age_s = max_age_s
        self._readings: deque[tuple[float, Mapping[str, Latency]]] = deque()

    def note(self, latencies: Mapping[str, Latency], now_s: float) -> None:
        """Keeps a reading, unless the last one is still young."""
        step_s = self._max_age_s / (READINGS_MAX - 2)
        if not self._readings or now_s >= self._readings[-1][0] + step_s:
            self._readings.append((now_s, latencies))
        # The one that is left of those that are older is what all others are compared with.
        while len(self._readings) > 1 and self._readings[1][0] <= now_s - self._max_age_s:
            self._readings.popleft()

    def since(self, name: str, latency: Latency, now_s: float) -> Latency:
        """The calls of late; all there were, when nobody looked before."""
        if not self._readings or self._readings[0][0] > now_s - self._max_age_s:
            return latency
        return latency.since(self._readings[0][1].get(name))


def histogram_samples(
    family: str, labels: dict[str, str], shown: Histogram, latency: Latency, per_second: float
) -> Iterator[Sample]:
    """`per_second`: what a second is on the page."""
    for bound in (*shown.bounds, inf):
        within = latency.count if bound == inf else latency.calls_within(bound / per_second)
        le = "+Inf" if bound == inf else repr(bound)
        yield Sample(f"{family}_bucket", {**labels, "le": le}, within)
    yield from _totals(family, labels, latency, per_second)


def summary_samples(
    family: str,
    labels: dict[str, str],
    shown: Summary,
    latencies: tuple[Latency, Latency],
    per_second: float,
) -> Iterator[Sample]:
    """`latencies`: of all calls, and of those of late."""
    latency, late = latencies
    for quantile in shown.quantiles:
        value = late.quantile_s(quantile) * per_second if late.count else nan
        yield Sample(family, {**labels, "quantile": f"{quantile:g}"}, value)
    yield from _totals(family, labels, latency, per_second)


def _totals(
    family: str, labels: dict[str, str], latency: Latency, per_second: float
) -> Iterator[Sample]:
    yield Sample(f"{family}_sum", labels, latency.sum_s * per_second)
    yield Sample(f"{family}_count", labels, latency.count)
