"""Maps names of statistics to Prometheus families by an operator's own rules.

Globs are tried before regular expressions, each in their order; the first that matches wins, and a
name that none matches stays as it is, with its tags (`named_tags.py`) as labels. In families and
labels `$1` and `${1}` are what the first `*` or group matched, `$name` a named group, `$$` a
dollar; what is not there is empty.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from tollgate.actors.kernel.bounded_cache import LruCache
from tollgate.serve.ratelimit.sinks.named_tags import parted
from tollgate.serve.ratelimit.sinks.prometheus_names import Labels, escaped
from tollgate.serve.settings.outside.expressions import Expression, ExpressionMatch

NAMES_MAX = 65_536
"""Names whose outcome is remembered: a page asks for all of them at every scrape."""
_REFERENCE = re.compile(r"\$(?:(\$)|\{(\w+)\}|(\w+))")


class MetricKind(Enum):
    """What a statistic is."""

    COUNTER = auto()
    GAUGE = auto()
    OBSERVER = auto()


@dataclass(frozen=True, slots=True)
class Histogram:
    """Response times by buckets; `bounds` are in the unit that the page shows."""

    bounds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """Quantiles of the response times of the last `max_age_s`."""

    quantiles: tuple[float, ...]
    max_age_s: float


Observer = Histogram | Summary


@dataclass(frozen=True, slots=True)
class FamilyMapping:
    """One rule. `pattern` may match anywhere in a name. `kind` None: any. `family`, and the values
    of `labels`, are templates."""

    pattern: Expression
    is_glob: bool
    kind: MetricKind | None
    family: str
    labels: Labels
    is_dropped: bool
    help: str
    scale: float
    observer: Observer


@dataclass(frozen=True, slots=True)
class MappedMetric:
    """A family, the labels of one series in it, and how its values are shown."""

    family: str
    labels: Labels = ()
    help: str = ""
    scale: float = 1.0
    observer: Observer | None = None


class MetricMapper:
    """All rules, in their order. `unmapped`: how response times are shown that no rule is for."""

    def __init__(self, mappings: Iterable[FamilyMapping], unmapped: Observer) -> None:
        self._mappings = sorted(mappings, key=lambda each: not each.is_glob)
        self._unmapped = unmapped
        self._known: LruCache[tuple[str, MetricKind], tuple[MappedMetric | None]] = LruCache(
            NAMES_MAX
        )

    @property
    def label_names(self) -> frozenset[str]:
        """Every label that a rule gives."""
        return frozenset(label for each in self._mappings for label, _ in each.labels)

    def metric(self, name: str, kind: MetricKind) -> MappedMetric | None:
        """Where a statistic is shown; None: nowhere."""
        known = self._known.get((name, kind))
        if known is None:
            known = (self._mapped(name, kind),)
            self._known.put((name, kind), known)
        return known[0]

    def _mapped(self, name: str, kind: MetricKind) -> MappedMetric | None:
        for each in self._mappings:
            if each.kind not in (None, kind):
                continue
            found = each.pattern.search(name)
            if found is None:
                continue
            if each.is_dropped:
                return None
            labels = tuple((label, filled(value, found)) for label, value in each.labels)
            family = escaped(filled(each.family, found)) or escaped(name)
            return MappedMetric(family, labels, each.help, each.scale, each.observer)
        head, tags = parted(name)
        return MappedMetric(escaped(head), tags, observer=self._unmapped)


def filled(template: str, found: ExpressionMatch) -> str:
    """The template with what it refers to."""

    def value(reference: re.Match[str]) -> str:
        dollar, braced, plain = reference.groups()
        if dollar:
            return "$"
        name = braced or plain
        if name.isdecimal():
            return found[int(name)] or "" if len(name) < 4 and int(name) <= found.re.groups else ""
        return found[name] or "" if name in found.re.groupindex else ""

    return _REFERENCE.sub(value, template)
