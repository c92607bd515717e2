"""Maps dotted statistic names to Prometheus families and labels (B19).

    ratelimit.service.rate_limit.<domain>.<key1>[.<key2>…].<stat>, five stats
                               -> ratelimit_service_rate_limit_<stat>  {domain, key1[, key2]}
    ratelimit.service.call.should_rate_limit.<err_type>
                               -> ratelimit_service_should_rate_limit_error        {err_type}
    ratelimit_server.<method>.total_requests
                               -> ratelimit_service_total_requests              {grpc_method}
    ratelimit_server.<method>.response_time
                               -> ratelimit_service_response_time_seconds       {grpc_method}
    <other>.duration           -> <other>_duration_seconds                        {its tags}

A name that fits none of these is exported as itself, with every character that Prometheus does not
allow replaced by `_`; so are all gauges. Segments beyond key2 are dropped, and the series that then
coincide are summed. Tags in a name (`named_tags.py`) are labels. Extra tags become labels of every
series; they are no part of the name, so they cannot keep a name from being mapped.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tollgate.actors.ratelimit.statistics.tallies import RULES_PREFIX
from tollgate.serve.ratelimit.sinks.named_tags import parted

RESPONSE_TIME_FAMILY = "ratelimit_service_response_time_seconds"
_ERRORS_PREFIX = "ratelimit.service.call.should_rate_limit."
_SERVER_PREFIX = "ratelimit_server."
_REQUESTS_SUFFIX = ".total_requests"
_RULE_FAMILIES = {
    stat: f"ratelimit_service_rate_limit_{stat}"
    for stat in ("near_limit", "over_limit", "total_hits", "within_limit", "shadow_mode")
}
OWN_LABELS = frozenset({"domain", "key1", "key2", "err_type", "grpc_method"})
_LABELS_OF_TYPES = frozenset({"le", "quantile"})

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class MetricName:
    """A Prometheus family and the labels of one series in it."""

    family: str
    labels: Labels = ()


def counter_metric(name: str) -> MetricName:
    """The family and labels of a counter."""
    if name.startswith(RULES_PREFIX):
        *path, stat = name[len(RULES_PREFIX) :].split(".", 3)
        if len(path) == 3:
            # Whatever follows key2 is dropped, but for the statistic at its end.
            stat = stat.rpartition(".")[2]
        family = _RULE_FAMILIES.get(stat)
        if family is not None and len(path) >= 2:
            return MetricName(family, tuple(zip(("domain", "key1", "key2"), path, strict=False)))
    elif name.startswith(_ERRORS_PREFIX):
        return MetricName(
            "ratelimit_service_should_rate_limit_error",
            (("err_type", name[len(_ERRORS_PREFIX) :]),),
        )
    elif name.startswith(_SERVER_PREFIX) and name.endswith(_REQUESTS_SUFFIX):
        method = name[len(_SERVER_PREFIX) : -len(_REQUESTS_SUFFIX)]
        return MetricName("ratelimit_service_total_requests", (("grpc_method", method),))
    head, tags = parted(name)
    return MetricName(escaped(head), tags)


def escaped(name: str) -> str:
    """A dotted name as a Prometheus name: `_` for every character that is not allowed."""
    allowed = re.sub(r"[^a-zA-Z0-9_:]", "_", name)
    return f"_{allowed}" if allowed[:1].isdigit() else allowed


def tag_labels(extra_tags: Mapping[str, str], taken: frozenset[str] = OWN_LABELS) -> Labels:
    """EXTRA_TAGS as labels, beside those of the mapping, which are `taken`.

    Raises ValueError, with one line that names the tag, when it would be the same label as one of
    the mapping's or as another tag.
    """
    labels: dict[str, str] = {}
    for tag, value in extra_tags.items():
        label = escaped(tag).replace(":", "_")
        if label in taken | _LABELS_OF_TYPES:
            raise ValueError(
                f"EXTRA_TAGS: '{tag}' is already a label of the metrics; rename the tag"
            )
        if label in labels:
            raise ValueError(
                f"EXTRA_TAGS: '{tag}' and another tag are both the label '{label}'; rename one"
            )
        labels[label] = value
    return tuple(labels.items())
