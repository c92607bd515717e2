"""The settings of a control plane: what is refused, and when its rules are waited for."""

import pytest

from tollgate.serve.settings import Settings, SettingsError
from tollgate.serve.settings.outside.control_plane import ControlPlaneSettings

HEADERS = "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS"
XDS = {"CONFIG_TYPE": "GRPC_XDS_SOTW"}


def plane_of(environ: dict[str, str]) -> ControlPlaneSettings:
    return Settings.from_environment(environ).control_plane


def error_of(name: str, value: str) -> str:
    with pytest.raises(SettingsError) as caught:
        plane_of({name: value})
    (line,) = caught.value.errors
    return line


def test_headers_have_names_in_small_letters() -> None:
    environ = {HEADERS: "Authorization:Bearer a:b, x-team:edge"}
    assert plane_of(environ).headers == (("authorization", "Bearer a:b"), ("x-team", "edge"))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("a b:c", "number 1) whose name no header can have"),
        ("x:1,grpc-timeout:1s", "number 2) whose name no header can have"),
        ("token-bin:c", "number 1) whose name no header can have"),
        ("x:\u00e4", "number 1) with a value beyond ASCII"),
        ("x:a\nb", "number 1) with a value beyond ASCII"),
    ],
)
def test_headers_that_no_call_can_have_are_refused(value: str, reason: str) -> None:
    line = error_of(HEADERS, value)
    assert line.startswith(f"{HEADERS}: '*****' has an item (")
    assert reason in line


@pytest.mark.parametrize("value", ["", "a b:1"])
def test_an_address_that_is_none_is_refused(value: str) -> None:
    line = error_of("CONFIG_GRPC_XDS_SERVER_URL", value)
    assert line.endswith("is not an address such as control-plane:18000")


@pytest.mark.parametrize("value", ["http://cp:1", "HTTPS://cp:1"])
def test_an_address_of_the_web_is_refused_with_what_is_meant(value: str) -> None:
    line = error_of("CONFIG_GRPC_XDS_SERVER_URL", value)
    assert "write control-plane:18000, and for TLS CONFIG_GRPC_XDS_SERVER_USE_TLS=true" in line


@pytest.mark.parametrize(
    "name",
    [
        "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL",
        "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL",
        "XDS_CLIENT_BACKOFF_MAX_INTERVAL",
    ],
)
def test_there_are_no_storms_of_calls(name: str) -> None:
    assert error_of(name, "0s").endswith("is not a duration between 10ms and 24h")


@pytest.mark.parametrize(
    ("environ", "is_needed"),
    [
        ({}, False),
        (XDS, True),
        (XDS | {"FORCE_START_WITHOUT_INITIAL_CONFIG": "true"}, False),
        ({"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED": "true"}, True),
    ],
)
def test_nobody_is_healthy_before_a_control_plane_has_answered(
    environ: dict[str, str], is_needed: bool
) -> None:
    assert Settings.from_environment(environ).rules.need_to_be_there is is_needed
