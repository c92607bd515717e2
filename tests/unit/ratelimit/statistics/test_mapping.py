"""A mapping of the operator's own: what matches, what it becomes, and what is refused."""

from textwrap import dedent

import pytest

from tollgate.serve.ratelimit.sinks.mapping import Histogram, MetricKind, MetricMapper, Summary
from tollgate.serve.ratelimit.sinks.mapping_file import (
    DEFAULT_BUCKETS,
    DEFAULT_QUANTILES,
    MappingFileError,
    read_mapper,
)

HITS = "ratelimit.service.rate_limit.shop.path.total_hits"


def mapper(text: str) -> MetricMapper:
    return read_mapper("map.yaml", dedent(text).encode())


def shown(text: str, name: str = HITS, kind: MetricKind = MetricKind.COUNTER) -> str | None:
    metric = mapper(text).metric(name, kind)
    if metric is None:
        return None
    labels = ",".join(f"{label}={value}" for label, value in metric.labels)
    return f"{metric.family}{{{labels}}}"


ONE = "mappings: [{{match: '{match}', name: '{name}', labels: {{k: '{label}'}}}}]"


@pytest.mark.parametrize(
    ("match", "name", "label", "metric"),
    [
        ("ratelimit.service.rate_limit.*.*.total_hits", "hits", "$1/$2", "hits{k=shop/path}"),
        ("ratelimit.service.rate_limit.*.*.*", "rl_$3", "${1}x", "rl_total_hits{k=shopx}"),
        ("ratelimit.service.rate_limit.*.*.*", "rl_${3}_x", "$9", "rl_total_hits_x{k=}"),
        # A * is one part; one that is missing, or one more, is something else.
        ("ratelimit.service.rate_limit.*.total_hits", "hits", "$1", None),
        ("ratelimit.service.rate_limit.*.*.*.total_hits", "hits", "$1", None),
        ("ratelimit.service.rate_limit.*.*.total", "hits", "$1", None),
    ],
)
def test_globs(match: str, name: str, label: str, metric: str | None) -> None:
    unmapped = "ratelimit_service_rate_limit_shop_path_total_hits{}"
    assert shown(ONE.format(match=match, name=name, label=label)) == (metric or unmapped)


@pytest.mark.parametrize(
    ("match", "label", "metric"),
    [
        (r"rate_limit\.([^.]+)\.(.+)\.total_hits$", "$2.$1", "hits{k=path.shop}"),
        (r"rate_limit\.(?P<domain>[^.]+)", "$domain", "hits{k=shop}"),
        (r"(nothing)?shop", "[$1]", "hits{k=[]}"),
        (r"rate_limit\.([[:alnum:]_-]+)", "$1", "hits{k=shop}"),
        # A name goes as far as letters, digits and underscores do.
        (r"rate_limit\.(\w+)", "$1_x ${1}_x $$1", "hits{k= shop_x $1}"),
    ],
)
def test_regular_expressions_match_anywhere(match: str, label: str, metric: str) -> None:
    one = ONE.format(match=match, name="hits", label=label)
    assert shown(f"defaults: {{match_type: regex}}\n{one}") == metric


def test_the_first_glob_wins_and_globs_come_before_expressions() -> None:
    text = """
        mappings:
        - {match: "total_hits", match_type: regex, name: by_expression}
        - {match: "ratelimit.*.*.*.*.total_hits", name: first}
        - {match: "ratelimit.service.*.*.*.total_hits", name: second}
    """
    assert shown(text) == "first{}"
    assert shown(text, "other.total_hits") == "by_expression{}"


def test_a_mapping_may_be_for_one_type_and_may_drop() -> None:
    text = """
        defaults: {match_type: regex}
        mappings:
        - {match: "^a", match_metric_type: gauge, name: gauges}
        - {match: "^a", match_metric_type: counter, action: drop}
        - {match: "^a", match_metric_type: timer, name: times}
    """
    assert shown(text, "a.b", MetricKind.GAUGE) == "gauges{}"
    assert shown(text, "a.b", MetricKind.COUNTER) is None
    assert shown(text, "a.b", MetricKind.OBSERVER) == "times{}"
    assert shown(text, "b.c-d", MetricKind.GAUGE) == "b_c_d{}"


def test_observers() -> None:
    text = """
        defaults:
          observer_type: histogram
          histogram_options: {buckets: [1, 2.5]}
          summary_options: {max_age: 1m}
        mappings:
        - {match: a, name: a}
        - {match: b, name: b, buckets: [7]}
        - {match: c, name: c, timer_type: summary, quantiles: [{quantile: 0.75, error: 0.1}]}
        - {match: d, name: d, observer_type: summary, scale: 0.001, help: How long.}
    """
    found = {name: mapper(text).metric(name, MetricKind.OBSERVER) for name in "abcde"}
    assert {name: metric and metric.observer for name, metric in found.items()} == {
        "a": Histogram((1.0, 2.5)),
        "b": Histogram((7.0,)),
        "c": Summary((0.75,), 60.0),
        "d": Summary(DEFAULT_QUANTILES, 60.0),
        "e": Histogram((1.0, 2.5)),
    }
    last = found["d"]
    assert last is not None
    assert (last.scale, last.help) == (0.001, "How long.")


def test_without_a_word_response_times_are_summaries() -> None:
    metric = mapper("mappings: []").metric("a", MetricKind.OBSERVER)
    assert metric is not None
    assert metric.observer == Summary(DEFAULT_QUANTILES, 600.0)
    histogram = mapper("defaults: {timer_type: histogram}").metric("a", MetricKind.OBSERVER)
    assert histogram is not None
    assert histogram.observer == Histogram(DEFAULT_BUCKETS)


def test_labels_of_all_mappings_are_known() -> None:
    text = "mappings: [{match: a, name: a, labels: {x: y}}, {match: b, name: b, labels: {z: '1'}}]"
    assert mapper(text).label_names == {"x", "z"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "map.yaml: is empty: name a file with mappings, or unset it"),
        ("a: [", "map.yaml: yaml: line 2: did not find"),
        ("- a", "map.yaml: line 1: here is a mapping of names to values"),
        ("mapping: []", "line 1: mapping is not supported: known are defaults, mappings"),
        ("mappings: {a: b}", "line 1: here is a list"),
        ("mappings:\n- {name: n}", "line 2: a mapping needs match"),
        ("mappings:\n- {match: n}", "line 2: a mapping needs a name, or action: drop"),
        ("mappings:\n- match: a\n  name: 1x", "line 3: '1x' is no name of a metric"),
        ("mappings:\n- match: a*\n  name: n", "line 2: 'a*': a * stands for a whole part"),
        (
            "mappings:\n- {match: '(', match_type: regex, name: n}",
            "line 2: '(' is not a regular expression: missing )",
        ),
        (
            "mappings:\n- {match: 'a(?=b)', match_type: regex, name: n}",
            "line 2: 'a(?=b)' is not a regular expression: invalid perl operator: (?=",
        ),
        (
            "mappings:\n- {match: a, name: n, match_type: exact}",
            "line 2: match_type is one of glob, regex, not 'exact'",
        ),
        (
            "mappings:\n- {match: a, name: n, action: keep}",
            "line 2: action is one of map, drop, not 'keep'",
        ),
        ("mappings:\n- {match: a, name: n, labels: {1a: b}}", "'1a' cannot be the name of a label"),
        ("mappings:\n- {match: a, name: n, labels: {le: b}}", "'le' cannot be the name of a label"),
        ("mappings:\n- {match: a, name: n, scale: much}", "line 2: 'much' is not a number"),
        ("mappings:\n- {match: a, name: n, scale: .inf}", "line 2: '.inf' is not a number"),
        (
            "mappings:\n- match: a\n  name: n\n  ttl: 1m",
            "line 4: ttl is not supported: series named by requests are forgotten after an hour: "
            "remove it",
        ),
        (
            "defaults:\n  glob_disable_ordering: true",
            "line 2: glob_disable_ordering is not supported: mappings are tried in their order",
        ),
        (
            "mappings:\n- {match: a, name: n, summary_options: {age_buckets: 3}}",
            "line 2: age_buckets is not supported: max_age alone says",
        ),
        (
            "defaults: {histogram_options: {native_histogram_max_buckets: 3}}",
            "line 1: native_histogram_max_buckets is not supported: there are histograms",
        ),
        (
            "mappings:\n- {match: a, name: n, buckets: [1], histogram_options: {buckets: [2]}}",
            "line 2: buckets is in histogram_options as well: leave one",
        ),
        ("defaults: {buckets: [2, 1]}", "line 1: buckets grow from one to the next: sort them"),
        ("defaults: {quantiles: [{quantile: 2}]}", "line 1: a quantile is between 0 and 1"),
        ("defaults: {quantiles: [{error: 2}]}", "line 1: a quantile is written {quantile: 0.9"),
        (
            "defaults: {summary_options: {max_age: soon}}",
            "line 1: 'soon' is not a duration between 1s and 24h",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_line(text: str, line: str) -> None:
    with pytest.raises(MappingFileError) as caught:
        read_mapper("map.yaml", text.encode())
    said = str(caught.value)
    assert said.startswith("map.yaml: ")
    assert line in said
    assert "\n" not in said
