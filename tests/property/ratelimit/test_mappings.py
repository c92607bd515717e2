"""The default mapping is what the same rules as a file would be (B19)."""

from hypothesis import given
from hypothesis import strategies as st

from tollgate.actors.ratelimit.statistics.tallies import RULE_STATS
from tollgate.serve.ratelimit.sinks.default_mapping import DefaultMapper
from tollgate.serve.ratelimit.sinks.mapping import MetricKind
from tollgate.serve.ratelimit.sinks.mapping_file import read_mapper

_RULES = "".join(
    f"""
- match: ratelimit.service.rate_limit.*.*.{stat}
  match_metric_type: counter
  name: ratelimit_service_rate_limit_{stat}
  labels: {{domain: $1, key1: $2}}
- match: ^ratelimit\\.service\\.rate_limit\\.([^.]*)\\.([^.]*)\\.([^.]*)(\\.[^.]*)*\\.{stat}$
  match_type: regex
  match_metric_type: counter
  name: ratelimit_service_rate_limit_{stat}
  labels: {{domain: $1, key1: $2, key2: $3}}
"""
    for stat in ("near_limit", "over_limit", "total_hits", "within_limit", "shadow_mode")
)
AS_A_FILE = read_mapper(
    "default.yaml",
    f"""
mappings:
- match: ratelimit.service.call.should_rate_limit.*
  match_metric_type: counter
  name: ratelimit_service_should_rate_limit_error
  labels: {{err_type: $1}}
- match: ratelimit_server.*.total_requests
  match_metric_type: counter
  name: ratelimit_service_total_requests
  labels: {{grpc_method: $1}}
- match: ratelimit_server.*.response_time
  match_metric_type: timer
  timer_type: histogram
  name: ratelimit_service_response_time_seconds
  labels: {{grpc_method: $1}}
  scale: 0.001
{_RULES}
""".encode(),
)
BUILT_IN = DefaultMapper(has_milliseconds=False)
PARTS = st.sampled_from(["d", "k", "k_v", "a-b", "", *RULE_STATS])
NAMES = st.one_of(
    st.builds(
        lambda path, stat: ".".join(["ratelimit.service.rate_limit", *path, stat]),
        st.lists(PARTS, max_size=5),
        st.sampled_from([*RULE_STATS, "domain_not_found"]),
    ),
    st.sampled_from(
        [
            "ratelimit.service.call.should_rate_limit.service_error",
            "ratelimit_server.ShouldRateLimit.total_requests",
            "ratelimit_server.Check.other",
            "ratelimit.service.config_load_success",
            "ratelimit.service.global_shadow_mode",
        ]
    ),
)


@given(NAMES, st.sampled_from([MetricKind.COUNTER, MetricKind.GAUGE]))
def test_names_go_where_the_file_would_put_them(name: str, kind: MetricKind) -> None:
    built_in, from_file = BUILT_IN.metric(name, kind), AS_A_FILE.metric(name, kind)
    assert from_file is not None
    assert (built_in.family, built_in.labels) == (from_file.family, from_file.labels)


@given(st.sampled_from(["ShouldRateLimit", "Check"]))
def test_response_times_too(method: str) -> None:
    name = f"ratelimit_server.{method}.response_time"
    built_in, from_file = (
        BUILT_IN.metric(name, MetricKind.OBSERVER),
        AS_A_FILE.metric(name, MetricKind.OBSERVER),
    )
    assert from_file is not None
    assert (built_in.family, built_in.labels) == (from_file.family, from_file.labels)
    assert built_in.scale == from_file.scale
