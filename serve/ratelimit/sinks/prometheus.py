"""The metrics page: the totals in Prometheus' text format, on a port of its own (B19).

Counters have no `_total` at the end of their names, because the reference's have none and
dashboards know them. The library appends it to whatever is declared a counter; so they are declared
untyped, and the type lines are set right in its output.

Series that a mapping gives the same name and labels are summed. A family is of one type: what comes
under its name with another type is left out, and said once.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from prometheus_client import generate_latest
from prometheus_client.core import Metric, Sample
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tollgate.actors.kernel.clock import Clock, SystemClock
from tollgate.actors.kernel.latencies import Latency
from tollgate.actors.ratelimit.statistics.totals import Statistics, times_name
from tollgate.serve.ratelimit.sinks.default_mapping import DefaultMapper
from tollgate.serve.ratelimit.sinks.mapping import MappedMetric, MetricKind, Summary
from tollgate.serve.ratelimit.sinks.prometheus_names import Labels, tag_labels
from tollgate.serve.ratelimit.sinks.response_times import (
    RecentLatencies,
    histogram_samples,
    summary_samples,
)

LOG = logging.getLogger("tollgate.operations")
_WHOLE_NUMBER = re.compile(rb"( -?[0-9]+)\.0\n")
_HELP_OF_OTHERS = "A statistic under its own name."
# Help is one line, and none of it ends as a type line does.
_HELP_ENDS = re.compile(r"(?<!\s)\s++untyped\s*+$")


class Mapper(Protocol):
    """Where statistics are shown."""

    @property
    def label_names(self) -> frozenset[str]: ...

    def metric(self, name: str, kind: MetricKind) -> MappedMetric | None: ...


@dataclass(slots=True)
class _Family:
    """A family that is being put together: samples by labels, in text order."""

    kind: str
    help: str
    values: dict[Labels, float] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)


class MetricsText:
    """Renders statistics as Prometheus text, with `extra_tags` as labels of every series.

    Raises ValueError when a tag cannot be a label (see `tag_labels`). `clock`: for quantiles.
    """

    def __init__(
        self,
        extra_tags: Mapping[str, str] | None = None,
        *,
        has_milliseconds: bool = False,
        mapper: Mapper | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._mapper = mapper or DefaultMapper(has_milliseconds=has_milliseconds)
        self._tags = tag_labels(extra_tags or {}, self._mapper.label_names)
        self._clock = clock or SystemClock()
        self._recent: dict[float, RecentLatencies] = {}
        self._refused: set[str] = set()
        self._rendering = Lock()

    def render(self, statistics: Statistics) -> bytes:
        """The text, version 0.0.4, in UTF-8."""
        with self._rendering:
            families = _Families(self._families(statistics))
            text = generate_latest(families).replace(b" untyped\n", b" counter\n")
        # Whole numbers as the reference writes them: scripts compare with `1`.
        return _WHOLE_NUMBER.sub(rb"\1\n", text)

    def _families(self, statistics: Statistics) -> Iterator[Metric]:
        families: dict[str, _Family] = {}
        for kind, values in (
            (MetricKind.COUNTER, statistics.counters),
            (MetricKind.GAUGE, statistics.gauges),
        ):
            for name, value in values.items():
                self._add(families, name, kind, value)
        for method, latency in statistics.latencies.items():
            self._add_times(families, method, latency, statistics)
        for name, family in families.items():
            metric = Metric(name, family.help or _HELP_OF_OTHERS, family.kind)
            metric.samples = [
                *(
                    Sample(name, dict(self._tags + labels), value)
                    for labels, value in family.values.items()
                ),
                *family.samples,
            ]
            yield metric

    def _add(self, families: dict[str, _Family], name: str, kind: MetricKind, value: float) -> None:
        metric = self._mapper.metric(name, kind)
        if metric is None:
            return
        family = self._family(families, metric, "gauge" if kind is MetricKind.GAUGE else "unknown")
        if family is not None:
            before = family.values.get(metric.labels, 0)
            family.values[metric.labels] = before + value * metric.scale

    def _add_times(
        self, families: dict[str, _Family], method: str, latency: Latency, now: Statistics
    ) -> None:
        metric = self._mapper.metric(times_name(method), MetricKind.OBSERVER)
        if metric is None or metric.observer is None:
            return
        shown, labels = metric.observer, dict(self._tags + metric.labels)
        per_second = 1_000 * metric.scale
        is_summary = isinstance(shown, Summary)
        family = self._family(families, metric, "summary" if is_summary else "histogram")
        if family is None:
            return
        if isinstance(shown, Summary):
            both = (latency, self._late(shown, method, latency, now))
            more = summary_samples(metric.family, labels, shown, both, per_second)
        else:
            more = histogram_samples(metric.family, labels, shown, latency, per_second)
        family.samples = _summed(family.samples, more)

    def _late(self, shown: Summary, method: str, latency: Latency, now: Statistics) -> Latency:
        recent = self._recent.setdefault(shown.max_age_s, RecentLatencies(shown.max_age_s))
        now_s = self._clock.monotonic_s()
        recent.note(now.latencies, now_s)
        return recent.since(method, latency, now_s)

    def _family(
        self, families: dict[str, _Family], metric: MappedMetric, kind: str
    ) -> _Family | None:
        family = families.get(metric.family)
        if family is None:
            help_text = _HELP_ENDS.sub("", metric.help)
            family = families[metric.family] = _Family(kind, help_text)
        if family.kind == kind:
            return family
        if metric.family not in self._refused:
            self._refused.add(metric.family)
            LOG.warning("%s is mapped to two types of metric: one is left out", metric.family)
        return None


def _summed(samples: list[Sample], more: Iterator[Sample]) -> list[Sample]:
    """Samples of two statistics that are mapped to one series are one; of quantiles the first."""
    found = {(each.name, tuple(sorted(each.labels.items()))): each for each in samples}
    for each in more:
        key = each.name, tuple(sorted(each.labels.items()))
        before = found.get(key)
        if before is None:
            found[key] = each
        elif "quantile" not in each.labels:
            found[key] = before._replace(value=before.value + each.value)
    return list(found.values())


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
