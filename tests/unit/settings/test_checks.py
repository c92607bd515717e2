"""Settings that are good alone and wrong together; mogrifiers (H12); what is not yet built."""

import pytest

from tollgate.serve.settings import Settings, SettingsError, service
from tollgate.serve.settings.outside.mogrifiers import Mogrifier

TLS = {
    "GRPC_SERVER_USE_TLS": "true",
    "GRPC_SERVER_TLS_CERT": "/c.pem",
    "GRPC_SERVER_TLS_KEY": "/k.pem",
}
MEMCACHED = {"BACKEND_TYPE": "memcache", "MEMCACHE_HOST_PORT": "cache:11211"}
XDS = {"CONFIG_TYPE": "GRPC_XDS_SOTW"}
MOGRIFIER = {
    "USE_DOG_STATSD": "true",
    "USE_DOG_STATSD_MOGRIFIERS": "FOO",
    "DOG_STATSD_MOGRIFIER_FOO_PATTERN": r"^a\.(.*)$",
    "DOG_STATSD_MOGRIFIER_FOO_NAME": "a",
    "DOG_STATSD_MOGRIFIER_FOO_TAGS": "domain:$1",
}


def errors_of(environ: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment(environ)
    return caught.value.errors


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
            XDS | {"CONFIG_GRPC_XDS_SERVER_USE_TLS": "1", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT": "/c"},
            (
                "CONFIG_GRPC_XDS_CLIENT_TLS_KEY: is not set, but CONFIG_GRPC_XDS_CLIENT_TLS_CERT "
                "needs it",
            ),
        ),
        (
            XDS | {"CONFIG_GRPC_XDS_SERVER_USE_TLS": "1", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY": "/k"},
            (
                "CONFIG_GRPC_XDS_CLIENT_TLS_CERT: is not set, but CONFIG_GRPC_XDS_CLIENT_TLS_KEY "
                "needs it",
            ),
        ),
        (
            XDS | {"CONFIG_GRPC_XDS_SERVER_TLS_CACERT": "/ca.pem"},
            (
                "CONFIG_GRPC_XDS_SERVER_USE_TLS: is not set, but "
                "CONFIG_GRPC_XDS_SERVER_TLS_CACERT needs it",
            ),
        ),
        (
            {"GRPC_FRONTS": "2", "GRPC_UDS": "/door.sock"},
            ("GRPC_UDS: 2 fronts cannot share a unix socket: unset it, or set GRPC_FRONTS=1",),
        ),
        (
            {"GRPC_FRONTS": "3", "GRPC_PORT": "0", "JSON_PORT": "0"},
            (
                "GRPC_PORT: 3 fronts cannot share a port that is found at the start: name one",
                "JSON_PORT: 3 fronts cannot share a port that is found at the start: name one",
            ),
        ),
        (
            {"SMTP_HOST": "mail.example.com", "SMTP_USER": "me"},
            (
                "MAIL_FROM: is not set, but SMTP_HOST needs it",
                "SMTP_PASSWORD: is not set, but SMTP_USER needs it",
            ),
        ),
        (
            {"SMTP_PASSWORD": "secret", "SMTP_TLS": "none"},
            (
                "SMTP_USER: is not set, but SMTP_PASSWORD needs it",
                "SMTP_TLS: none would send SMTP_PASSWORD for everybody on the way to read: "
                "set starttls or tls",
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
            {"DEBUG_PORT": "8080"},
            ("PORT and DEBUG_PORT: cannot all be port 8080: change one",),
        ),
        (
            {"DEBUG_PORT": "8265"},
            ("DEBUG_PORT and RAY_DASHBOARD_PORT: cannot all be port 8265: change one",),
        ),
        (
            {"USE_PULLMETRICS": "1", "PROMETHEUS_ADDR": ":6070"},
            ("DEBUG_PORT and PROMETHEUS_ADDR: cannot all be port 6070: change one",),
        ),
        (
            {"BACKEND_TYPE": "memcache"},
            ("ALTCACHE_HOST_PORT: is not set, but BACKEND_TYPE needs it, or ALTCACHE_SRV",),
        ),
        (
            {"BACKEND_TYPE": "memcache", "MEMCACHE_HOST_PORT": "a:1", "ALTCACHE_SRV": "_m._tcp.a"},
            ("MEMCACHE_HOST_PORT and ALTCACHE_SRV: both say where the nodes are: unset one",),
        ),
        (
            MEMCACHED | {"MEMCACHE_TLS": "1", "MEMCACHE_TLS_CLIENT_CERT": "/c.pem"},
            ("MEMCACHE_TLS_CLIENT_KEY: is not set, but MEMCACHE_TLS_CLIENT_CERT needs it",),
        ),
        (
            MEMCACHED | {"MEMCACHE_TLS": "1", "MEMCACHE_TLS_CLIENT_KEY": "/k.pem"},
            ("MEMCACHE_TLS_CLIENT_CERT: is not set, but MEMCACHE_TLS_CLIENT_KEY needs it",),
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
def test_settings_that_are_wrong_together_are_refused(
    environ: dict[str, str], lines: tuple[str, ...]
) -> None:
    assert errors_of(environ) == lines


@pytest.mark.parametrize(
    "environ",
    [
        TLS | {"GRPC_CLIENT_TLS_CACERT": "/ca.pem", "GRPC_CLIENT_TLS_SAN": "localhost"},
        {"CONFIG_GRPC_XDS_SERVER_TLS_CACERT": "/ca.pem"},  # of a source that nobody chose
        {"PORT": "0", "GRPC_PORT": "0", "DEBUG_PORT": "0", "PULLMETRICS_ADDR": ":0"},
        {"GRPC_PORT": "8080", "GRPC_UDS": "/tmp/socket"},
        {"DEBUG_PORT": "8265", "RAY_DASHBOARD_ENABLED": "false"},
        MEMCACHED,
        {"BACKEND_TYPE": "altcache", "ALTCACHE_SRV": "_memcache._tcp.example.com"},
        {"MEMCACHE_HOST_PORT": "a:1", "MEMCACHE_SRV": "_m._tcp.a"},
        {"PULLMETRICS_ADDR": ":8080"},
        {"USE_STATSD": "false", "USE_PROMETHEUS": "true"},
        {"DISABLE_STATS": "true", "USE_STATSD": "true", "USE_PROMETHEUS": "true"},
        {"REDIS_TYPE": "SENTINEL", "REDIS_URL": "mymaster,localhost:26379"},
        {"GRPC_FRONT": "native", "GRPC_MAX_CONNECTION_AGE": "0"},
        {"REDIS_POOL_ON_EMPTY_BEHAVIOR": "WAIT", "REDIS_CLUSTER_PIPELINE_PARALLELISM": "0"},
        {"MEMCACHE_SRV_REFRESH": "30", "MEMCACHE_SRV": "_m._tcp.example.com"},
    ],
)
def test_settings_that_fit_raise_no_warning(environ: dict[str, str]) -> None:
    assert Settings.from_environment(environ).warnings == ()


def test_the_default_of_a_bad_value_is_not_blamed() -> None:
    # PORT's default is 8080, too; USE_STATSD's default is a transport.
    environ = {"PORT": "eighty", "DEBUG_PORT": "8080", "USE_STATSD": "no", "USE_PROMETHEUS": "1"}
    assert [line.partition(":")[0] for line in errors_of(environ)] == ["PORT", "USE_STATSD"]


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
        ("PATTERN", "(", "PATTERN: '(' is not a regular expression: missing )"),
        ("TAGS", ":b", "TAGS: ':b' has an item (number 1) not written key:value"),
        ("TAGS", "a:", "TAGS: 'a:' has a tag without a value"),
    ],
)
def test_a_bad_mogrifier_is_refused_by_its_part(part: str, value: str, line: str) -> None:
    (error,) = errors_of(MOGRIFIER | {f"DOG_STATSD_MOGRIFIER_FOO_{part}": value})
    assert error.startswith(f"DOG_STATSD_MOGRIFIER_FOO_{line}")


@pytest.mark.parametrize(
    ("listed", "word"),
    [
        ("AGENT_STATSD_MOGRIFIERS", "AGENT_STATSD"),
        ("USE_AGENT_STATSD_MOGRIFIERS", "AGENT_STATSD"),
        ("DOG_STATSD_MOGRIFIERS", "DOG_STATSD"),
        ("USE_DOG_STATSD_MOGRIFIERS", "DOG_STATSD"),
    ],
)
def test_a_mogrifier_that_is_listed_only(listed: str, word: str) -> None:
    errors = errors_of({"USE_DOG_STATSD": "1", listed: "FOO"})
    assert [line.partition(":")[0] for line in errors] == [
        f"{word}_MOGRIFIER_FOO_PATTERN",
        f"{word}_MOGRIFIER_FOO_NAME",
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
    environ = MOGRIFIER | {"USE_DOG_STATSD": "false", "DOG_STATSD_MOGRIFIER_FOO_PATTERN": "("}
    assert Settings.from_environment(environ).mogrifiers == ()


@pytest.mark.parametrize(
    ("asked", "cores", "processes"), [("1", 8, 1), ("3", 2, 3), ("0", 8, 8), ("0", 96, 64)]
)
def test_fronts_are_as_many_as_asked_or_as_there_are_cores(
    asked: str, cores: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "cores", lambda: cores)
    grpc = Settings.from_environment({"GRPC_FRONTS": asked}).grpc
    assert (grpc.processes, grpc.has_peers) == (processes, processes > 1)


@pytest.mark.parametrize("name", ["GRPC_UDS", "GRPC_PORT", "JSON_PORT"])
def test_one_front_takes_any_socket_and_any_port(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "cores", lambda: 1)
    value = "/door.sock" if name == "GRPC_UDS" else "0"
    for fronts in ("0", "1"):
        Settings.from_environment({"GRPC_FRONTS": fronts, name: value})


@pytest.mark.parametrize(
    ("protocol", "name", "value", "what"),
    [
        ("http", "TIMEOUT", "soon", "'soon' is not a number of seconds above 0"),
        ("grpc", "TRACES_TIMEOUT", "", "'' is not a number of seconds above 0"),
        ("http", "TIMEOUT", "0", "'0' is not a number of seconds above 0"),
        ("http", "COMPRESSION", "br", "'br' is not one of none, gzip, deflate"),
        ("grpc", "TRACES_COMPRESSION", "deflate", "'deflate' is not one of gzip"),
        ("http", "ENDPOINT", "collector:4318", "its value is not a URL, http://host:port"),
        *(
            ("http", kind, value, "its value is not a list of headers, name=value,name=value")
            for kind, value in (
                ("HEADERS", "authorization=Bearer%0Ax"),
                ("TRACES_HEADERS", "a=b,authorization"),
                ("HEADERS", "a b=c"),
                ("HEADERS", "a=b;c"),
                ("HEADERS", "a=%C3%A9"),
            )
        ),
    ],
)
def test_a_wrong_word_to_the_exporter_stops_a_start_that_traces(
    protocol: str, name: str, value: str, what: str
) -> None:
    name = f"OTEL_EXPORTER_OTLP_{name}"
    environ = {name: value, "TRACING_EXPORTER_PROTOCOL": protocol}
    assert Settings.from_environment(environ).otlp == {name: value}
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment(environ | {"TRACING_ENABLED": "true"})
    assert caught.value.errors == (f"{name}: {what}",)


def test_good_words_to_the_exporter_are_handed_on() -> None:
    said = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317",
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "0.5",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20dTpw==, X-Tenant = a b,,c=",
        "OTEL_RESOURCE_ATTRIBUTES": "a=b",
    }
    traced = {"TRACING_ENABLED": "true", "TRACING_EXPORTER_PROTOCOL": "grpc"}
    settings = Settings.from_environment(said | traced | {"OTEL_SERVICE_NAME": "another"})
    assert settings.otlp == said
