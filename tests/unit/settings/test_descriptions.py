"""What an operator is shown: each setting with its source, no secrets, and near misses."""

import pytest

from tollgate.serve.settings import Description, Settings, SettingsError, describe
from tollgate.serve.settings.rows import without_credentials
from tollgate.serve.settings.table import TABLE


def described(environ: dict[str, str], name: str) -> Description:
    return next(item for item in describe(environ) if item.name == name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("GRPC_PROT", "GRPC_PORT"),
        ("RUNTIME_ROOTS", "RUNTIME_ROOT"),
        ("REDIS_POOLSIZE", "REDIS_POOL_SIZE"),
        ("KVSTORE_URLS", "KVSTORE_URL"),
    ],
)
def test_a_near_miss_is_told_what_was_meant(name: str, meant: str) -> None:
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
def test_names_of_others_are_left_alone(name: str) -> None:
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
    name = "DOG_STATSD_MOGRIFIER_FOO_NAME"
    line = described({name: "a"}, "AGENT_STATSD_MOGRIFIER_FOO_NAME")
    assert (line.value, line.feature) == ("a", "statistics")
    assert line.source == f"environment ({name})"


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
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS": "s3cret"})
    (error,) = caught.value.errors
    assert error.startswith("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: '*****' has an item")
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
