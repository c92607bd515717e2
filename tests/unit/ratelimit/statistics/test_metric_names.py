"""The default mapping from dotted names to metrics, and extra tags."""

import pytest

from tollgate.serve.ratelimit.sinks.prometheus_names import (
    MetricName,
    counter_metric,
    escaped,
    tag_labels,
)


@pytest.mark.parametrize(
    "stat", ["near_limit", "over_limit", "total_hits", "within_limit", "shadow_mode"]
)
@pytest.mark.parametrize(
    ("path", "labels"),
    [
        ("d.k1_v1", {"domain": "d", "key1": "k1_v1"}),
        ("d.k1.k2_v2", {"domain": "d", "key1": "k1", "key2": "k2_v2"}),
        ("d.k1.k2.k3", {"domain": "d", "key1": "k1", "key2": "k2"}),
        ("d.k1.k2.k3.k4_a/b", {"domain": "d", "key1": "k1", "key2": "k2"}),
        ("d.over_limit", {"domain": "d", "key1": "over_limit"}),
        ("_overflow.dynamic_series", {"domain": "_overflow", "key1": "dynamic_series"}),
    ],
)
def test_names_of_rules_become_labels(stat: str, path: str, labels: dict[str, str]) -> None:
    metric = counter_metric(f"ratelimit.service.rate_limit.{path}.{stat}")
    assert metric.family == f"ratelimit_service_rate_limit_{stat}"
    assert dict(metric.labels) == labels


@pytest.mark.parametrize(
    ("name", "family", "labels"),
    [
        (
            "ratelimit.service.call.should_rate_limit.service_error",
            "ratelimit_service_should_rate_limit_error",
            {"err_type": "service_error"},
        ),
        (
            "ratelimit.service.call.should_rate_limit.redis_error",
            "ratelimit_service_should_rate_limit_error",
            {"err_type": "redis_error"},
        ),
        (
            "ratelimit_server.ShouldRateLimit.total_requests",
            "ratelimit_service_total_requests",
            {"grpc_method": "ShouldRateLimit"},
        ),
        (
            "ratelimit_server.Check.total_requests",
            "ratelimit_service_total_requests",
            {"grpc_method": "Check"},
        ),
        (
            "ratelimit.service.config_load_success",
            "ratelimit_service_config_load_success",
            {},
        ),
        (
            "ratelimit.counting_shadow.remaining_differs",
            "ratelimit_counting_shadow_remaining_differs",
            {},
        ),
        ("ratelimit.service.config_load_error", "ratelimit_service_config_load_error", {}),
    ],
)
def test_names_of_the_service_become_families(
    name: str, family: str, labels: dict[str, str]
) -> None:
    metric = counter_metric(name)
    assert metric.family == family
    assert dict(metric.labels) == labels


@pytest.mark.parametrize(
    ("name", "family"),
    [
        (
            "ratelimit.service.rate_limit.d.k1.over_limit_with_local_cache",
            "ratelimit_service_rate_limit_d_k1_over_limit_with_local_cache",
        ),
        (
            "ratelimit.service.rate_limit.d.k1.total_negative_hits",
            "ratelimit_service_rate_limit_d_k1_total_negative_hits",
        ),
        (
            "ratelimit.service.rate_limit.shop-1.domain_not_found",
            "ratelimit_service_rate_limit_shop_1_domain_not_found",
        ),
        ("ratelimit.service.global_shadow_mode", "ratelimit_service_global_shadow_mode"),
        # A path of a domain alone has no key1.
        ("ratelimit.service.rate_limit.d.over_limit", "ratelimit_service_rate_limit_d_over_limit"),
        ("ratelimit_server.ShouldRateLimit.other", "ratelimit_server_ShouldRateLimit_other"),
    ],
)
def test_what_is_not_mapped_keeps_its_name(name: str, family: str) -> None:
    assert counter_metric(name) == MetricName(family)


def test_tags_that_a_name_has_are_labels() -> None:
    name = "ratelimit.memcache.increment.__code=not_stored"
    labels = (("code", "not_stored"),)
    assert counter_metric(name) == MetricName("ratelimit_memcache_increment", labels)
    # (request text)
    name = "ratelimit.service.rate_limit.d.__code=x.domain_not_found"
    assert counter_metric(name).labels == ()


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("a.b-c/d e", "a_b_c_d_e"),
        ("k_ünï", "k__n_"),
        ("2fast", "_2fast"),
        ("already_fine:1", "already_fine:1"),
    ],
)
def test_what_a_name_may_not_hold_is_escaped(name: str, allowed: str) -> None:
    assert escaped(name) == allowed


def test_tags_become_labels() -> None:
    assert dict(tag_labels({"foo": "bar", "kube-zone": "eu:1"})) == {
        "foo": "bar",
        "kube_zone": "eu:1",
    }


@pytest.mark.parametrize("tag", ["domain", "key1", "key2", "err_type", "grpc_method", "le"])
def test_a_tag_cannot_take_a_label_of_the_mapping(tag: str) -> None:
    with pytest.raises(ValueError, match=rf"^EXTRA_TAGS: '{tag}' is already a label .* rename"):
        tag_labels({tag: "x"})


def test_two_tags_cannot_be_the_same_label() -> None:
    with pytest.raises(ValueError, match=r"^EXTRA_TAGS: 'a\.b' and another tag .* 'a_b'"):
        tag_labels({"a-b": "1", "a.b": "2"})
