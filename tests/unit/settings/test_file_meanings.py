"""The meaning of a file of variables: what each line becomes, and whether a start takes it."""

import pytest

from tollgate.serve.commands.environment.conditions import CONDITIONS
from tollgate.serve.commands.environment.meaning import (
    IMPLIED_BY,
    OTHER_DEFAULTS,
    Fate,
    Understanding,
    understood,
)
from tollgate.serve.commands.environment.variable_file import read_variables
from tollgate.serve.settings.table import TABLE

MEMCACHED = "BACKEND_TYPE=memcache\nMEMCACHE_HOST_PORT=a:1\n"


def of(text: str) -> Understanding:
    return understood(read_variables(text, is_docker=False))


def fates(text: str) -> list[tuple[str, Fate, str]]:
    return [(each.name, each.fate, each.text) for each in of(text).lines]


def test_a_setting_is_told_by_its_own_name_and_its_value() -> None:
    assert fates("MEMCACHE_MAX_IDLE_CONNS=8\nGRPC_MAX_CONNECTION_AGE=24h\n") == [
        (
            "MEMCACHE_MAX_IDLE_CONNS",
            Fate.IDLE,
            "ALTCACHE_MAX_IDLE_CONNS = 8, without effect: counters are not in Memcached "
            "(BACKEND_TYPE)",
        ),
        (
            "GRPC_MAX_CONNECTION_AGE",
            Fate.MEANS,
            "GRPC_MAX_CONNECTION_AGE = 86400 s (age at which a connection is closed); for it "
            "grpcio serves gRPC, the slower front",
        ),
    ]
    assert not of("GRPC_MAX_CONNECTION_AGE=24h").is_refused


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("PROMETHEUS_ADDR", "[::1]:9090", "[::1]:9090"),
        ("LOG_LEVEL", "warning", "WARN"),
        ("COUNTER_DEADLINE", "2", "2 s"),
        ("NEAR_LIMIT_RATIO", "0.70", "0.7"),
        ("CACHE_KEY_PREFIX", "", "empty"),
        ("CACHE_KEY_PREFIX", '"a\tb"', r"a\tb"),
        ("DEBUG_TRACING_KEY", "secret", "*****"),
        ("REDIS_URL", "redis://me:secret@host:1", "redis://*****@host:1"),
    ],
)
def test_a_value_is_told_as_it_was_understood(name: str, value: str, shown: str) -> None:
    (line,) = of(f"{name}={value}").lines
    assert f" = {shown} (" in line.text or f" = {shown}, " in line.text, line.text
    assert "secret" not in line.text


@pytest.mark.parametrize(
    ("line", "fate", "text"),
    [
        ("GOMAXPROCS=4", Fate.IGNORED, "it tunes the Go runtime, which is not here"),
        ("GODEBUG=x", Fate.IGNORED, "it tunes the Go runtime, which is not here"),
        ("RAY_PORT=1", Fate.IGNORED, "Ray reads it"),
        ("REDIS_POOLSIZE=4", Fate.UNKNOWN, "nothing reads it; meant REDIS_POOL_SIZE?"),
        ("HTTP_PORT=1", Fate.UNKNOWN, "nothing reads it; meant PORT?"),
        ("OTEL_SERVICE_NAME=x", Fate.IGNORED, "it has no effect; TRACING_SERVICE_NAME and "
         "TRACING_SAMPLING_RATE have"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://a:1", Fate.IGNORED,
         "it has no effect: spans are sent"),
        ("QWERTZ=secret", Fate.UNKNOWN, "nothing reads it"),
        ("QWERTZ=$A", Fate.UNKNOWN, "nothing reads it ($A in it is taken as it stands)"),
        ("PORT", Fate.OPEN, "PORT is what it is where this is started (port of the HTTP door; 0: "
         "a free one)"),
        ("PORT=http", Fate.REFUSED, "'http' is not a whole number between 0 and 65535"),
        ("PORT http", Fate.REFUSED, "is not written NAME=VALUE"),
        ("REDIS_POOL_ON_EMPTY_BEHAVIOR=ERROR", Fate.REFUSED, "'ERROR' is not supported: an empty "
         "pool always waits; use WAIT or a larger pool"),
    ],
)  # fmt: skip
def test_every_other_fate_of_a_line(line: str, fate: Fate, text: str) -> None:
    (told,) = of(line).lines
    assert (told.fate, told.text) == (fate, text)


def test_of_two_lines_the_last_one_holds() -> None:
    first, last = of("PORT=http\nPORT=8000\n").lines
    assert (first.fate, first.text) == (Fate.IGNORED, "line 2 sets it again")
    assert last.fate is Fate.MEANS
    assert not of("PORT=http\nPORT=8000\n").is_refused


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (
            MEMCACHED + "MEMCACHE_SRV=_m._tcp.a\n",
            "MEMCACHE_HOST_PORT and MEMCACHE_SRV: both say where the nodes are: unset one",
        ),
        (
            "MEMCACHE_TLS=true\nALTCACHE_TLS=false\n",
            "ALTCACHE_TLS and MEMCACHE_TLS: are one setting and differ, 'false' and 'true': "
            "unset one",
        ),
        (
            "USE_STATSD=true\nUSE_PROMETHEUS=true\n",
            "USE_STATSD and USE_PROMETHEUS: only one transport of statistics can be chosen: "
            "leave one true",
        ),
    ],
)
def test_what_is_wrong_together_is_told_beside_the_lines(text: str, refusal: str) -> None:
    found = of(text)
    assert refusal in found.refusals
    assert found.is_refused
    assert not any(line.fate is Fate.REFUSED for line in found.lines)


def test_a_line_that_is_refused_is_told_once_and_hides_nothing_else() -> None:
    found = of("PORT=http\nMEMCACHE_TLS=true\nALTCACHE_TLS=false\n")
    assert [line.fate for line in found.lines].count(Fate.REFUSED) == 1
    assert len(found.refusals) == 1


def test_an_environment_that_is_taken_is_not_refused() -> None:
    found = of(MEMCACHED + "USE_STATSD=false\nUSE_PROMETHEUS=true\nQWERTZ=1\n")
    assert found.refusals == ()
    assert not found.is_refused


def test_what_a_deployment_leaves_to_defaults_that_differ_is_told() -> None:
    first, *others, of_redis = OTHER_DEFAULTS
    assert [each.partition(":")[0] for each in of("").defaults] == [first, *others]
    in_redis = of("REDIS_URL=a:1\nCONFIG_TYPE=GRPC_XDS_SOTW\nGRPC_UDS=/s\n").defaults
    assert [each.partition(":")[0] for each in in_redis] == ["DEBUG_HOST", of_redis]
    rest = of(f"{MEMCACHED}GRPC_HOST=0.0.0.0\nRUNTIME_SUBDIRECTORY=x\nUSE_PROMETHEUS=1\n").defaults
    assert [each.partition(":")[0] for each in rest] == ["DEBUG_HOST"]


def test_defaults_that_differ_are_those_of_settings() -> None:
    assert OTHER_DEFAULTS.keys() <= TABLE.keys()
    assert {name for names in IMPLIED_BY.values() for name in names} <= TABLE.keys()


# A condition that is met by the first file, and not by the second.
@pytest.mark.parametrize(
    ("name", "met", "unmet"),
    [
        ("MEMCACHE_TIMEOUT=1s", MEMCACHED, ""),
        ("MEMCACHE_TLS_CACERT=/ca", f"{MEMCACHED}MEMCACHE_TLS=true\n", MEMCACHED),
        (
            "MEMCACHE_SRV_REFRESH=1s",
            "BACKEND_TYPE=memcache\nMEMCACHE_SRV=_m._tcp.a\n",
            MEMCACHED,
        ),
        ("REDIS_TIMEOUT=1s", "REDIS_URL=a:1\n", MEMCACHED),
        ("REDIS_URL=a:1", "", "BACKEND_TYPE=actors\n"),
        ("REDIS_TIMEOUT=1s", "REDIS_URL=a:1\nBACKEND_TYPE=actors\nCOUNTING_SHADOW=redis\n", ""),
        ("REDIS_PERSECOND_POOL_SIZE=1", "REDIS_URL=a:1\nREDIS_PERSECOND=1\n", "REDIS_URL=a:1\n"),
        ("EXPIRATION_JITTER_MAX_SECONDS=1", MEMCACHED, ""),
        ("COUNTER_DEADLINE=1s", "", MEMCACHED),
        ("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true", "", MEMCACHED),
        ("XDS_CLIENT_BACKOFF_JITTER=true", "CONFIG_TYPE=GRPC_XDS_SOTW\n", ""),
        ("RUNTIME_ROOT=/x", "", "CONFIG_TYPE=GRPC_XDS_SOTW\n"),
        ("STATSD_HOST=a", "USE_STATSD=true\n", "USE_PROMETHEUS=true\n"),
        (
            "DOG_STATSD_MOGRIFIER_A_NAME=a",
            "USE_DOG_STATSD=true\nDOG_STATSD_MOGRIFIERS=b,a\n",
            "DOG_STATSD_MOGRIFIERS=b,a\n",
        ),
        (
            "DOG_STATSD_MOGRIFIER_A_NAME=a",
            "USE_DOG_STATSD=true\nDOG_STATSD_MOGRIFIERS=b,a\n",
            "USE_DOG_STATSD=true\nDOG_STATSD_MOGRIFIERS=b\n",
        ),
        ("REDIS_TLS_CACERT=/ca", "REDIS_URL=a:1\nREDIS_TLS=true\n", "REDIS_URL=a:1\n"),
        ("REDIS_TLS_CACERT=/ca", "REDIS_URL=rediss://a:1\n", "REDIS_URL=redis://a:1\n"),
        (
            "REDIS_TLS_CACERT=/ca",
            "REDIS_URL=a:1\nREDIS_PERSECOND=true\nREDIS_PERSECOND_URL=rediss://a:1\n",
            "REDIS_URL=a:1\nREDIS_PERSECOND_URL=rediss://a:1\n",
        ),
        (
            "REDIS_SENTINEL_AUTH=x",
            "REDIS_URL=m,a:1\nREDIS_TYPE=sentinel\n",
            "REDIS_URL=a:1\nREDIS_PERSECOND_TYPE=sentinel\n",
        ),
        (
            "REDIS_PERSECOND_SENTINEL_AUTH=x",
            "REDIS_URL=a:1\nREDIS_PERSECOND=true\nREDIS_PERSECOND_TYPE=sentinel\n",
            "REDIS_URL=m,a:1\nREDIS_TYPE=sentinel\nREDIS_PERSECOND=true\n",
        ),
        (
            "REDIS_CLUSTER_PIPELINE_PARALLELISM=2",
            "REDIS_URL=a:1\nREDIS_TYPE=cluster\n",
            "REDIS_URL=a:1\nREDIS_PERSECOND_TYPE=cluster\n",
        ),
        (
            "REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM=2",
            "REDIS_URL=a:1\nREDIS_PERSECOND=true\nREDIS_PERSECOND_TYPE=cluster\n",
            "REDIS_URL=a:1\nREDIS_TYPE=cluster\nREDIS_PERSECOND=true\n",
        ),
        (
            "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS=true",
            "USE_PROMETHEUS=true\n",
            "USE_PROMETHEUS=true\nPROMETHEUS_MAPPER_YAML=/m\n",
        ),
        ("OTEL_EXPORTER_OTLP_HEADERS=a=b", "TRACING_ENABLED=true\n", ""),
        ("OTEL_RESOURCE_ATTRIBUTES=a=b", "TRACING_ENABLED=true\n", ""),
        ("PROMETHEUS_PATH=/m", "USE_PROMETHEUS=true\n", ""),
        ("EXTRA_TAGS=a:b", "", "DISABLE_STATS=true\n"),
        ("TRACING_SAMPLING_RATE=1", "TRACING_ENABLED=true\n", ""),
        ("LIMIT_RESET_HEADER=X", "LIMIT_RESPONSE_HEADERS_ENABLED=true\n", ""),
        ("GRPC_SERVER_TLS_CERT=/c", "GRPC_SERVER_USE_TLS=true\n", ""),
        ("GRPC_PORT=1", "", "GRPC_UDS=/s\n"),
    ],
)
def test_a_setting_that_lacks_something_has_no_effect(name: str, met: str, unmet: str) -> None:
    assert of(f"{met}{name}").lines[-1].fate is Fate.MEANS
    assert of(f"{unmet}{name}").lines[-1].fate is Fate.IDLE


def test_what_it_lacks_is_named_as_the_file_spells_its_kin() -> None:
    (line,) = of("DOG_STATSD_MOGRIFIERS=a\n").lines
    assert line.text.endswith("statistics are not sent to DogStatsD (USE_DOG_STATSD)")
    lines = of("USE_DOG_STATSD=true\nUSE_DOG_STATSD_MOGRIFIERS=b\nDOG_STATSD_MOGRIFIER_A_NAME=a\n")
    assert lines.lines[-1].text.endswith("no such mogrifier is listed (USE_DOG_STATSD_MOGRIFIERS)")


def test_a_time_to_gather_commands_is_never_waited_for() -> None:
    assert of("REDIS_URL=a:1\nREDIS_PIPELINE_WINDOW=1ms\n").lines[-1].fate is Fate.IDLE


def test_a_variable_of_the_exporters_is_refused_where_it_stands() -> None:
    found = of("TRACING_ENABLED=true\nOTEL_EXPORTER_OTLP_TIMEOUT=soon\n")
    assert (found.lines[1].fate, found.lines[1].text) == (
        Fate.REFUSED,
        "'soon' is not a number of seconds above 0",
    )
    assert found.refusals == ()
    assert found.is_refused
    assert not of("OTEL_EXPORTER_OTLP_TIMEOUT=soon\n").is_refused
    assert of("TRACING_ENABLED=true\nOTEL_EXPORTER_OTLP_HEADERS\n").lines[1].fate is Fate.OPEN


def test_what_the_exporters_read_is_not_shown() -> None:
    (_, line) = of("TRACING_ENABLED=true\nOTEL_EXPORTER_OTLP_HEADERS=a=secret\n").lines
    assert line.text == "what sends spans reads it"


@pytest.mark.parametrize("line", ["GRPC_HOST=0.0.0.0", "GRPC_MAX_CONNECTION_AGE=1h"])
def test_what_chooses_the_slower_front_says_so(line: str) -> None:
    choice = "; for it grpcio serves gRPC, the slower front"
    assert of(line).lines[-1].text.endswith(choice)
    assert not of(f"GRPC_FRONT=native\n{line}").lines[-1].text.endswith(choice)
    assert not of("GRPC_HOST=127.0.0.1").lines[-1].text.endswith(choice)


def test_every_condition_concerns_a_setting() -> None:
    mogrified = [*TABLE, "AGENT_STATSD_MOGRIFIER_A_NAME"]
    assert [each for each in CONDITIONS if not any(map(each.concerns, mogrified))] == []
