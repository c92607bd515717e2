"""Small documents for the examples of rules: whole ones, that have the finding they stand for."""

from serve.catalog_auth.document import REFS, SCHEMES
from serve.catalog_auth.findings import JsonValue
from serve.catalog_auth.versions import Version

LOGIN: dict[str, JsonValue] = {
    "type": "openIdConnect",
    "openIdConnectUrl": "https://login.example.com/.well-known/openid-configuration",
}
HREF = "https://data.example.com/scene.tif"


def item(
    scheme: dict[str, JsonValue],
    href: str = HREF,
    *,
    version: Version = Version.V1_2_0,
    schemes: dict[str, JsonValue] | None = None,
    asset: dict[str, JsonValue] | None = None,
    properties: dict[str, JsonValue] | None = None,
    has_refs: bool = True,
) -> dict[str, JsonValue]:
    """An item whose one asset, at `href`, is protected by `scheme`.

    `schemes` are defined beside it; `asset` and `properties` are further members of those.
    """
    data: dict[str, JsonValue] = {"href": href, **(asset or {})}
    if has_refs:
        data[REFS] = ["access"]
    all_schemes: dict[str, JsonValue] = {"access": scheme, **(schemes or {})}
    return {
        "type": "Feature",
        "stac_version": "1.1.0",
        "stac_extensions": [version.identifier],
        "id": "scene",
        "geometry": None,
        "properties": {
            "datetime": "2024-05-01T00:00:00Z",
            **(properties or {}),
            SCHEMES: all_schemes,
        },
        "links": [],
        "assets": {"data": data},
    }


def oauth2(**flows: JsonValue) -> dict[str, JsonValue]:
    """A scheme of type oauth2 with these flows."""
    return {"type": "oauth2", "flows": flows}


def client_credentials(**members: JsonValue) -> dict[str, JsonValue]:
    """A scheme of type oauth2 with one flow, clientCredentials, and further members of it."""
    flow: dict[str, JsonValue] = {
        "tokenUrl": "https://login.example.com/token",
        "scopes": {"read": "Read the data"},
    }
    return oauth2(clientCredentials={**flow, **members})


def signed(
    parameters: dict[str, JsonValue] | None = None, **members: JsonValue
) -> dict[str, JsonValue]:
    """A scheme of type signedUrl with one flow: a GET with the href, unless said otherwise."""
    flow: dict[str, JsonValue] = {
        "method": "GET",
        "authorizationApi": "https://sign.example.com/v1",
        "parameters": parameters if parameters is not None else {"href": query_parameter()},
        "responseField": "href",
    }
    return {"type": "signedUrl", "flows": {"sign": {**flow, **members}}}


def query_parameter(**members: JsonValue) -> dict[str, JsonValue]:
    """A required text in the query, unless said otherwise."""
    return {"in": "query", "required": True, "schema": {"type": "string"}, **members}


def body_parameter() -> dict[str, JsonValue]:
    """A required text in the body."""
    return query_parameter(**{"in": "body"})
