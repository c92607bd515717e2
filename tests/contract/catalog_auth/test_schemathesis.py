"""Catalog auth under whatever its own document allows, and under what it does not: never a server
error, never a status, a header or a body that is not documented.
"""

import json
from typing import Any

import httpx
import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.api_cases import Edges
from tests.support.catalog_auth.api import DANGLING, CatalogApi, Json, item

# A call each; 8 in a thorough run. The edges of values come before them.
EXAMPLES_MAX = settings.default.max_examples // 12
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
api = CatalogApi()
document: Json = api.call("GET", "/openapi.json").json()
schema = schemathesis.openapi.from_dict(document)
schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])


@schemathesis.serializer("application/x-ndjson", "application/jsonl")
def as_lines(_: Any, value: Any) -> bytes:
    return value.encode(errors="replace") if isinstance(value, str) else json.dumps(value).encode()


@pytest.fixture(scope="module")
def edges(pytestconfig: pytest.Config) -> Edges:
    return Edges(is_thorough=pytestconfig.getoption("thorough"))


@schema.parametrize()
@settings(
    max_examples=EXAMPLES_MAX,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_the_service_keeps_to_its_document(case: Any, edges: Edges) -> None:
    """As it is drawn; then, with the same rest, about a document that means something."""
    if not edges.takes(case):
        return
    send(case)
    if isinstance(case.body, dict):
        case.body |= {"document": DANGLING} if "document" in case.body else item()
        send(case)


def send(case: Any) -> None:
    kwargs = case.as_transport_kwargs(base_url="http://test")
    headers = {
        name: str(value).encode("latin-1", "replace")
        for name, value in kwargs["headers"].items()
        if name != "User-Agent"
    }
    body = {name: kwargs[name] for name in ("json", "data") if kwargs.get(name) is not None}
    if "data" in body and isinstance(body["data"], str | bytes):
        body["content"] = body.pop("data")
    path = kwargs["url"].removeprefix("http://test").removeprefix("/catalog-auth")
    try:
        response = api.call(
            kwargs["method"], path, params=kwargs.get("params"), headers=headers, **body
        )
    except httpx.InvalidURL:
        return  # (longer than this client sends)
    case.validate_response(response, checks=CHECKS)


@pytest.mark.parametrize(
    ("method", "path", "template", "body"),
    [
        ("post", "/validate", "/validate", DANGLING),
        ("post", "/fix", "/fix", DANGLING),
        ("post", "/migrate?to=v1.2.0", "/migrate", item()),
        ("get", "/rules", "/rules", None),
        ("get", "/rules/R01", "/rules/{rule_id}", None),
        ("get", "/versions", "/versions", None),
        ("get", "/scheme", "/scheme", None),
        ("post", "/sign", "/sign", {"bucket": "b", "key": "k"}),
        ("get", "/rules/none", "/rules/{rule_id}", None),
        (
            "post",
            "/resolve",
            "/resolve",
            {"document": item(), "target": {"pointer": "/assets/data"}, "recipes": True},
        ),
    ],
)
def test_what_is_answered_is_as_documented(
    method: str, path: str, template: str, body: object
) -> None:
    reply = api.post(path, body) if method == "post" else api.call("GET", path)
    told = document["paths"][template][method]["responses"][str(reply.status_code)]
    media_type = reply.headers["content-type"]
    schema_of_it = told["content"][media_type]["schema"]
    validator = jsonschema_rs.validator_for(schema_of_it | {"components": document["components"]})
    problems = [
        f"{each.instance_path}: {each.message}" for each in validator.iter_errors(reply.json())
    ]
    assert problems == []


def test_the_document_has_all_calls() -> None:
    calls = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert calls == {
        *(("post", f"/{name}") for name in ("validate", "fix", "migrate", "resolve", "sign")),
        ("post", "/validate/bulk"),
        ("post", "/validate/crawl"),
        *(("get", f"/{name}") for name in ("sign", "scheme", "rules", "versions")),
        ("get", "/rules/{rule_id}"),
    }
