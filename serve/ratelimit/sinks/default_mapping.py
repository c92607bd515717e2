"""The default mapping (B19), for pages without a mapping of the operator's own."""

from tollgate.actors.kernel.latencies import LATENCY_BOUNDS_S
from tollgate.serve.ratelimit.sinks.mapping import Histogram, MappedMetric, MetricKind
from tollgate.serve.ratelimit.sinks.named_tags import Tags, parted
from tollgate.serve.ratelimit.sinks.prometheus_names import (
    OWN_LABELS,
    RESPONSE_TIME_FAMILY,
    counter_metric,
    escaped,
)

# Fixed texts: no request text.
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
_TIMES_SUFFIX = ".duration"
_SERVER_PREFIX, _RESPONSE_TIME_SUFFIX = "ratelimit_server.", ".response_time"
_SECONDS = Histogram(LATENCY_BOUNDS_S)
# (numbers of things are in thousandths where they are counted)
_PIECES = Histogram(tuple(1_000 * bound for bound in LATENCY_BOUNDS_S if bound >= 0.001))
_RESPONSE_TIME_HELP = "How long gRPC calls took to answer."


class DefaultMapper:
    """The mapping of `prometheus_names.py`. `has_milliseconds`: response times in milliseconds
    under the same name, as PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS asks for."""

    label_names = OWN_LABELS

    def __init__(self, *, has_milliseconds: bool) -> None:
        self._scale = 1.0 if has_milliseconds else 0.001
        per_second = 1_000 * self._scale
        self._times = Histogram(tuple(bound_s * per_second for bound_s in LATENCY_BOUNDS_S))

    def metric(self, name: str, kind: MetricKind) -> MappedMetric:
        """Where a statistic is shown."""
        if kind is MetricKind.GAUGE:
            head, tags = parted(name)
            return MappedMetric(escaped(head), tags)
        if kind is MetricKind.COUNTER:
            found = counter_metric(name)
            return MappedMetric(found.family, found.labels, _HELP.get(found.family, ""))
        if not name.startswith(_SERVER_PREFIX):
            return _times(*parted(name))
        method = name.removeprefix(_SERVER_PREFIX).removesuffix(_RESPONSE_TIME_SUFFIX)
        labels = (("grpc_method", method),)
        return MappedMetric(
            RESPONSE_TIME_FAMILY, labels, _RESPONSE_TIME_HELP, self._scale, self._times
        )


def _times(head: str, tags: Tags) -> MappedMetric:
    """A histogram of another service: of seconds, or of things."""
    if head.endswith(_TIMES_SUFFIX):
        return MappedMetric(f"{escaped(head)}_seconds", tags, scale=0.001, observer=_SECONDS)
    return MappedMetric(escaped(head), tags, observer=_PIECES)
