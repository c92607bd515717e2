"""Reads PROMETHEUS_MAPPER_YAML: a mapping of one's own, in the format of statsd_exporter.

    defaults: {match_type, observer_type, buckets, quantiles, histogram_options, summary_options}
    mappings:
    - match: "ratelimit.service.rate_limit.*.*.total_hits"    the one that matches first wins; globs
      match_type: glob                                        come before regular expressions
      match_metric_type: counter                              or gauge, observer; else any
      name: rate_limit_total_hits                             `$1` is what the first `*` or group is
      labels: {domain: "$1"}
      action: map                                             or drop
      help, scale                                             values are multiplied by `scale`
      observer_type: histogram                                or summary, of response times in ms
      histogram_options: {buckets: [0.01, 1]}
      summary_options: {quantiles: [{quantile: 0.9, error: 0.01}], max_age: 10m}

Whatever else the format has is refused with its line, never ignored.
"""

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import NoReturn, TypeVar

from tollgate.actors.ratelimit.rules.rule_file import RuleFile, RuleFileError
from tollgate.actors.ratelimit.rules.yaml_document import (
    YamlList,
    YamlMap,
    YamlNode,
    YamlScalar,
    read_yaml,
)
from tollgate.serve.ratelimit.sinks.mapping import (
    FamilyMapping,
    Histogram,
    MetricKind,
    MetricMapper,
    Observer,
    Summary,
)
from tollgate.serve.settings.outside.expressions import BadExpressionError, Expression, compiled
from tollgate.serve.settings.values import BadValueError, duration

MAPPINGS_MAX = 10_000
DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
DEFAULT_QUANTILES = (0.5, 0.9, 0.99)
DEFAULT_MAX_AGE_S = 600.0

# Why a known field is refused, and what to do.
_UNSUPPORTED = {
    "ttl": "series named by requests are forgotten after an hour: remove it",
    "honor_labels": "EXTRA_TAGS may not have the names of labels: remove it",
    "glob_disable_ordering": "mappings are tried in their order: remove it",
    "native_histogram_bucket_factor": "there are histograms with buckets alone: remove it",
    "native_histogram_max_buckets": "there are histograms with buckets alone: remove it",
    "age_buckets": "max_age alone says how old a response time may be: remove it",
    "buf_cap": "nothing is buffered: remove it",
}
_METRIC_NAME = re.compile(r"(?:[a-zA-Z_]|\$\{?\w++\}?)(?:[a-zA-Z0-9_]|\$\{?\w++\}?)*")
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_GLOB = re.compile(r"(?:\*|[^*.\s]+)(?:\.(?:\*|[^*.\s]+))*")
_KINDS = {
    "counter": MetricKind.COUNTER,
    "gauge": MetricKind.GAUGE,
    "observer": MetricKind.OBSERVER,
    "timer": MetricKind.OBSERVER,
}
_OBSERVERS = ("histogram", "summary")

Value = TypeVar("Value")
Fields = dict[str, YamlNode]


class MappingFileError(ValueError):
    """A mapping that cannot be used; `str()` is one line with file, line and what to do."""


def read_mapper(name: str, content: bytes) -> MetricMapper:
    """The mapper of a file's content. Raises MappingFileError."""
    try:
        document = read_yaml(RuleFile(name, content))
    except RuleFileError as error:
        raise MappingFileError(f"{error}".replace("error loading config file: ", "")) from None
    return _Reader(name).mapper(document.root)


class _Reader:
    """Reads one file, in the words of its lines."""

    def __init__(self, file: str) -> None:
        self._file = file

    def mapper(self, root: YamlNode | None) -> MetricMapper:
        if root is None:
            raise MappingFileError(
                f"{self._file}: is empty: name a file with mappings, or unset it"
            )
        fields = self._fields(root, ("defaults", "mappings"))
        default_fields: Fields = {}
        if "defaults" in fields:
            names = ("match_type", "observer_type", "timer_type", "buckets", "quantiles")
            options = ("histogram_options", "summary_options")
            default_fields = self._fields(fields["defaults"], (*names, *options))
        buckets, quantiles, max_age_s = self._options(
            default_fields, DEFAULT_BUCKETS, DEFAULT_QUANTILES, DEFAULT_MAX_AGE_S
        )
        self._defaults = (buckets, quantiles, max_age_s)
        self._is_regex = self._word(default_fields, "match_type", ("glob", "regex")) == "regex"
        self._observer_word = self._observer_type(default_fields) or "summary"
        items = self._items(fields["mappings"]) if "mappings" in fields else ()
        if len(items) > MAPPINGS_MAX:
            self._refuse(items[MAPPINGS_MAX], f"there are more than {MAPPINGS_MAX} mappings")
        unmapped = self._observer(self._observer_word, self._defaults)
        return MetricMapper([self._mapping(item) for item in items], unmapped)

    def _mapping(self, node: YamlNode) -> FamilyMapping:
        names = ("match", "match_type", "match_metric_type", "name", "labels", "action", "help")
        observers = ("observer_type", "timer_type", "buckets", "quantiles")
        options = ("scale", "histogram_options", "summary_options")
        fields = self._fields(node, (*names, *observers, *options))
        if "match" not in fields:
            self._refuse(node, "a mapping needs match")
        is_drop = self._word(fields, "action", ("map", "drop")) == "drop"
        if "name" not in fields and not is_drop:
            self._refuse(node, "a mapping needs a name, or action: drop")
        name = self._text(fields["name"]) if "name" in fields else ""
        if name and not _METRIC_NAME.fullmatch(name):
            self._refuse(fields["name"], f"{name!r} is no name of a metric")
        kind = self._word(fields, "match_metric_type", tuple(_KINDS))
        scale = self._number(fields["scale"]) if "scale" in fields else 1.0
        return FamilyMapping(
            pattern=self._pattern(fields),
            is_glob=not self._has_regex(fields),
            kind=_KINDS[kind] if kind else None,
            family=name,
            labels=self._labels(fields.get("labels")),
            is_dropped=is_drop,
            help=self._text(fields["help"]) if "help" in fields else "",
            scale=scale,
            observer=self._observer(
                self._observer_type(fields) or self._observer_word,
                self._options(fields, *self._defaults),
            ),
        )

    def _has_regex(self, fields: Fields) -> bool:
        word = self._word(fields, "match_type", ("glob", "regex"))
        return word == "regex" if word else self._is_regex

    def _pattern(self, fields: Fields) -> Expression:
        node = fields["match"]
        text = self._text(node)
        if not self._has_regex(fields):
            if not _GLOB.fullmatch(text):
                self._refuse(node, f"{text!r}: a * stands for a whole part between dots")
            # (linear in Python's own way of matching, too: a part ends at its dot)
            return re.compile(rf"\A{re.escape(text)}\Z".replace(r"\*", r"([^.]*)"))
        try:
            return compiled(text)
        except BadExpressionError as error:
            self._refuse(node, f"{text!r} is not a regular expression: {error}")

    def _labels(self, node: YamlNode | None) -> tuple[tuple[str, str], ...]:
        if node is None:
            return ()
        labels = {key: self._text(value) for key, value in self._fields(node, None).items()}
        for label in labels:
            if not _LABEL_NAME.fullmatch(label) or label in {"le", "quantile"}:
                self._refuse(node, f"{label!r} cannot be the name of a label")
        return tuple(labels.items())

    def _observer_type(self, fields: Fields) -> str:
        newer = self._word(fields, "observer_type", _OBSERVERS)
        return newer or self._word(fields, "timer_type", _OBSERVERS)

    def _observer(
        self, word: str, options: tuple[tuple[float, ...], tuple[float, ...], float]
    ) -> Observer:
        buckets, quantiles, max_age_s = options
        return Histogram(buckets) if word == "histogram" else Summary(quantiles, max_age_s)

    def _options(
        self,
        fields: Fields,
        buckets: tuple[float, ...],
        quantiles: tuple[float, ...],
        max_age_s: float,
    ) -> tuple[tuple[float, ...], tuple[float, ...], float]:
        """What a mapping says of its observer, each in one of two places; else these."""
        for name, place in (("buckets", "histogram_options"), ("quantiles", "summary_options")):
            if place not in fields:
                continue
            allowed = (name, "max_age") if name == "quantiles" else (name,)
            inner = self._fields(fields[place], allowed)
            if name in inner and name in fields:
                self._refuse(fields[name], f"{name} is in {place} as well: leave one")
            fields = fields | inner
        if "buckets" in fields:
            buckets = tuple(map(self._number, self._items(fields["buckets"]))) or buckets
            if list(buckets) != sorted(set(buckets)):
                self._refuse(fields["buckets"], "buckets grow from one to the next: sort them")
        if "quantiles" in fields:
            items = self._items(fields["quantiles"])
            quantiles = tuple(map(self._quantile, items)) or quantiles
        if "max_age" in fields:
            max_age_s = self._duration(fields["max_age"])
        return buckets, quantiles, max_age_s

    def _quantile(self, node: YamlNode) -> float:
        fields = self._fields(node, ("quantile", "error"))
        if "quantile" not in fields:
            self._refuse(node, "a quantile is written {quantile: 0.9, error: 0.01}")
        quantile = self._number(fields["quantile"])
        if not 0 <= quantile <= 1:
            self._refuse(fields["quantile"], "a quantile is between 0 and 1")
        return quantile

    # Nodes of the document

    def _fields(self, node: YamlNode, allowed: tuple[str, ...] | None) -> Fields:
        if not isinstance(node, YamlMap):
            self._refuse(node, "here is a mapping of names to values")
        found: Fields = {}
        for key, value in node.pairs:
            name = self._text(key)
            if allowed is not None and name not in allowed:
                why = _UNSUPPORTED.get(name, f"known are {', '.join(allowed)}")
                self._refuse(key, f"{name} is not supported: {why}")
            found[name] = value
        return found

    def _items(self, node: YamlNode) -> tuple[YamlNode, ...]:
        if isinstance(node, YamlScalar) and node.value is None:
            return ()
        if not isinstance(node, YamlList):
            self._refuse(node, "here is a list")
        return node.items

    def _text(self, node: YamlNode) -> str:
        if not isinstance(node, YamlScalar):
            self._refuse(node, "here is a text")
        return node.text

    def _word(self, fields: Mapping[str, YamlNode], name: str, words: tuple[str, ...]) -> str:
        """One of these words; empty when there is none."""
        if name not in fields:
            return ""
        word = self._text(fields[name])
        if word and word not in words:
            self._refuse(fields[name], f"{name} is one of {', '.join(words)}, not {word!r}")
        return word

    def _number(self, node: YamlNode) -> float:
        return self._read(node, _finite, "is not a number")

    def _duration(self, node: YamlNode) -> float:
        return self._read(node, duration("1s", "24h"), "is not a duration between 1s and 24h")

    def _read(self, node: YamlNode, read: Callable[[str], Value], problem: str) -> Value:
        text = self._text(node)
        try:
            return read(text)
        except (ValueError, BadValueError):
            self._refuse(node, f"{text!r} {problem}")

    def _refuse(self, node: YamlNode, problem: str) -> NoReturn:
        raise MappingFileError(f"{self._file}: line {node.line}: {problem}") from None


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number
