"""The metrics page: the totals in Prometheus' text format, on a port of its own (B19).

Counters have no `_total` at the end of their names, because the reference's have none and
dashboards know them. The library appends it to whatever is declared a counter; so they are declared
untyped, and the type lines are set right in its output.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping

from prometheus_client import generate_latest
from prometheus_client.core import (
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    Sample,
    UnknownMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tollgate.actors.ratelimit.statistics.latencies import LATENCY_BOUNDS_S
from tollgate.actors.ratelimit.statistics.totals import Statistics
from tollgate.serve.ratelimit.sinks.prometheus_names import (
    RESPONSE_TIME_FAMILY,
    Labels,
    counter_metric,
    escaped,
    tag_labels,
)

# Fixed texts: no request text, and no line that ends in "untyped".
_HELP = {
    "ratelimit_service_rate_limit_near_limit": "Hits above the near-limit ratio of a rule.",
    "ratelimit_service_rate_limit_over_limit": "Hits over the limit of a rule.",
    "ratelimit_service_rate_limit_total_hits": "Hits on a rule.",
    "ratelimit_service_rate_limit_within_limit": "Hits within the limit of a rule.",
    "ratelimit_service_rate_limit_shadow_mode": "Hits over a limit that shadow mode let pass.",
    "ratelimit_service_should_rate_limit_error": "Decisions that failed, by kind of error.",
    "ratelimit_service_total_requests": "gRPC calls.",
    "ratelimit_service_config_load_success": "Rule sets that were loaded.",
    "ratelimit_service_config_load_error": "Rule sets that were refused.",
    "ratelimit_actors_ended": "Actors that hung and were ended, to be started anew.",
    "ratelimit_service_global_shadow_mode": "Answers that global shadow mode turned into OK.",
}
_WHOLE_NUMBER = re.compile(rb"( -?[0-9]+)\.0\n")
_HELP_OF_OTHERS = "A statistic under its own name."
_RESPONSE_TIME_HELP = "How long gRPC calls took to answer."


class MetricsText:
    """Renders statistics as Prometheus text, with `extra_tags` as labels of every series.

    `has_milliseconds`: response times in milliseconds under the same name, as
    PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS asks for.
    Raises ValueError when a tag cannot be a label (see `tag_labels`).
    """

    def __init__(
        self, extra_tags: Mapping[str, str] | None = None, *, has_milliseconds: bool = False
    ) -> None:
        self._tags = tag_labels(extra_tags or {})
        self._response_time_scale = 1_000 if has_milliseconds else 1

    def render(self, statistics: Statistics) -> bytes:
        """The text, version 0.0.4, in UTF-8."""
        families = _Families(self._families(statistics))
        text = generate_latest(families).replace(b" untyped\n", b" counter\n")
        # Whole numbers as the reference writes them: scripts compare with `1`.
        return _WHOLE_NUMBER.sub(rb"\1\n", text)

    def _families(self, statistics: Statistics) -> Iterator[Metric]:
        yield from self._counters(statistics.counters)
        yield from self._gauges(statistics.gauges)
        if statistics.latencies:
            yield self._response_times(statistics)

    def _counters(self, counters: Mapping[str, int]) -> Iterator[Metric]:
        families: dict[str, dict[Labels, int]] = {}
        for name, number in counters.items():
            metric = counter_metric(name)
            series = families.setdefault(metric.family, {})
            series[metric.labels] = series.get(metric.labels, 0) + number
        for family, series in families.items():
            counter = UnknownMetricFamily(family, _HELP.get(family, _HELP_OF_OTHERS))
            counter.samples = [
                Sample(family, dict(self._tags + labels), number)
                for labels, number in series.items()
            ]
            yield counter

    def _gauges(self, gauges: Mapping[str, float]) -> Iterator[Metric]:
        for name, value in gauges.items():
            gauge = GaugeMetricFamily(escaped(name), _HELP_OF_OTHERS)
            gauge.samples = [Sample(gauge.name, dict(self._tags), value)]
            yield gauge

    def _response_times(self, statistics: Statistics) -> Metric:
        scale = self._response_time_scale
        bounds = [*(repr(bound_s * scale) for bound_s in LATENCY_BOUNDS_S), "+Inf"]
        labels = ["grpc_method", *(label for label, _ in self._tags)]
        family = HistogramMetricFamily(RESPONSE_TIME_FAMILY, _RESPONSE_TIME_HELP, labels=labels)
        for method, latency in statistics.latencies.items():
            buckets = list(zip(bounds, latency.cumulative(), strict=True))
            values = [method, *(value for _, value in self._tags)]
            family.add_metric(values, buckets, latency.sum_s * scale)
        return family


def metrics_app(
    text: MetricsText, statistics: Callable[[], Awaitable[Statistics]], path: str = "/metrics"
) -> Starlette:
    """The app of the metrics port: one page at `path`."""

    async def metrics(_: Request) -> Response:
        # In a thread: ten thousand rules make a megabyte of text.
        body = await run_in_threadpool(text.render, await statistics())
        return Response(body, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return Starlette(routes=[Route(path, metrics)])


class _Families(Collector):
    """The families, in the form that the library renders from."""

    def __init__(self, families: Iterator[Metric]) -> None:
        self._metrics = families

    def collect(self) -> Iterator[Metric]:
        return self._metrics
