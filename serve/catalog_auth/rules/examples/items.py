"""Small items with one protected asset, of which examples of rules are made."""

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.catalog_auth.document.document import REFS, SCHEMES
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.examples import documents as example_documents
from tollgate.serve.catalog_auth.rules.examples.documents import SCENE


def protected_item(
    scheme: Json,
    href: str = SCENE,
    *,
    schemes: Json | None = None,
    asset: Json | None = None,
    properties: Json | None = None,
    has_refs: bool = True,
) -> Json:
    """An item whose one asset, at `href`, is protected by `scheme`, under the name `access`.

    `schemes` are defined beside it; `asset` and `properties` are further members of those.
    """
    data: Json = {"href": href, **(asset or {})}
    if has_refs:
        data[REFS] = ["access"]
    made = example_documents.item(None, {"data": data}, Version.V1_2_0)
    made["properties"] = {
        "datetime": "2026-01-01T00:00:00Z",
        **(properties or {}),
        SCHEMES: {"access": scheme, **(schemes or {})},
    }
    return made


def oauth2(**flows: object) -> Json:
    """A scheme of type oauth2 with these flows."""
    return {"type": "oauth2", "flows": flows}


def client_credentials(**members: object) -> Json:
    """A scheme of type oauth2 with one flow, clientCredentials, and further members of it."""
    flow: Json = {
        "tokenUrl": "https://login.example.com/token",
        "scopes": {"read": "Read the data"},
    }
    flow.update(members)
    return oauth2(clientCredentials=flow)


def signed(parameters: Json | None = None, **members: object) -> Json:
    """A scheme of type signedUrl with one flow: a GET with the href, unless said otherwise."""
    flow: Json = {
        "method": "GET",
        "authorizationApi": "https://sign.example.com/v1",
        "parameters": parameters if parameters is not None else {"href": query_parameter()},
        "responseField": "href",
    }
    flow.update(members)
    return {"type": "signedUrl", "flows": {"sign": flow}}


def query_parameter(**members: object) -> Json:
    """A required text in the query, unless said otherwise."""
    return {"in": "query", "required": True, "schema": {"type": "string"}, **members}


def body_parameter() -> Json:
    """A required text in the body."""
    return query_parameter(**{"in": "body"})
