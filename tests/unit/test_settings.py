"""Settings from an environment: names, sources, errors, what is wrong together, what is unbuilt."""

import pickle
from dataclasses import fields
from typing import get_type_hints

import pytest

from serve.setting_choices import Backend, Transport
from serve.setting_mogrifiers import Mogrifier
from serve.setting_rows import Row, rows_of, without_credentials
from serve.setting_table import GROUPS, TABLE, Groups
from serve.settings import (
    SAMPLE_RULES,
    UNBUILT,
    Description,
    Settings,
    SettingsError,
    describe,
)

TLS = {
    "GRPC_SERVER_USE_TLS": "true",
    "GRPC_SERVER_TLS_CERT": "/c.pem",
    "GRPC_SERVER_TLS_KEY": "/k.pem",
}
MOGRIFIER = {
    "USE_DOG_STATSD": "true",
    "USE_DOG_STATSD_MOGRIFIERS": "FOO",
    "DOG_STATSD_MOGRIFIER_FOO_PATTERN": r"^a\.(.*)$",
    "DOG_STATSD_MOGRIFIER_FOO_NAME": "a",
    "DOG_STATSD_MOGRIFIER_FOO_TAGS": "domain:$1",
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


def test_without_an_environment_every_value_is_the_default() -> None:
    assert Settings() == Settings(
        **{item.name: getattr(Groups(), item.name) for item in fields(Groups)}
    )
    assert load(RUNTIME_ROOT="/srv/runtime_data/current").counting == Settings().counting


def test_settings_travel_to_other_processes() -> None:
    settings = load(**MOGRIFIER, PORT="0", GRPC_PROT="1")
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
def test_other_spellings(neutral: str, product: str) -> None:
    assert TABLE[neutral].names[0] == neutral
    assert product in TABLE[neutral].names


def test_either_spelling_sets_the_value() -> None:
    assert load(KVSTORE_POOL_SIZE="7").kvstore.pool_size == 7
    assert load(REDIS_POOL_SIZE="7").kvstore.pool_size == 7
    assert load(LocalCacheSizeInBytes="512").counting.local_cache_bytes == 512


def test_both_spellings_may_agree() -> None:
    environ = {"KVSTORE_TLS": "true", "REDIS_TLS": "1"}
    assert Settings.from_environment(environ).kvstore.has_tls
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
            "MEMCACHE_HOST_PORT": "a:1",
            "ALTCACHE_SRV": "_m._tcp.example.com",
        }
    ) == (
        "PORT: 'abc' is not a whole number between 0 and 65535",
        "DRAIN_GRACE: '-1s' is not a duration between 0s and 876000h",
        "SHADOW_MODE: 'yes' is neither true nor false (1, t, T, TRUE, true, True, 0, f, F, FALSE, "
        "...)",
        "KVSTORE_AUTH and REDIS_AUTH: are one setting and differ, '*****' and '*****': unset one",
        "GRPC_CLIENT_TLS_CACERT: is not set, but GRPC_CLIENT_TLS_SAN needs it",
        "MEMCACHE_HOST_PORT and ALTCACHE_SRV: exclude each other: unset one",
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
def test_bad_values(name: str, value: str) -> None:
    (error,) = errors_of({name: value})
    assert error.startswith(f"{name}: {value!r} ")


def test_an_empty_pool_is_explained() -> None:
    (error,) = errors_of({"REDIS_POOL_ON_EMPTY_BEHAVIOR": "ERROR"})
    assert error.endswith("is not supported: an empty pool always waits; use WAIT or a larger pool")


# Values that are wrong together


@pytest.mark.parametrize(
    ("environ", "lines"),
    [
        (
            {"GRPC_SERVER_USE_TLS": "true"},
            (
                "GRPC_SERVER_TLS_CERT: is not set, but GRPC_SERVER_USE_TLS needs it",
                "GRPC_SERVER_TLS_KEY: is not set, but GRPC_SERVER_USE_TLS needs it",
            ),
        ),
        (
            {"GRPC_CLIENT_TLS_CACERT": "/ca.pem"},
            ("GRPC_SERVER_USE_TLS: is not set, but GRPC_CLIENT_TLS_CACERT needs it",),
        ),
        (
            TLS | {"GRPC_CLIENT_TLS_SAN": "localhost"},
            ("GRPC_CLIENT_TLS_CACERT: is not set, but GRPC_CLIENT_TLS_SAN needs it",),
        ),
        (
            TLS | {"GRPC_FRONT": "native"},
            (
                "GRPC_FRONT: the native front cannot honour GRPC_SERVER_USE_TLS: "
                "set GRPC_FRONT=auto",
            ),
        ),
        (
            {"REDIS_TLS_CLIENT_CERT": "/c.pem"},
            ("KVSTORE_TLS_CLIENT_KEY: is not set, but REDIS_TLS_CLIENT_CERT needs it",),
        ),
        (
            {"MEMCACHE_TLS_CLIENT_KEY": "/k.pem"},
            ("ALTCACHE_TLS_CLIENT_CERT: is not set, but MEMCACHE_TLS_CLIENT_KEY needs it",),
        ),
        (
            {"CONFIG_GRPC_XDS_CLIENT_TLS_CERT": "/c.pem"},
            (
                "CONFIG_GRPC_XDS_CLIENT_TLS_KEY: is not set, but "
                "CONFIG_GRPC_XDS_CLIENT_TLS_CERT needs it",
            ),
        ),
        (
            {"USE_STATSD": "true", "USE_PROMETHEUS": "true"},
            (
                "USE_STATSD and USE_PROMETHEUS: only one transport of statistics can be chosen: "
                "leave one true",
            ),
        ),
        (
            {"USE_DOG_STATSD": "true", "USE_PULLMETRICS": "true"},
            (
                "USE_DOG_STATSD and USE_PULLMETRICS: only one transport of statistics can be "
                "chosen: leave one true",
            ),
        ),
        (
            {"REDIS_TYPE": "sentinel", "REDIS_URL": "mymaster"},
            (
                "REDIS_URL: has one part, but REDIS_TYPE=SENTINEL needs the master's name and a "
                "sentinel: name,host:port,host:port",
            ),
        ),
        (
            {"DEBUG_PORT": "8080"},
            ("PORT and DEBUG_PORT: cannot all be port 8080: change one",),
        ),
        (
            {"USE_PULLMETRICS": "1", "PROMETHEUS_ADDR": ":6070"},
            ("DEBUG_PORT and PROMETHEUS_ADDR: cannot all be port 6070: change one",),
        ),
        (
            {"SERVE_REPLICA_PORT_MIN": "30200"},
            ("SERVE_REPLICA_PORT_MIN: 30200 is above the maximum, 30100",),
        ),
        (
            {"GRPC_PORT": "30100"},
            ("GRPC_PORT: 30100 is a replica's port (30000 to 30100)",),
        ),
    ],
)
def test_wrong_together(environ: dict[str, str], lines: tuple[str, ...]) -> None:
    assert errors_of(environ) == lines


@pytest.mark.parametrize(
    "environ",
    [
        TLS | {"GRPC_CLIENT_TLS_CACERT": "/ca.pem", "GRPC_CLIENT_TLS_SAN": "localhost"},
        {"PORT": "0", "GRPC_PORT": "0", "DEBUG_PORT": "0", "PULLMETRICS_ADDR": ":0"},
        {"GRPC_PORT": "8080", "GRPC_UDS": "/tmp/socket"},
        {"PULLMETRICS_ADDR": ":8080"},
        {"USE_STATSD": "false", "USE_PROMETHEUS": "true"},
        {"DISABLE_STATS": "true", "USE_STATSD": "true", "USE_PROMETHEUS": "true"},
        {"REDIS_TYPE": "SENTINEL", "REDIS_URL": "mymaster,localhost:26379"},
        {"GRPC_FRONT": "native", "GRPC_MAX_CONNECTION_AGE": "0"},
        {"REDIS_POOL_ON_EMPTY_BEHAVIOR": "WAIT", "REDIS_CLUSTER_PIPELINE_PARALLELISM": "0"},
        {"MEMCACHE_SRV_REFRESH": "30", "MEMCACHE_SRV": "_m._tcp.example.com"},
    ],
)
def test_right_together(environ: dict[str, str]) -> None:
    assert Settings.from_environment(environ).warnings == ()


def test_the_default_of_a_bad_value_is_not_blamed() -> None:
    # PORT's default is 8080, too; USE_STATSD's default is a transport.
    environ = {"PORT": "eighty", "DEBUG_PORT": "8080", "USE_STATSD": "no", "USE_PROMETHEUS": "1"}
    assert [line.partition(":")[0] for line in errors_of(environ)] == ["PORT", "USE_STATSD"]


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
def test_transport(environ: dict[str, str], transport: Transport) -> None:
    assert Settings.from_environment(environ).statistics.transport is transport


def test_a_chosen_transport_takes_the_place_of_the_default() -> None:
    line = described({"USE_PROMETHEUS": "1"}, "USE_STATSD")
    assert (line.value, line.default, line.source) == ("false", "true", "implied by USE_PROMETHEUS")


def test_without_a_place_for_rules_the_sample_rules_are_served() -> None:
    rules = load().rules
    assert [rules.root, rules.subdirectory, rules.app_directory] == list(SAMPLE_RULES.values())[:3]
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
        ({"GRPC_MAX_CONNECTION_AGE_GRACE": "1h"}, True),
    ],
)
def test_which_front_listens(environ: dict[str, str], is_native: bool) -> None:
    assert Settings.from_environment(environ).has_native_front is is_native


# Features yet to be built


@pytest.mark.parametrize(
    ("environ", "line"),
    [
        (
            {"REDIS_URL": "localhost:6379"},
            "REDIS_URL: the kvstore backend is not built yet: unset it, or set "
            "BACKEND_TYPE=actors, to count in Tollgate's own actors",
        ),
        (
            {"BACKEND_TYPE": "redis"},
            "BACKEND_TYPE: the kvstore backend is not built yet: unset it, or set "
            "BACKEND_TYPE=actors, to count in Tollgate's own actors",
        ),
        (
            {"BACKEND_TYPE": "memcache"},
            "BACKEND_TYPE: the altcache backend is not built yet: set BACKEND_TYPE=actors to "
            "count in Tollgate's own actors",
        ),
        (
            {"CONFIG_TYPE": "GRPC_XDS_SOTW"},
            "CONFIG_TYPE: reading rules over xDS is not built yet: set CONFIG_TYPE=FILE",
        ),
        (
            {"USE_STATSD": "true"},
            "USE_STATSD: sending statistics to statsd is not built yet: unset it, or set "
            "USE_PULLMETRICS=true in its place",
        ),
        (
            {"USE_DOG_STATSD": "true"},
            "USE_DOG_STATSD: sending statistics to DogStatsD, with mogrifiers, is not built yet: "
            "unset it, or set USE_PULLMETRICS=true in its place",
        ),
        (
            {"USE_PROMETHEUS": "true", "PROMETHEUS_MAPPER_YAML": "/map.yaml"},
            "PROMETHEUS_MAPPER_YAML: a mapping of one's own for the metrics page is not built "
            "yet: unset it for the default mapping",
        ),
        (
            {"TRACING_ENABLED": "true"},
            "TRACING_ENABLED: tracing is not built yet: set it to false",
        ),
    ],
)
def test_unbuilt(environ: dict[str, str], line: str) -> None:
    assert Settings.from_environment(environ).unbuilt() == (line,)


def test_all_that_is_unbuilt_is_reported() -> None:
    settings = load(REDIS_URL="a:1", TRACING_ENABLED="1", CONFIG_TYPE="GRPC_XDS_SOTW")
    assert len(settings.unbuilt()) == 3


def test_unbuilt_features_name_settings_of_the_table() -> None:
    assert {name for row in UNBUILT for name in row.names} <= TABLE.keys()


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"USE_STATSD": "false", "USE_DOG_STATSD": "false", "TRACING_ENABLED": "false"},
        {"DISABLE_STATS": "true", "USE_STATSD": "true"},
        {"USE_PROMETHEUS": "true"},
        {"PROMETHEUS_MAPPER_YAML": "/map.yaml"},
        {"USE_PROMETHEUS": "true", "PROMETHEUS_MAPPER_YAML": ""},
        {"REDIS_POOL_SIZE": "20", "REDIS_PERSECOND": "true", "REDIS_SOCKET_TYPE": "tcp"},
        {"BACKEND_TYPE": "actors", "REDIS_URL": "localhost:6379"},
        {"MEMCACHE_HOST_PORT": "localhost:11211"},
        {"CONFIG_TYPE": "FILE", "CONFIG_GRPC_XDS_SERVER_URL": "localhost:18000"},
        {"STATSD_HOST": "localhost", "TRACING_SAMPLING_RATE": "0.5"},
        {"AGENT_STATSD_MOGRIFIERS": "FOO"},
    ],
)
def test_what_asks_for_nothing_unbuilt(environ: dict[str, str]) -> None:
    assert Settings.from_environment(environ).unbuilt() == ()


# Mogrifiers (H12)


def test_mogrifiers_in_their_order() -> None:
    environ = MOGRIFIER | {
        "USE_DOG_STATSD_MOGRIFIERS": "foo,BAR",
        "AGENT_STATSD_MOGRIFIER_BAR_PATTERN": "b",
        "AGENT_STATSD_MOGRIFIER_BAR_NAME": "$0",
    }
    assert Settings.from_environment(environ).mogrifiers == (
        Mogrifier("foo", r"^a\.(.*)$", "a", (("domain", "$1"),)),
        Mogrifier("BAR", "b", "$0"),
    )


@pytest.mark.parametrize(
    ("part", "value", "line"),
    [
        ("PATTERN", "", "PATTERN: is not set, but the mogrifier 'FOO' needs it"),
        ("NAME", "", "NAME: is not set, but the mogrifier 'FOO' needs it"),
        ("PATTERN", "(", "PATTERN: '(' is not a regular expression: missing ), unterminated"),
        ("TAGS", ":b", "TAGS: ':b' has an item (number 1) not written key:value"),
        ("TAGS", "a:", "TAGS: 'a:' has a tag without a value"),
    ],
)
def test_bad_mogrifiers(part: str, value: str, line: str) -> None:
    (error,) = errors_of(MOGRIFIER | {f"DOG_STATSD_MOGRIFIER_FOO_{part}": value})
    assert error.startswith(f"AGENT_STATSD_MOGRIFIER_FOO_{line}")


def test_a_mogrifier_that_is_listed_only() -> None:
    errors = errors_of({"USE_DOG_STATSD": "1", "AGENT_STATSD_MOGRIFIERS": "FOO"})
    assert [line.partition(":")[0] for line in errors] == [
        "AGENT_STATSD_MOGRIFIER_FOO_PATTERN",
        "AGENT_STATSD_MOGRIFIER_FOO_NAME",
    ]


def test_a_mogrifier_may_have_the_name_of_a_product() -> None:
    environ = {
        "USE_DOG_STATSD": "1",
        "USE_DOG_STATSD_MOGRIFIERS": "REDIS",
        "DOG_STATSD_MOGRIFIER_REDIS_PATTERN": "a",
        "DOG_STATSD_MOGRIFIER_REDIS_NAME": "b",
    }
    assert Settings.from_environment(environ).mogrifiers == (Mogrifier("REDIS", "a", "b"),)


def test_both_spellings_of_a_mogrifier_differ() -> None:
    assert errors_of(MOGRIFIER | {"AGENT_STATSD_MOGRIFIER_FOO_NAME": "b"}) == (
        "AGENT_STATSD_MOGRIFIER_FOO_NAME and DOG_STATSD_MOGRIFIER_FOO_NAME: are one setting and "
        "differ, 'b' and 'a': unset one",
    )


def test_mogrifiers_of_another_transport_are_left_alone() -> None:
    assert (
        load(AGENT_STATSD_MOGRIFIERS="FOO", DOG_STATSD_MOGRIFIER_FOO_PATTERN="(").mogrifiers == ()
    )


# Warnings


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("GRPC_PROT", "GRPC_PORT"),
        ("RUNTIME_ROOTS", "RUNTIME_ROOT"),
        ("REDIS_POOLSIZE", "REDIS_POOL_SIZE"),
        ("KVSTORE_URLS", "KVSTORE_URL"),
    ],
)
def test_near_misses(name: str, meant: str) -> None:
    assert Settings.from_environment({name: "1"}).warnings == (
        f"{name}: is not a setting and has no effect; meant {meant}?",
    )


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "GRPC_VERBOSITY",
        "GRPC_TRACE",
        "REDIS_PORT",
        "REDIS_SERVICE_HOST",
        "PROT",
        "RAY_PORT",
    ],
)
def test_no_near_misses(name: str) -> None:
    assert Settings.from_environment({name: "1"}).warnings == ()


# Descriptions


def test_every_setting_is_described_once() -> None:
    assert [item.name for item in describe({})] == list(TABLE)


def test_a_description_tells_the_source() -> None:
    line = described({"REDIS_POOL_SIZE": "20"}, "KVSTORE_POOL_SIZE")
    assert line == Description(
        name="KVSTORE_POOL_SIZE",
        other_names=("REDIS_POOL_SIZE",),
        value="20",
        default="10",
        source="environment (REDIS_POOL_SIZE)",
        feature="kvstore",
        meaning="connections",
    )
    assert described({}, "PORT").source == "default"


def test_a_mogrifier_is_described() -> None:
    line = described(MOGRIFIER, "AGENT_STATSD_MOGRIFIER_FOO_NAME")
    assert (line.value, line.feature) == ("a", "statistics")
    assert line.source == "environment (DOG_STATSD_MOGRIFIER_FOO_NAME)"


@pytest.mark.parametrize(
    "name",
    [
        "KVSTORE_AUTH",
        "REDIS_SENTINEL_AUTH",
        "KVSTORE_PERSECOND_AUTH",
        "REDIS_PERSECOND_SENTINEL_AUTH",
        "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
    ],
)
def test_secrets_are_masked(name: str) -> None:
    assert all("s3cret" not in repr(item) for item in describe({name: "key:s3cret"}))
    assert "*****" in {item.value for item in describe({name: "key:s3cret"})}


def test_a_bad_secret_is_not_printed() -> None:
    (error,) = errors_of({"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS": "s3cret"})
    assert "s3cret" not in error


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("redis://foo:bar@h", "redis://*****@h"),
        ("redis://foo:b@r@h:1", "redis://*****@h:1"),
        ("redis://foo:b,r@h:1", "redis://*****@h:1"),
        ("redis://a:b@h1,rediss://c:d@h2", "redis://*****@h1,rediss://*****@h2"),
        ("foo:bar@h", "*****@h"),
        ("h1:1,h2:2", "h1:1,h2:2"),
        ("/var/run/redis.sock", "/var/run/redis.sock"),
        ("", ""),
    ],
)
def test_credentials_are_masked(url: str, masked: str) -> None:
    assert without_credentials(url) == masked
    assert described({"REDIS_URL": url}, "KVSTORE_URL").value == masked
