"""The places of a Redis, as its URL names them in each layout."""

import pytest

from tollgate.serve.settings import Settings, SettingsError
from tollgate.serve.settings.checks import redis_place
from tollgate.serve.settings.outside.redis_urls import credentials
from tollgate.serve.settings.values import Address

SENTINEL = {"REDIS_TYPE": "SENTINEL"}
CLUSTER = {"REDIS_TYPE": "cluster"}


def errors_of(environ: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment(environ)
    return caught.value.errors


@pytest.mark.parametrize(
    ("environ", "shown"),
    [
        ({"BACKEND_TYPE": "redis"}, "/var/run/nutcracker/ratelimit.sock"),
        ({"REDIS_URL": "/run/redis.sock"}, "/run/redis.sock"),
        ({"REDIS_URL": "unix:///run/redis.sock"}, "/run/redis.sock"),
        ({"REDIS_URL": "redis.sock", "REDIS_SOCKET_TYPE": "unix"}, "redis.sock"),
        ({"REDIS_URL": "redis:6380"}, "redis:6380"),
        ({"REDIS_URL": "redis:6380", "REDIS_SOCKET_TYPE": "tcp"}, "redis:6380"),
        ({"REDIS_URL": ":6380"}, "127.0.0.1:6380"),
        ({"REDIS_URL": "[::1]:6380"}, "::1:6380"),
        ({"REDIS_URL": "redis://redis"}, "redis:6379"),
        ({"REDIS_URL": "redis://u:p@redis:6380", "REDIS_SOCKET_TYPE": "unix"}, "redis:6380"),
        ({"REDIS_URL": "rediss://redis:6380/3"}, "redis:6380"),
        (SENTINEL | {"REDIS_URL": "main,a:1, b:2"}, "main by a:1, b:2"),
        (CLUSTER | {"REDIS_URL": "a:1,redis://u:p@b:2"}, "a:1, b:2"),
    ],
)
def test_a_place_for_people_has_no_credentials(environ: dict[str, str], shown: str) -> None:
    settings = Settings.from_environment(environ)
    assert str(redis_place(settings, settings.kvstore)) == shown


def test_all_that_an_url_can_say() -> None:
    settings = Settings.from_environment({"REDIS_URL": "rediss://u:p@x:y@redis:6380/3"})
    place = redis_place(settings, settings.kvstore)
    assert place.addresses == (Address("redis", 6380),)
    assert place.credentials == ("u", "p@x:y")
    assert place.database == 3
    assert place.has_tls


@pytest.mark.parametrize(
    ("environ", "part"),
    [
        (SENTINEL | {"REDIS_URL": "main"}, "write MASTER,HOST:PORT,HOST:PORT"),
        (SENTINEL | {"REDIS_URL": "main,"}, "write MASTER,HOST:PORT,HOST:PORT"),
        (SENTINEL | {"REDIS_URL": ",a:1"}, "write MASTER,HOST:PORT,HOST:PORT"),
        (SENTINEL | {"REDIS_URL": "main,a"}, "is not host:port"),
        (CLUSTER | {"REDIS_URL": "a:1,b"}, "is not host:port"),
        (CLUSTER | {"REDIS_URL": ","}, "names no server"),
        ({"REDIS_URL": "redis"}, "is not host:port"),
        ({"REDIS_URL": "redis:0"}, "has port 0"),
        ({"REDIS_URL": "http://redis:1"}, "has a scheme that is none of redis, rediss"),
        (
            {"REDIS_URL": "redis://redis:1/x"},
            "a database, behind its `/`, that is not",
        ),
        ({"REDIS_URL": "redis://redis:1/0?x=1"}, "that is not a whole number between 0 and 65536"),
        ({"REDIS_URL": "", "BACKEND_TYPE": "redis"}, "is not host:port"),
        ({"REDIS_URL": "", "BACKEND_TYPE": "redis", "REDIS_SOCKET_TYPE": "unix"}, "unix socket"),
    ],
)
def test_an_url_that_names_no_place_is_refused(environ: dict[str, str], part: str) -> None:
    (error,) = errors_of(environ)
    assert error.startswith("REDIS_URL: ")
    assert part in error


def test_a_second_store_is_looked_at_when_it_is_used() -> None:
    environ = {"REDIS_URL": "a:1", "REDIS_PERSECOND_URL": "b"}
    assert Settings.from_environment(environ).persecond.url == "b"
    (error,) = errors_of(environ | {"REDIS_PERSECOND": "true"})
    assert error.startswith("REDIS_PERSECOND_URL: 'b' is not host:port")
    # With its counters elsewhere, nothing of Redis is looked at.
    Settings.from_environment({"REDIS_URL": "b", "BACKEND_TYPE": "actors"})


def test_a_refusal_shows_no_password() -> None:
    (error,) = errors_of({"REDIS_URL": "redis://u:p@ss@redis:0"})
    assert error == "REDIS_URL: 'redis://*****@redis:0' has port 0"


def test_a_certificate_has_two_halves() -> None:
    (error,) = errors_of({"REDIS_URL": "a:1", "REDIS_TLS_CLIENT_CERT": "c"})
    assert error == "REDIS_TLS_CLIENT_KEY: is not set, but REDIS_TLS_CLIENT_CERT needs it"
    (error,) = errors_of({"REDIS_URL": "a:1", "REDIS_TLS_CLIENT_KEY": "k"})
    assert error == "REDIS_TLS_CLIENT_CERT: is not set, but REDIS_TLS_CLIENT_KEY needs it"


@pytest.mark.parametrize(
    ("auth", "found"),
    [("", None), ("p", ("", "p")), ("u:p", ("u", "p")), ("u:p:q", ("u", "p:q")), (":p", ("", "p"))],
)
def test_a_password_may_have_a_user(auth: str, found: tuple[str, str] | None) -> None:
    assert credentials(auth) == found
