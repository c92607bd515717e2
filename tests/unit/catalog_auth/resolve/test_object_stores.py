"""The environment of an object store's client, with and without signatures, and its forms."""

from typing import Any

import pytest

from tests.support.catalog_auth.documents import Json, item, resolved, way, ways
from tollgate.serve.catalog_auth.document.document import Ancestors

S3: Json = {"type": "s3"}
KEYS = {
    "AWS_ACCESS_KEY_ID": "${environment.access_key_id}",
    "AWS_SECRET_ACCESS_KEY": "${environment.secret_access_key}",
    "AWS_NO_SIGN_REQUEST": "NO",
}
OWN = "https://objects.example.org"
STORES: Json = {
    "own": {"type": "custom-s3", "platform": OWN, "requester_pays": False},
    "paid": {
        "type": "aws-s3",
        "platform": "https://{bucket}.s3.{region}.amazonaws.com",
        "region": "us-west-2",
        "bucket": "b",
        "requester_pays": True,
    },
    "hosted": {"platform": "http://{bucket}.objects.example.org"},
}


def stored(*refs: str) -> Json:
    """Where the asset is stored, and what is known of that."""
    return {
        "asset": {"storage:refs": list(refs)},
        "properties": {"storage:schemes": STORES},
    }


def environment_of(found: Json) -> Json:
    step: Json = found["steps"][0]
    assert step["kind"] == "environment", step
    return step


def test_a_reference_switches_signing_on() -> None:
    found = way(S3, href="s3://b/k")
    environment, fetch = found["steps"]
    assert environment["environment"] == KEYS
    assert environment["needs"] == {
        "access_key_id": "s.access_key_id",
        "secret_access_key": "s.secret_access_key",
    }
    assert found["missing"] == ["s.access_key_id", "s.secret_access_key"]
    assert (fetch["kind"], fetch["requesterPays"]) == ("object", False)
    assert fetch["location"] == {
        "provider": "aws",
        "bucket": "b",
        "key": "k",
        "region": None,
        "endpoint": None,
        "style": "uri",
    }


def test_without_a_reference_signing_is_off() -> None:
    (found,) = ways(item(href="s3://b/k"))
    environment, fetch = found["steps"]
    assert environment["environment"] == {"AWS_NO_SIGN_REQUEST": "YES"}
    assert "needs" not in environment
    assert fetch["request"]["url"] == "https://b.s3.amazonaws.com/k"
    assert found["missing"] == []
    (plain,) = ways(item(href="https://data.example.com/a.tif"))
    assert [step["id"] for step in plain["steps"]] == ["fetch"]


def test_a_profile_that_is_held_takes_the_place_of_keys() -> None:
    found = way(S3, "s.profile", "s.config_file", href="s3://b/k")
    environment = environment_of(found)
    assert environment["environment"] == {
        "AWS_PROFILE": "${environment.profile}",
        "AWS_CONFIG_FILE": "${environment.config_file}",
        "AWS_NO_SIGN_REQUEST": "NO",
    }
    assert found["missing"] == []
    assert way(S3, "s.profile", href="s3://b/k")["missing"] == ["s.config_file"]
    assert way(S3, "s", href="s3://b/k")["missing"] == []


@pytest.mark.parametrize(
    ("href", "cloud", "path"),
    [
        ("s3://b/k", "AWS", "/vsis3/b/k"),
        ("gs://b/k", "GS", "/vsigs/b/k"),
        ("https://storage.googleapis.com/b/k", "GS", "/vsigs/b/k"),
        ("https://acct.blob.core.windows.net/c/k", "AZURE", "/vsiaz/c/k"),
    ],
)
def test_each_cloud_has_its_own_names(href: str, cloud: str, path: str) -> None:
    environment = environment_of(way(S3, href=href))
    names = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "NO_SIGN_REQUEST")
    assert {f"{cloud}_{name}" for name in names} <= set(environment["environment"])
    assert environment["forms"]["gdal"]["path"] == path
    assert ("rclone" in environment["forms"]) is (cloud == "AWS")


def test_azures_account_is_told() -> None:
    environment = environment_of(way(S3, href="https://acct.blob.core.windows.net/c/k"))
    assert environment["environment"]["AZURE_STORAGE_ACCOUNT"] == "acct"


def test_the_storage_scheme_tells_endpoint_region_and_who_pays() -> None:
    own = environment_of(way(S3, href="s3://b/k", **stored("own")))["environment"]
    assert own == {**KEYS, "AWS_ENDPOINT_URL": OWN}
    paid = way(S3, href="s3://b/k", **stored("paid"))
    assert environment_of(paid)["environment"] == {
        **KEYS,
        "AWS_REGION": "us-west-2",
        "AWS_DEFAULT_REGION": "us-west-2",
        "AWS_REQUEST_PAYER": "requester",
    }
    assert paid["steps"][1]["requesterPays"] is True


def test_the_first_storage_extension_is_understood() -> None:
    flat = {"storage:requester_pays": True}
    for more in ({"asset": flat}, {"properties": flat}):
        found = way(S3, href="s3://b/k", **more)
        assert environment_of(found)["environment"]["AWS_REQUEST_PAYER"] == "requester"
    own = {"asset": {"storage:requester_pays": False}, "properties": flat}
    assert not way(S3, href="s3://b/k", **own)["steps"][1]["requesterPays"]


def test_each_storage_is_an_alternative_of_its_own() -> None:
    root = item({"s": S3}, ["s"], "s3://b/k", **stored("paid", "own", "unknown"))
    found = ways(root)
    assert [(one["ref"], one["storage"]) for one in found] == [("s", "paid"), ("s", "own")]
    assert found[1]["steps"][1]["location"]["endpoint"] == OWN
    key = {"type": "apiKey", "in": "query", "name": "k"}
    assert len(ways(item({"s": key}, ["s"], "s3://b/k", **stored("paid", "own")))) == 1


def test_storages_of_the_ancestors_count() -> None:
    above = {"type": "Collection", "id": "c1", "storage:schemes": STORES}
    root = item({"s": S3}, ["s"], "s3://b/k", asset={"storage:refs": ["own"]})
    (found,) = resolved(root, ancestors=Ancestors(above)).alternatives
    assert "objects.example.org" in str(found.steps[0])
    root["properties"]["storage:schemes"] = {"paid": STORES["paid"]}
    assert resolved(root, ancestors=Ancestors(above)).alternatives == (found,)


def test_requester_pays_without_a_reference_is_pointed_at() -> None:
    (found,) = ways(item(href="s3://b/k", **stored("paid")))
    assert found["findings"] == ["T05"]


GDAL = {
    "own": {
        **KEYS,
        "AWS_S3_ENDPOINT": "objects.example.org",
        "AWS_HTTPS": "YES",
        "AWS_VIRTUAL_HOSTING": "FALSE",
    },
    "hosted": {
        **KEYS,
        "AWS_S3_ENDPOINT": "objects.example.org",
        "AWS_HTTPS": "NO",
        "AWS_VIRTUAL_HOSTING": "TRUE",
    },
    "paid": {**KEYS, "AWS_REGION": "us-west-2", "AWS_REQUEST_PAYER": "requester"},
}


@pytest.mark.parametrize(("store", "options"), GDAL.items(), ids=GDAL.keys())
def test_gdal_gets_its_variables_and_a_vsis3_path(store: str, options: Json) -> None:
    form = environment_of(way(S3, href="s3://b/k l", **stored(store)))["forms"]["gdal"]
    assert form == {"environment": options, "path": "/vsis3/b/k l"}


def test_rclone_gets_a_remote_in_its_variables() -> None:
    form = environment_of(way(S3, href="s3://b/k", **stored("own")))["forms"]["rclone"]
    prefix = "RCLONE_CONFIG_CATALOG_"
    assert form == {
        "environment": {
            f"{prefix}TYPE": "s3",
            f"{prefix}PROVIDER": "Other",
            f"{prefix}ENV_AUTH": "false",
            f"{prefix}ACCESS_KEY_ID": "${environment.access_key_id}",
            f"{prefix}SECRET_ACCESS_KEY": "${environment.secret_access_key}",
            f"{prefix}ENDPOINT": OWN,
            f"{prefix}FORCE_PATH_STYLE": "true",
        },
        "path": "catalog:b/k",
    }
    paid = environment_of(way(S3, "s.profile", href="s3://b/k", **stored("paid")))
    options = paid["forms"]["rclone"]["environment"]
    assert options[f"{prefix}PROVIDER"] == "AWS"
    assert options[f"{prefix}PROFILE"] == "${environment.profile}"
    assert options[f"{prefix}REQUESTER_PAYS"] == "true"


def test_the_aws_commands_form_is_quoted() -> None:
    def command(href: str, **more: Any) -> str:
        form = environment_of(way(S3, href=href, **more))["forms"]["awsCli"]["command"]
        assert isinstance(form, str)
        return form

    assert command("s3://b/k") == "aws s3 cp s3://b/k ./k"
    assert command("s3://b/a%20%24(x)") == "aws s3 cp 's3://b/a $(x)' './a $(x)'"
    paid = command("s3://b/d/k", **stored("paid"))
    assert paid == "aws s3 cp s3://b/d/k ./k --region us-west-2 --request-payer requester"
    assert command("s3://b/k", **stored("own")).endswith(f"--endpoint-url {OWN}")
    (public,) = ways(item(href="s3://b/k"))
    assert "--no-sign-request" in environment_of(public)["forms"]["awsCli"]["command"]


def test_obstore_gets_the_arguments_of_a_store() -> None:
    def form(**more: Any) -> Json:
        found: Json = environment_of(way(S3, href="s3://b/k", **more))["forms"]["obstore"]
        return found

    keys = {name: f"${{environment.{name}}}" for name in ("access_key_id", "secret_access_key")}
    assert form() == {"store": {"bucket": "b", **keys}, "path": "k"}
    assert form(**stored("paid"))["store"] == {
        "bucket": "b",
        **keys,
        "region": "us-west-2",
        "request_payer": True,
    }
    assert form(**stored("hosted"))["store"] == {
        "bucket": "b",
        **keys,
        "endpoint": "http://objects.example.org",
        "virtual_hosted_style_request": True,
        "client_options": {"allow_http": True},
    }
    (public,) = ways(item(href="s3://b/k"))
    assert environment_of(public)["forms"]["obstore"]["store"]["skip_signature"] is True


def test_what_is_no_object_cannot_be_read_with_keys() -> None:
    found = way(S3, href="ftp://old.example.com/a")
    assert not found["executable"]
    assert found["findings"] == ["T01"]


def test_a_guessed_bucket_is_said_to_be_one() -> None:
    _, fetch = way(S3, href="https://bucket.example.com/k")["steps"]
    assert fetch["location"]["style"] == "first-label"
    assert "are a guess" in fetch["warnings"][0]


def test_temporary_keys_from_a_token_are_described() -> None:
    oidc = {"type": "openIdConnect", "openIdConnectUrl": "https://idp.example.com/.well-known/x"}
    exchange = {
        "type": "oauth2",
        "auth:refs": ["o"],
        "flows": {"tokenExchange": {"tokenUrl": "https://idp.example.com/t", "scopes": {}}},
    }
    (found,) = ways(item({"o": oidc, "x": exchange}, ["x"], "s3://b/k"))
    assert not found["executable"]
    assert [step["kind"] for step in found["steps"]] == ["oidc", "http", "http", "described"]
    root = item({"o": oidc, "s": {**S3, "auth:refs": ["o"]}}, ["s"], "s3://b/k")
    (found,) = ways(root)
    assert not found["executable"]
    assert "temporary keys" in found["steps"][-1]["text"]
    (found,) = ways(root, "s.access_key_id", "s.secret_access_key")
    assert found["executable"]


def test_a_container_of_an_unknown_account_has_no_url() -> None:
    (found,) = ways(item(href="az://c/k"))
    assert not found["executable"]
    assert "the account of the container is not known" in found["steps"][-1]["text"]


def test_gdal_and_obstore_are_told_where_buckets_are() -> None:
    dotted = environment_of(way(S3, href="s3://a.b/k"))["forms"]["gdal"]["environment"]
    assert dotted["AWS_VIRTUAL_HOSTING"] == "FALSE"
    point = "https://maps-123456789012.s3-accesspoint.us-west-2.amazonaws.com/k"
    options = environment_of(way(S3, href=point))["forms"]["obstore"]["store"]
    assert options["virtual_hosted_style_request"] is True
