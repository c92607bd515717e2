"""Settings from an environment: names, errors, what one setting says about another."""

import pickle
from dataclasses import replace
from typing import get_type_hints

import pytest

from tollgate.serve.settings.choices import Backend, GrpcFront, Transport
from tollgate.serve.settings.environment import (
    SAMPLE_RULE_SETTINGS,
    Description,
    Settings,
    SettingsError,
    describe,
)
from tollgate.serve.settings.rows import Row, rows_of
from tollgate.serve.settings.table import GROUPS, TABLE

TLS = {
    "GRPC_SERVER_USE_TLS": "true",
    "GRPC_SERVER_TLS_CERT": "/c.pem",
    "GRPC_SERVER_TLS_KEY": "/k.pem",
}


def load(**environ: str) -> Settings:
    return Settings.from_environment(environ)


def errors_of(environ: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment(environ)
    return caught.value.errors


def described(environ: dict[str, str], name: str) -> Description:
    return next(item for item in describe(environ) if item.name == name)


# The table


@pytest.mark.parametrize("row", TABLE.values(), ids=list(TABLE))
def test_a_row_reads_its_own_default(row: Row) -> None:
    row.parse(row.default)
    assert row.meaning


@pytest.mark.parametrize("group", GROUPS.values(), ids=list(GROUPS))
def test_every_field_of_a_group_is_a_row(group: type) -> None:
    assert rows_of(group).keys() == get_type_hints(group).keys()


def test_no_name_means_two_settings() -> None:
    names = [name for row in TABLE.values() for name in row.names]
    assert len(names) == len(set(names))


def test_an_empty_environment_leaves_the_defaults_but_for_the_rules() -> None:
    assert load() != Settings()
    assert replace(load(), rules=Settings().rules) == Settings()


def test_settings_travel_to_other_processes() -> None:
    settings = load(**TLS, PORT="0", GRPC_PROT="1", EXTRA_TAGS="a:b", PULLMETRICS_ADDR=":0")
    assert pickle.loads(pickle.dumps(settings)) == settings


# Names


@pytest.mark.parametrize(
    ("neutral", "product"),
    [
        ("KVSTORE_URL", "REDIS_URL"),
        ("KVSTORE_PERSECOND_POOL_SIZE", "REDIS_PERSECOND_POOL_SIZE"),
        ("ALTCACHE_HOST_PORT", "MEMCACHE_HOST_PORT"),
        ("USE_AGENT_STATSD", "USE_DOG_STATSD"),
        ("USE_PULLMETRICS", "USE_PROMETHEUS"),
        ("PULLMETRICS_MAPPER_YAML", "PROMETHEUS_MAPPER_YAML"),
        ("LOCAL_CACHE_SIZE_IN_BYTES", "LocalCacheSizeInBytes"),
        ("AGENT_STATSD_MOGRIFIERS", "USE_AGENT_STATSD_MOGRIFIERS"),
        ("AGENT_STATSD_MOGRIFIERS", "USE_DOG_STATSD_MOGRIFIERS"),
    ],
)
def test_a_product_s_spelling_is_another_name(neutral: str, product: str) -> None:
    assert TABLE[neutral].names[0] == neutral
    assert product in TABLE[neutral].names


def test_either_spelling_sets_the_value() -> None:
    assert load(USE_PULLMETRICS="true").statistics.uses_pullmetrics
    assert load(USE_PROMETHEUS="true").statistics.uses_pullmetrics
    assert load(LocalCacheSizeInBytes="512").counting.local_cache_bytes == 512


def test_both_spellings_may_agree() -> None:
    environ = {"KVSTORE_TLS": "true", "REDIS_TLS": "1"}
    assert described(environ, "KVSTORE_TLS").source == "environment (KVSTORE_TLS, REDIS_TLS)"


def test_both_spellings_with_different_values_name_both() -> None:
    assert errors_of({"KVSTORE_POOL_SIZE": "7", "REDIS_POOL_SIZE": "8"}) == (
        "KVSTORE_POOL_SIZE and REDIS_POOL_SIZE: are one setting and differ, '7' and '8': unset one",
    )


def test_a_bad_value_is_blamed_on_the_spelling_that_was_used() -> None:
    (error,) = errors_of({"MEMCACHE_MAX_IDLE_CONNS": "many"})
    assert error == "MEMCACHE_MAX_IDLE_CONNS: 'many' is not a whole number between 0 and 65536"


# Errors


def test_every_error_is_reported() -> None:
    assert errors_of(
        {
            "PORT": "abc",
            "SHADOW_MODE": "yes",
            "DRAIN_GRACE": "-1s",
            "REDIS_AUTH": "a",
            "KVSTORE_AUTH": "b",
            "GRPC_CLIENT_TLS_SAN": "localhost",
        }
    ) == (
        "PORT: 'abc' is not a whole number between 0 and 65535",
        "DRAIN_GRACE: '-1s' is not a duration between 0s and 876000h",
        "SHADOW_MODE: 'yes' is neither true nor false (1, t, T, TRUE, true, True, 0, f, F, FALSE, "
        "...)",
        "KVSTORE_AUTH and REDIS_AUTH: are one setting and differ, '*****' and '*****': unset one",
        "GRPC_CLIENT_TLS_CACERT: is not set, but GRPC_CLIENT_TLS_SAN needs it",
    )


def test_an_error_prints_one_line_for_each() -> None:
    error = SettingsError(("one", "two"))
    assert str(error) == "one\ntwo"
    assert str(pickle.loads(pickle.dumps(error))) == "one\ntwo"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LOG_LEVEL", "loud"),
        ("LOG_FORMAT", "xml"),
        ("CONFIG_TYPE", "file"),
        ("BACKEND_TYPE", "sqlite"),
        ("REDIS_TYPE", "replicated"),
        ("KVSTORE_SOCKET_TYPE", "pipe"),
        ("FAILURE_MODE", "panic"),
        ("ERROR_STATUS_CODES", "exact"),
        ("GRPC_FRONT", "rust"),
        ("TRACING_EXPORTER_PROTOCOL", "udp"),
        ("TRACING_SAMPLING_RATE", "1.5"),
        ("NEAR_LIMIT_RATIO", "80%"),
        ("EXPIRATION_JITTER_MAX_SECONDS", "-1"),
        ("COUNTER_PARTITIONS", "0"),
        ("COUNTER_DEADLINE", "0s"),
        ("GRPC_IO_THREADS", "0"),
        ("GRPC_FRONTS", "65"),
        ("HAPROXY_STATS_PORT", "0"),
        ("REDIS_CLUSTER_PIPELINE_PARALLELISM", "-1"),
        ("KVSTORE_PERSECOND_CLUSTER_PIPELINE_PARALLELISM", "-1"),
        ("REDIS_POOL_ON_EMPTY_BEHAVIOR", "CREATE"),
        ("KVSTORE_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", "error"),
        ("PROMETHEUS_PATH", "metrics"),
        ("LIMIT_RESET_HEADER", "not a header"),
        ("MEMCACHE_SRV", "memcache"),
        ("EXTRA_TAGS", "novalue"),
        ("REQUEST_BYTES_MAX", ""),
    ],
)
def test_a_bad_value_is_refused_by_its_name(name: str, value: str) -> None:
    (error,) = errors_of({name: value})
    assert error.startswith(f"{name}: {value!r} ")


def test_an_empty_pool_is_explained() -> None:
    (error,) = errors_of({"REDIS_POOL_ON_EMPTY_BEHAVIOR": "ERROR"})
    assert error.endswith("is not supported: an empty pool always waits; use WAIT or a larger pool")


# What one setting says about another


def test_nothing_given_counts_in_actors() -> None:
    assert load().counting.backend is Backend.ACTORS


@pytest.mark.parametrize("name", ["KVSTORE_URL", "REDIS_URL"])
def test_a_store_url_selects_the_store(name: str) -> None:
    environ = {name: "localhost:6379"}
    assert Settings.from_environment(environ).counting.backend is Backend.KVSTORE
    assert described(environ, "BACKEND_TYPE").source == f"implied by {name}"


def test_a_store_url_selects_nothing_when_empty_or_overruled() -> None:
    assert load(REDIS_URL="").counting.backend is Backend.ACTORS
    assert load(REDIS_URL="a:1", BACKEND_TYPE="actors").counting.backend is Backend.ACTORS


@pytest.mark.parametrize(
    ("environ", "transport"),
    [
        ({}, Transport.STATSD),
        ({"USE_STATSD": "true"}, Transport.STATSD),
        ({"USE_STATSD": "false"}, Transport.STDOUT),
        ({"USE_PROMETHEUS": "true"}, Transport.PULLMETRICS),
        ({"USE_PROMETHEUS": "true", "USE_STATSD": "false"}, Transport.PULLMETRICS),
        ({"USE_PROMETHEUS": "false"}, Transport.STATSD),
        ({"USE_AGENT_STATSD": "true"}, Transport.AGENT_STATSD),
        ({"DISABLE_STATS": "true"}, Transport.DISABLED),
        ({"DISABLE_STATS": "true", "USE_STATSD": "true"}, Transport.DISABLED),
    ],
)
def test_the_transport_of_statistics_follows_from_its_switches(
    environ: dict[str, str], transport: Transport
) -> None:
    assert Settings.from_environment(environ).statistics.transport is transport


def test_a_chosen_transport_takes_the_place_of_the_default() -> None:
    line = described({"USE_PROMETHEUS": "1"}, "USE_STATSD")
    assert (line.value, line.default, line.source) == ("false", "true", "implied by USE_PROMETHEUS")


def test_without_a_place_for_rules_the_sample_rules_are_served() -> None:
    rules = load().rules
    assert [rules.root, rules.subdirectory, rules.app_directory] == list(
        SAMPLE_RULE_SETTINGS.values()
    )[:3]
    assert __file__.startswith(rules.root)
    assert (rules.subdirectory, rules.app_directory) == ("configs", "ratelimit")
    assert not rules.watches_root
    assert described({}, "RUNTIME_ROOT").source == "default (sample rules)"


@pytest.mark.parametrize(
    "environ",
    [
        {"RUNTIME_ROOT": "/data"},
        {"RUNTIME_SUBDIRECTORY": "ratelimit"},
        {"RUNTIME_APPDIRECTORY": "rules"},
    ],
)
def test_a_place_for_rules_keeps_the_other_defaults(environ: dict[str, str]) -> None:
    rules = Settings.from_environment(environ).rules
    assert rules.root == environ.get("RUNTIME_ROOT", "/srv/runtime_data/current")
    assert rules.subdirectory == environ.get("RUNTIME_SUBDIRECTORY", "")
    assert rules.app_directory == environ.get("RUNTIME_APPDIRECTORY", "config")
    assert rules.watches_root


def test_a_watch_mode_given_with_the_sample_rules_stands() -> None:
    rules = load(RUNTIME_WATCH_ROOT="true").rules
    assert rules.watches_root
    assert rules.app_directory == "ratelimit"


@pytest.mark.parametrize(
    ("environ", "is_native"),
    [
        ({}, True),
        ({"GRPC_FRONT": "grpcio"}, False),
        ({"GRPC_FRONT": "native"}, True),
        (TLS, False),
        ({"GRPC_UDS": "/tmp/socket"}, False),
        ({"GRPC_MAX_CONNECTION_AGE": "24h"}, False),
        ({"GRPC_MAX_CONNECTION_AGE": "0"}, True),
        ({"GRPC_MAX_CONNECTION_AGE": "720h"}, False),
        ({"GRPC_MAX_CONNECTION_AGE_GRACE": "1h"}, True),
        ({"GRPC_HOST": "0.0.0.0"}, False),
        ({"GRPC_HOST": "ratelimit.internal"}, False),
        ({"GRPC_HOST": "0.0.0.0", "GRPC_FRONT": "native"}, True),
        ({"GRPC_HOST": "localhost"}, True),
        ({"GRPC_HOST": "[::1]"}, True),
    ],
)
def test_which_front_listens(environ: dict[str, str], is_native: bool) -> None:
    front = GrpcFront.NATIVE if is_native else GrpcFront.GRPCIO
    assert Settings.from_environment(environ).grpc_front is front
