"""The text of the metrics page, read back with the library's own parser."""

from collections.abc import Mapping
from math import isnan

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.manual_clock import ManualClock
from tollgate.actors.kernel.latencies import LATENCY_BOUNDS_S, Latency, LatencyTally
from tollgate.actors.ratelimit.statistics.totals import Statistics, Totals
from tollgate.serve.ratelimit.sinks.mapping_file import read_mapper
from tollgate.serve.ratelimit.sinks.prometheus import MetricsText

RULES = "ratelimit.service.rate_limit."
RESPONSE_TIME = "ratelimit_service_response_time_seconds"

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def statistics(
    counters: Mapping[str, int] | None = None,
    gauges: Mapping[str, float] | None = None,
    latencies: Mapping[str, Latency] | None = None,
) -> Statistics:
    return Statistics(counters or {}, gauges or {}, latencies or {})


def took(calls: int, seconds: float) -> Latency:
    tally = LatencyTally()
    tally.observe(calls, seconds)
    return tally.value()


def lines(text: bytes) -> set[str]:
    return set(text.decode().splitlines())


def samples(text: bytes) -> Samples:
    """Every sample by its name as written and its labels; each once."""
    found: Samples = {}
    for line in text.decode().splitlines():
        if line.startswith("#"):
            continue
        for family in text_string_to_metric_families(f"{line}\n"):
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in found, f"{line} is there twice"
                found[key] = sample.value
    return found


def test_counters_are_counters_without_total() -> None:
    text = MetricsText().render(
        statistics(
            {"ratelimit_server.ShouldRateLimit.total_requests": 1, f"{RULES}d.k.total_hits": 2}
        )
    )
    assert lines(text) >= {
        "# TYPE ratelimit_service_total_requests counter",
        'ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 1',
        "# TYPE ratelimit_service_rate_limit_total_hits counter",
        'ratelimit_service_rate_limit_total_hits{domain="d",key1="k"} 2',
    }
    assert b"_total" not in text.replace(b"_total_", b"")
    families = {
        family.name: family.type for family in text_string_to_metric_families(text.decode())
    }
    assert set(families.values()) == {"counter"}


def test_an_error_is_labelled_by_its_kind() -> None:
    text = MetricsText().render(
        statistics({"ratelimit.service.call.should_rate_limit.service_error": 3})
    )
    assert 'ratelimit_service_should_rate_limit_error{err_type="service_error"} 3' in lines(text)


def test_a_gauge_is_never_under_a_mapped_name() -> None:
    text = MetricsText().render(
        statistics(
            gauges={
                "ratelimit_server.ShouldRateLimit.total_requests": 2.5,
                "ratelimit.localcache.entryCount": 7,
            }
        )
    )
    assert lines(text) >= {
        "# TYPE ratelimit_server_ShouldRateLimit_total_requests gauge",
        "ratelimit_server_ShouldRateLimit_total_requests 2.5",
        "ratelimit_localcache_entryCount 7",
    }
    assert b"ratelimit_service_total_requests" not in text


@pytest.mark.parametrize(("has_milliseconds", "scale"), [(False, 1), (True, 1_000)])
def test_response_times_are_a_histogram(has_milliseconds: bool, scale: int) -> None:
    text = MetricsText(has_milliseconds=has_milliseconds).render(
        statistics(latencies={"ShouldRateLimit": took(1, 1.0)})
    )
    (family,) = text_string_to_metric_families(text.decode())
    assert (family.name, family.type) == (RESPONSE_TIME, "histogram")
    assert all(sample.labels["grpc_method"] == "ShouldRateLimit" for sample in family.samples)
    values = {sample.name: sample.value for sample in family.samples}
    assert values[f"{RESPONSE_TIME}_sum"] == 1.0 * scale
    assert values[f"{RESPONSE_TIME}_count"] == 1
    buckets = {
        float(sample.labels["le"]): sample.value
        for sample in family.samples
        if sample.name.endswith("_bucket")
    }
    assert list(buckets) == pytest.approx([*(s * scale for s in LATENCY_BOUNDS_S), float("inf")])
    assert {bound: calls for bound, calls in buckets.items() if calls} == dict.fromkeys(
        [bound for bound in buckets if bound >= 1.0 * scale], 1.0
    )


def test_series_that_coincide_without_their_deeper_segments_are_summed() -> None:
    text = MetricsText().render(
        statistics({f"{RULES}d.a.b.c.over_limit": 1, f"{RULES}d.a.b.x.y.over_limit": 2})
    )
    assert samples(text) == {
        (
            "ratelimit_service_rate_limit_over_limit",
            frozenset({("domain", "d"), ("key1", "a"), ("key2", "b")}),
        ): 3.0
    }


def test_names_that_coincide_when_escaped_are_summed_in_one_family() -> None:
    text = MetricsText().render(
        statistics({f"{RULES}a-b.domain_not_found": 1, f"{RULES}a/b.domain_not_found": 2})
    )
    assert text.count(b"# TYPE") == 1
    assert list(samples(text).values()) == [3.0]


def test_extra_tags_are_on_every_series_and_break_nothing() -> None:
    everything = statistics(
        {f"{RULES}basic.key1.total_hits": 1, "ratelimit.service.config_load_success": 1},
        {"ratelimit.localcache.entryCount": 1},
        {"ShouldRateLimit": took(1, 0.001)},
    )
    tagged = samples(MetricsText({"foo": "bar", "a": "b"}).render(everything))
    plain = samples(MetricsText().render(everything))
    tags = {("foo", "bar"), ("a", "b")}
    assert tagged == {(name, labels | tags): value for (name, labels), value in plain.items()}
    assert (
        "ratelimit_service_rate_limit_total_hits",
        frozenset({("domain", "basic"), ("key1", "key1"), *tags}),
    ) in tagged


def test_request_text_cannot_break_a_line() -> None:
    value = 'x"} 1\\n# TYPE y untyped\\'
    text = MetricsText().render(statistics({f"{RULES}d.k_{value}.over_limit": 1}))
    assert samples(text) == {
        (
            "ratelimit_service_rate_limit_over_limit",
            frozenset({("domain", "d"), ("key1", f"k_{value}")}),
        ): 1.0
    }
    assert text.count(b"\n") == 3


def test_every_family_has_one_help_and_one_type() -> None:
    totals = Totals()
    text = MetricsText().render(totals.statistics()).decode()
    heads = [line.split()[:3] for line in text.splitlines() if line.startswith("#")]
    assert len(heads) == len({tuple(head) for head in heads})
    for family in text_string_to_metric_families(text):
        assert family.documentation.endswith(".")


# A mapping of one's own

OWN = b"""
mappings:
- match: ratelimit.service.rate_limit.*.*.total_hits
  name: hits
  labels: {domain: "$1"}
  scale: 2
- {match: "ratelimit.localcache.*", name: hits}
- {match: "ratelimit.counters.*", action: drop}
- match: ratelimit_server.*.response_time
  name: times
  labels: {method: "$1"}
  observer_type: histogram
  scale: 0.001
  buckets: [0.001, 0.0025, 10]
- {match: nothing, name: hits, help: is untyped}
"""


def own_text(content: bytes = OWN, clock: ManualClock | None = None, **tags: str) -> MetricsText:
    return MetricsText(tags, mapper=read_mapper("map.yaml", content), clock=clock or ManualClock())


def test_a_mapping_takes_the_place_of_the_default_one() -> None:
    text = own_text(zone="eu").render(
        statistics(
            {f"{RULES}d.k.total_hits": 2, f"{RULES}d.l.total_hits": 3, f"{RULES}d.k.over_limit": 1},
            {"ratelimit.counters.entries": 5},
            {"Check": took(4, 0.002)},
        )
    )
    found = samples(text)
    tag = ("zone", "eu")
    method = ("method", "Check")
    assert found == {
        ("hits", frozenset({("domain", "d"), tag})): 10,
        ("ratelimit_service_rate_limit_d_k_over_limit", frozenset({tag})): 1,
        ("times_bucket", frozenset({method, tag, ("le", "0.001")})): 0,
        ("times_bucket", frozenset({method, tag, ("le", "0.0025")})): 4,
        ("times_bucket", frozenset({method, tag, ("le", "10.0")})): 4,
        ("times_bucket", frozenset({method, tag, ("le", "+Inf")})): 4,
        ("times_sum", frozenset({method, tag})): 0.008,
        ("times_count", frozenset({method, tag})): 4,
    }


def test_a_family_has_one_type(caplog: pytest.LogCaptureFixture) -> None:
    text = own_text()
    for _ in range(2):
        page = text.render(
            statistics({f"{RULES}d.k.total_hits": 2}, {"ratelimit.localcache.hitCount": 7})
        )
    assert samples(page) == {("hits", frozenset({("domain", "d")})): 4}
    assert [record.getMessage() for record in caplog.records] == [
        "hits is mapped to two types of metric: one is left out"
    ]


def test_series_of_response_times_that_coincide_are_summed() -> None:
    content = b"mappings: [{match: '*.*.response_time', name: t, observer_type: histogram}]"
    latencies = {"A": took(1, 0.002), "B": took(2, 0.002)}
    found = samples(own_text(content).render(statistics(latencies=latencies)))
    assert found["t_count", frozenset()] == 3
    assert found["t_bucket", frozenset({("le", "+Inf")})] == 3


def test_quantiles_are_of_late() -> None:
    content = b"defaults: {quantiles: [{quantile: 0.5}], summary_options: {max_age: 1m}}"
    clock, tally = ManualClock(), LatencyTally()
    text = own_text(content, clock)

    def median_ms() -> float:
        page = statistics(latencies={"A": tally.value()})
        found = samples(text.render(page))
        key = ("ratelimit_server_A_response_time", frozenset({("quantile", "0.5")}))
        return found[key]

    tally.observe(100, 0.4)
    assert 250 < median_ms() <= 500
    clock.advance(30)
    tally.observe(10, 0.0001)
    assert median_ms() > 250
    clock.advance(30)
    assert median_ms() < 1
    clock.advance(60)
    assert isnan(median_ms())
    page = text.render(statistics(latencies={"A": tally.value()}))
    assert samples(page)["ratelimit_server_A_response_time_count", frozenset()] == 110


def test_a_tag_cannot_take_a_label_of_ones_own_mapping() -> None:
    with pytest.raises(ValueError, match=r"^EXTRA_TAGS: 'method' is already a label"):
        own_text(method="x")
    own_text(key1="x")
