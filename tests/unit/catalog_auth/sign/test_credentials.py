"""Keys for signing from variables, and from a profile in a file."""

import pytest

from tollgate.serve.catalog_auth.sign.credentials import (
    BadCredentialsError,
    credentials_from_environment,
)
from tollgate.serve.catalog_auth.sign.signer import SigningCredentials

FILE = """
[default]
aws_access_key_id = AKDEFAULT
aws_secret_access_key = sd%fault

[profile maps]
aws_access_key_id = AKMAPS
aws_secret_access_key = smaps
aws_session_token = tmaps
region = us-west-2

[half]
aws_access_key_id = AKHALF
"""
KEYS = {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "s"}


def read(path: str) -> str:
    assert path == "/etc/keys"
    return FILE


def profile(name: str) -> dict[str, str]:
    return {"AWS_PROFILE": name, "AWS_CONFIG_FILE": "/etc/keys"}


FOUND: dict[str, tuple[dict[str, str], SigningCredentials | None]] = {
    "nothing": ({}, None),
    "empty": ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, None),
    "keys": (KEYS, SigningCredentials("AK", "s")),
    "session": ({**KEYS, "AWS_SESSION_TOKEN": "t"}, SigningCredentials("AK", "s", "t")),
    "keys before a profile": ({**KEYS, **profile("maps")}, SigningCredentials("AK", "s")),
    "profile": (profile("maps"), SigningCredentials("AKMAPS", "smaps", "tmaps")),
    "default profile": (
        {"AWS_CONFIG_FILE": "/etc/keys"},
        SigningCredentials("AKDEFAULT", "sd%fault"),
    ),
    "signing on": ({**KEYS, "AWS_NO_SIGN_REQUEST": "NO"}, SigningCredentials("AK", "s")),
    "signing off": ({**KEYS, "AWS_NO_SIGN_REQUEST": "YES"}, None),
    "signing off, otherwise": ({**KEYS, "AWS_NO_SIGN_REQUEST": " true"}, None),
    "another cloud": ({name.replace("AWS", "GS"): value for name, value in KEYS.items()}, None),
}


@pytest.mark.parametrize(("environment", "found"), FOUND.values(), ids=FOUND.keys())
def test_the_variables_of_s3_give_the_keys(
    environment: dict[str, str], found: SigningCredentials | None
) -> None:
    assert credentials_from_environment(environment, read) == found


def test_each_cloud_has_its_own_variables() -> None:
    environment = {"OTC_ACCESS_KEY_ID": "AK", "OTC_SECRET_ACCESS_KEY": "s", **profile("maps")}
    found = credentials_from_environment(environment, read, cloud="OTC")
    assert found == SigningCredentials("AK", "s")


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {"AWS_ACCESS_KEY_ID": "AK"},
            "AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not: set both or none",
        ),
        (
            {"AWS_SECRET_ACCESS_KEY": "s"},
            "AWS_SECRET_ACCESS_KEY is set, and AWS_ACCESS_KEY_ID is not: set both or none",
        ),
        ({"AWS_PROFILE": "maps"}, "AWS_PROFILE is set: name its file in AWS_CONFIG_FILE"),
        (profile("gone"), "/etc/keys has no profile 'gone'"),
        (
            profile("half"),
            "/etc/keys: [half] needs aws_access_key_id and aws_secret_access_key",
        ),
    ],
)
def test_half_of_the_keys_is_an_error(environment: dict[str, str], message: str) -> None:
    with pytest.raises(BadCredentialsError) as caught:
        credentials_from_environment(environment, read)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["aws_access_key_id = AK", "[default", "\x00"])
def test_a_file_that_is_none_is_an_error_without_its_content(text: str) -> None:
    with pytest.raises(BadCredentialsError, match=r"^/etc/keys(:\d+)? is not written"):
        credentials_from_environment({"AWS_CONFIG_FILE": "/etc/keys"}, lambda _: text)
