"""The request to an API that signs URLs: which values a client can tell, and where they go."""

from typing import Any

import pytest

from tests.support.catalog_auth.documents import Json, item, way, ways
from tollgate.serve.catalog_auth.sign.signer import signed_url_scheme

API = "https://sign.example.com/v1"
S3 = "s3://my.bucket/a%20b/c"


def parameter(where: str, required: bool = True, **schema: Any) -> Json:
    return {"in": where, "required": required, **({"schema": schema} if schema else {})}


def signed(parameters: object = None, method: object = "POST", **flow: Any) -> Json:
    members: Json = {"method": method, "authorizationApi": API, "responseField": "u", **flow}
    if parameters is not None:
        members["parameters"] = parameters
    return {"type": "signedUrl", "flows": {"sign": members}}


def sign_of(scheme: Json, *available: str, href: str = S3, **more: Any) -> Json:
    step: Json = way(scheme, *available, href=href, **more)["steps"][0]
    assert step["id"] == "sign", step
    return step


DERIVED = {
    "bucket": "my.bucket",
    "key": "a b/c",
    "href": S3,
    "url": S3,
    "URI": S3,
    "asset": "data",
    "item_id": "i1",
    "itemId": "i1",
    "collection": "c1",
    "collection-id": "c1",
}


@pytest.mark.parametrize(("name", "value"), DERIVED.items(), ids=DERIVED.keys())
def test_a_client_tells_by_itself(name: str, value: str) -> None:
    found = way(signed({name: parameter("body")}), href=S3)
    assert found["steps"][0]["request"]["body"] == {name: value}
    assert found["missing"] == []


def test_what_a_client_cannot_tell_it_needs() -> None:
    found = way(signed({"team": parameter("body"), "x y": parameter("query")}))
    request = found["steps"][0]["request"]
    assert request["body"] == {"team": "${sign.parameter0}"}
    assert request["url"] == f"{API}?x%20y=${{sign.parameter1}}"
    assert found["steps"][0]["needs"] == {"parameter0": "s.team", "parameter1": "s.x y"}
    assert found["missing"] == ["s.team", "s.x y"]
    assert way(signed({"team": parameter("body")}), "s.team")["missing"] == []


def test_bucket_and_key_of_no_object_are_needed() -> None:
    parameters = {"bucket": parameter("body"), "key": parameter("body")}
    found = way(signed(parameters), href="ftp://old.example.com/a")
    assert found["missing"] == ["s.bucket", "s.key"]


@pytest.mark.parametrize(
    ("schema", "is_required", "value"),
    [
        ({"const": "v2"}, True, "v2"),
        ({"const": 2}, False, 2),
        ({"default": "eu"}, True, "eu"),
        ({"default": "eu"}, False, None),
        ({"default": ["eu"]}, True, "${sign.parameter0}"),
        ({}, False, None),
    ],
)
def test_a_schema_may_tell_the_value(schema: Json, is_required: bool, value: Any) -> None:
    request = sign_of(signed({"p": parameter("body", is_required, **schema)}))["request"]
    assert request.get("body") == (None if value is None else {"p": value})


@pytest.mark.parametrize("name", ["token", "client_secret", "X-Api-Key", "password"])
def test_the_default_of_a_secret_is_not_passed_on(name: str) -> None:
    found = way(signed({name: parameter("header", default="hunter2")}))
    assert "hunter2" not in str(found)
    assert found["missing"] == [f"s.{name}"]


def test_parameters_go_to_their_places() -> None:
    parameters = {
        "href": parameter("query"),
        "X-Asset": parameter("header"),
        "key": parameter("body"),
        "flag": parameter("query", const=True),
    }
    parameters["X-Asset"]["schema"] = {"const": "a, b"}
    request = sign_of(signed(parameters))["request"]
    assert request == {
        "method": "POST",
        "url": f"{API}?href=s3%3A%2F%2Fmy.bucket%2Fa%2520b%2Fc&flag=true",
        "headers": {"Content-Type": "application/json", "X-Asset": "a, b"},
        "body": {"key": "a b/c"},
    }


def test_a_parameter_replaces_the_same_one_of_the_api() -> None:
    scheme = signed({"href": parameter("query")}, authorizationApi=f"{API}?href=old&v=1#x")
    url = sign_of(scheme, href="https://data.example.com/a")["request"]["url"]
    assert url == f"{API}?v=1&href=https%3A%2F%2Fdata.example.com%2Fa#x"


def test_the_signed_url_is_where_the_response_field_says() -> None:
    produced = sign_of(signed(responseField="a/b~c"))["produces"]
    assert produced == {"pointer": "/a~1b~0c", "as": "url", "responseFieldAssumed": False}


@pytest.mark.parametrize("field", [None, "", 7])
def test_without_a_response_field_what_is_in_use_is_tried(field: object) -> None:
    found = way(signed(responseField=field))
    assert found["steps"][0]["produces"] == {
        "pointer": "/signed_url",
        "as": "url",
        "responseFieldAssumed": True,
        "otherwise": ["/href", "/url", "/signedUrl"],
    }
    assert found["findings"] == ["G04"]


def test_the_signed_url_is_fetched_without_anything_else() -> None:
    _, fetch = way(signed())["steps"]
    assert fetch["request"] == {"method": "GET", "url": "${sign.url}", "headers": {}}
    assert fetch["credentials"]["of"] == []
    assert fetch["credentials"]["default"] is False
    assert fetch["warnings"] == ["do not forward Authorization to the signed URL"]


def test_a_body_with_a_get_is_warned_about() -> None:
    step = sign_of(signed({"key": parameter("body")}, "get"))
    assert step["request"]["method"] == "GET"
    assert "many servers and proxies drop it" in step["warnings"][0]


PROTECTED = {
    "bearer": ({"type": "http", "scheme": "bearer"}, {"Authorization": "Bearer ${sign.token}"}),
    "basic": ({"type": "http", "scheme": "basic"}, {"Authorization": "Basic ${sign.basic}"}),
    "key": ({"type": "apiKey", "in": "header", "name": "X-Key"}, {"X-Key": "${sign.key}"}),
}


@pytest.mark.parametrize(("scheme", "headers"), PROTECTED.values(), ids=PROTECTED.keys())
def test_the_api_gets_the_credential_of_the_chain(scheme: Json, headers: Json) -> None:
    schemes = {"in": scheme, "s": {**signed({"url": parameter("query")}), "auth:refs": ["in"]}}
    (found,) = ways(item(schemes, ["s"]))
    sign, fetch = found["steps"]
    assert sign["request"]["headers"] == headers
    assert sign["credentials"]["hosts"] == ["sign.example.com"]
    assert fetch["request"]["headers"] == {}
    assert found["missing"][0].startswith("in.")


# Names that credentials, or the code itself, might take for values of their own.
RIVALS = ("token", "username", "password", "basic", "access_token", "parameter0", "parameter2")


@pytest.mark.parametrize(("scheme", "headers"), PROTECTED.values(), ids=PROTECTED.keys())
def test_no_parameter_takes_the_place_of_a_credential(scheme: Json, headers: Json) -> None:
    parameters = {name: parameter("body") for name in RIVALS}
    schemes = {"in": scheme, "s": {**signed(parameters), "auth:refs": ["in"]}}
    (found,) = ways(item(schemes, ["s"], "https://data.example.com/a"))
    sign, _ = found["steps"]
    own = {name: called for name, called in sign["needs"].items() if called.startswith("in.")}
    assert own == {name: f"in.{name}" for name in own}
    assert own
    places = {name: value[len("${sign.") : -1] for name, value in sign["request"]["body"].items()}
    assert {name: sign["needs"][place] for name, place in places.items()} == {
        name: f"s.{name}" for name in RIVALS
    }
    assert not set(places.values()) & {*own, *sign.get("derives", {})}
    assert headers.items() <= sign["request"]["headers"].items()
    assert found["missing"] == [*own.values(), *(f"s.{name}" for name in RIVALS)]


def test_names_with_dots_are_told_apart() -> None:
    """`x.token` of the scheme `s` is not `token` of the scheme `s.x`."""
    s = {**signed({"x.token": parameter("body"), "x%2Etoken": parameter("body")})}
    schemes = {"s.x": {"type": "http", "scheme": "bearer"}, "s": {**s, "auth:refs": ["s.x"]}}
    (found,) = ways(item(schemes, ["s"]))
    assert found["missing"] == ["s.x.token", "s.x%2Etoken", "s.x%252Etoken"]


@pytest.mark.parametrize(
    ("scheme", "where", "name"),
    [
        ({"type": "http", "scheme": "bearer"}, "header", "authorization"),
        ({"type": "http", "scheme": "basic"}, "header", "Authorization"),
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, "header", "x-key"),
        ({"type": "apiKey", "in": "query", "name": "k"}, "query", "k"),
        ({"type": "apiKey", "in": "cookie", "name": "k"}, "header", "Cookie"),
    ],
)
def test_a_parameter_in_the_place_of_the_credential_is_the_credential(
    scheme: Json, where: str, name: str
) -> None:
    schemes = {"in": scheme, "s": {**signed({name: parameter(where)}), "auth:refs": ["in"]}}
    (found,) = ways(item(schemes, ["s"]))
    (plain,) = ways(item({**schemes, "s": {**signed(), "auth:refs": ["in"]}}, ["s"]))
    assert found["steps"] == plain["steps"]
    assert all(missing.startswith("in.") for missing in found["missing"])


@pytest.mark.parametrize(
    "scheme",
    [
        signed(parameters={"X": parameter("header"), "x": parameter("header")}),
        signed(method="FETCH IT"),
        signed(method=["GET"]),
        signed(authorizationApi="<sign-url>"),
        signed(authorizationApi=None),
        signed(parameters=[]),
        signed(parameters={"key": "body"}),
        signed(parameters={"key": parameter("path")}),
        signed(parameters={"key": {"required": True}}),
        signed(parameters={"Host": parameter("header", const="x")}),
        signed(parameters={"X Y": parameter("header", const="x")}),
        signed(parameters={"X": parameter("header", const="a\r\nb: c")}),
        signed(parameters={f"p{n}": parameter("query") for n in range(65)}),
        {"type": "signedUrl", "flows": {}},
        {"type": "signedUrl", "flows": {"sign": None}},
        {"type": "signedUrl"},
    ],
)
def test_a_flow_that_is_no_request_is_described(scheme: Json) -> None:
    found = way(scheme)
    assert not found["executable"]
    assert [step["kind"] for step in found["steps"]] == ["described"]


def test_our_own_scheme_resolves_to_our_own_calls() -> None:
    scheme = signed_url_scheme("https://tollgate.example.com/catalog-auth/")
    by_object, by_href = ways(item({"t": scheme}, ["t"], "s3://b/k"))
    assert (by_object["flow"], by_href["flow"]) == ("object", "href")
    assert by_object["steps"][0]["request"] == {
        "method": "POST",
        "url": "https://tollgate.example.com/catalog-auth/sign",
        "headers": {"Content-Type": "application/json"},
        "body": {"bucket": "b", "key": "k"},
    }
    assert by_object["steps"][0]["produces"]["pointer"] == "/signed_url"
    url = "https://tollgate.example.com/catalog-auth/sign?href=s3%3A%2F%2Fb%2Fk"
    assert by_href["steps"][0]["request"] == {"method": "GET", "url": url, "headers": {}}
    assert by_href["steps"][0]["produces"]["pointer"] == "/href"
    assert (by_object["missing"], by_href["missing"]) == ([], [])
