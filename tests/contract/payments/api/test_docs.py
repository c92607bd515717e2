"""The API's document and its page: there, whole, true of every call, and without other servers."""

import re
from typing import Any

import jsonschema_rs
import pytest

from tests.support.payments.api import MERCHANT, App, PaymentsApi, done
from tollgate.actors.kernel.json_value import Json
from tollgate.serve.payments.api.asgi import ROUTES


@pytest.fixture
def document(api: PaymentsApi) -> Json:
    found: Json = done(api.call("GET", "/openapi.json"))
    return found


def test_the_document_is_a_valid_one(document: Json) -> None:
    assert document["openapi"] == "3.1.0"
    assert document["servers"] == [{"url": "/payments"}]
    for schema in document["components"]["schemas"].values():
        assert jsonschema_rs.meta.is_valid(schema)
    names = set(re.findall(r'"#/components/(\w+/[\w-]+)"', str(document).replace("'", '"')))
    for name in names:
        kind, _, part = name.partition("/")
        assert part in document["components"][kind], name


def test_every_route_is_in_the_document_with_all_its_statuses(document: Json) -> None:
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(operations) == len(ROUTES)
    assert len({operation["operationId"] for _, _, operation in operations}) == len(ROUTES)
    for method, path, operation in operations:
        statuses = set(operation["responses"])
        assert statuses >= {"429", "500", "503"}
        if operation["security"]:
            assert "401" in statuses
        if method != "get":
            assert "400" in statuses
        if "merchantId" in path:
            assert statuses >= {"403", "404"}
        for response in operation["responses"].values():
            assert "$ref" in response or "X-Request-ID" in response["headers"]
        if "requestBody" in operation:
            assert operation["requestBody"]["content"].keys() == {
                "application/json",
                "application/x-www-form-urlencoded",
            }


def test_a_form_in_the_document_has_flat_names(document: Json) -> None:
    body = document["paths"]["/merchants"]["post"]["requestBody"]["content"]
    form = body["application/x-www-form-urlencoded"]["schema"]
    assert form["properties"].keys() >= {"company[country]", "bank[iban]", "test", "currency"}
    assert form["properties"]["test"]["enum"] == ["yes", "no"]
    assert "company[country]" in form["required"]
    assert "bank[iban]" not in form["required"]


def test_what_is_answered_is_as_documented(api: PaymentsApi, shop: App, document: Json) -> None:
    """One of everything."""
    merchant = api.new_merchant(
        shop,
        name="x",
        company={"country": "DK", "number": "1"},
        bank={"iban": "DK5000400440116243"},
    )
    here = f"/merchants/{merchant['id']}"
    paid = api.pay(merchant, currency="EUR", custom={"a": 1}, test={"tds": {}})
    failing = {"transactionId": paid, "amount": 666_008, "currency": "EUR"}
    act = {"amount": 100}
    limit = {"limit": 100}
    calls: list[tuple[str, str, str, Json]] = [
        ("post", "/apps", "/apps", {"json": {"name": "x"}}),
        ("get", "/me", "/me", {}),
        ("get", "/identities/{appId}/merchants", f"/identities/{shop.id}/merchants", limit),
        ("post", "/apps/{appId}/keys", f"/apps/{shop.id}/keys", {}),
        ("get", "/apps/{appId}/keys", f"/apps/{shop.id}/keys", {}),
        ("post", "/merchants", "/merchants", {"json": MERCHANT}),
        ("get", "/merchants/{merchantId}", here, {}),
        ("put", "/merchants/{merchantId}", here, {"json": {"name": "y"}}),
        ("post", "/merchants/{merchantId}/users", f"{here}/users", {"json": {"email": "a@b.dk"}}),
        ("get", "/merchants/{merchantId}/users", f"{here}/users", limit),
        ("get", "/merchants/{merchantId}/apps", f"{here}/apps", limit),
        ("post", "/merchants/{merchantId}/transactions", f"{here}/transactions", {"json": failing}),
        ("post", "/transactions/{transactionId}/captures", "/captures", {"json": act}),
        ("post", "/transactions/{transactionId}/refunds", "/refunds", {"json": {"amount": 10}}),
        ("post", "/transactions/{transactionId}/voids", "/voids", {"json": act}),
        ("post", "/sandbox/disputes", "/sandbox/disputes", {"json": act | {"amount": 5}}),
        ("post", "/sandbox/frauds", "/sandbox/frauds", {"json": {"reason": 3}}),
        ("post", "/merchants/{merchantId}/cards", f"{here}/cards", {"json": {"notes": "n"}}),
        ("get", "/transactions/{transactionId}", "", {}),
        ("get", "/merchants/{merchantId}/transactions", f"{here}/transactions", limit),
        ("get", "/merchants/{merchantId}/lines", f"{here}/lines", limit),
        ("get", "/merchants/{merchantId}/events", f"{here}/events", limit),
        ("get", "/merchants/{merchantId}/audit", f"{here}/audit", limit),
        ("get", "/merchants/{merchantId}/balance", f"{here}/balance", {}),
        ("get", "/disputes", f"/disputes?filter[merchantId]={merchant['id']}&limit=9", {}),
        ("get", "/frauds", f"/frauds?filter[merchantId]={merchant['id']}&limit=9", {}),
        (
            "post",
            "/merchants/{merchantId}/webhooks",
            f"{here}/webhooks",
            {"json": {"url": "https://example.com"}},
        ),
        ("get", "/merchants/{merchantId}/webhooks", f"{here}/webhooks", limit),
    ]
    for method, template, path, options in calls:
        if path in ("", "/captures", "/refunds", "/voids"):
            path = f"/transactions/{paid}{path}"
        if path.startswith("/sandbox") or path.endswith("/cards"):
            options = {"json": options["json"] | {"transactionId": paid}}
        if options is limit:
            options = {"params": limit}
        response = api.call(method.upper(), path, shop, **options)
        assert_documented(document, method, template, response)


def assert_documented(document: Json, method: str, template: str, response: Any) -> None:
    responses = document["paths"][template][method]["responses"]
    place = f"{method} {template} {response.status_code}"
    assert str(response.status_code) in responses, place
    described = responses[str(response.status_code)]
    content = described.get("content")
    if content is None:
        assert response.content == b"", place
        return
    ((media_type, body),) = content.items()
    assert response.headers["content-type"] == media_type, place
    schema = body["schema"] | {"components": document["components"]}
    validator = jsonschema_rs.validator_for(schema)
    problems = [
        f"{error.instance_path}: {error.message}"
        for error in validator.iter_errors(response.json())
    ]
    assert not problems, (place, problems, response.text)


def test_the_page_needs_no_other_server(api: PaymentsApi) -> None:
    page = api.call("GET", "/docs", headers={"accept": "text/html"})
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'self'" in page.headers["content-security-policy"]
    sources = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    local = [source for source in sources if not source.startswith("data:")]
    assert len(local) >= 4
    for source in local:
        assert "//" not in source
        response = api.call("GET", f"/{source}")
        assert response.status_code == 200, source
        assert response.content
    assert "http" not in api.call("GET", "/docs/start.js").text
    assert api.call("GET", "/docs/other.js").status_code == 404
