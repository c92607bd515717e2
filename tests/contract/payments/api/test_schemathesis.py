"""The payments API under whatever its own document allows, and under what it does not: never a
server error, never a status, a header or a body that is not documented.
"""

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.payments.api import OPERATOR_KEY, REFERENCE, App, PaymentsApi, basic, done
from tollgate.actors.ledger.storage.migration import upgrade
from tollgate.serve.payments.api.asgi import OPERATOR_ROUTES, ROUTES
from tollgate.serve.payments.api.document.openapi import document

# A call each; 6 in a thorough run.
EXAMPLES_MAX = settings.default.max_examples // 16
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ALL_ROUTES = (*ROUTES, *OPERATOR_ROUTES)
schema = schemathesis.openapi.from_dict(document(ALL_ROUTES, "0.0", REFERENCE.currencies.fundable))


@dataclass(frozen=True, slots=True)
class World:
    """An API with one of everything. `ids`: of what is there, by the name in the path."""

    api: PaymentsApi
    shop: App
    ids: dict[str, str]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    file = tmp_path_factory.mktemp("books") / "books.db"
    asyncio.run(upgrade(f"sqlite:///{file}"))
    api = PaymentsApi(f"sqlite:///{file}")
    shop = api.new_app("Coffee")
    merchant = api.new_merchant(shop)
    here, paid = f"/merchants/{merchant['id']}", api.pay(merchant, 10**9)
    api.act(shop, paid, "captures", amount=10**8)
    of_paid = {"transactionId": paid, "amount": 5}
    hook = {"url": "https://example.com"}
    done(api.call("POST", f"{here}/users", shop, json={"email": "a@example.com"}))
    made = {
        name: done(api.call("POST", path, shop, json=body))[name]["id"]
        for name, path, body in (
            ("dispute", "/sandbox/disputes", of_paid),
            ("fraud", "/sandbox/frauds", {"transactionId": paid}),
            ("card", f"{here}/cards", {"transactionId": paid}),
            ("webhook", f"{here}/webhooks", hook),
        )
    }
    ids = {f"{name}Id": entity for name, entity in made.items()} | {
        "appId": shop.id,
        "merchantId": merchant["id"],
        "transactionId": paid,
        "userId": api.listed(f"{here}/users", shop)[0]["id"],
        "lineId": api.listed(f"{here}/lines", shop)[0]["id"],
    }
    yield World(api, shop, ids)
    assert api.ended == []
    api.close()
    shutil.rmtree(file.parent)


@schema.parametrize()
@settings(
    max_examples=EXAMPLES_MAX,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_the_api_keeps_to_its_document(case: Any, world: World) -> None:
    """As it is drawn; then, with the same rest, about what is there."""
    key = OPERATOR_KEY if case.path.startswith("/operator") else world.shop.key
    send(case, world, key)
    if case.method == "DELETE" and "apps" in case.path:
        return  # (the shop would lose its merchant)
    if case.path_parameters:
        for name in case.path_parameters:
            case.path_parameters[name] = world.ids[name]
    if isinstance(case.body, dict):
        for name in case.body.keys() & world.ids.keys():
            case.body[name] = world.ids[name]
    send(case, world, key)


def send(case: Any, world: World, key: str) -> None:
    kwargs = case.as_transport_kwargs(base_url=f"http://test{world.api.prefix}")
    headers = {
        name: str(value).encode("latin-1", "replace")
        for name, value in kwargs["headers"].items()
        if name != "User-Agent"
    }
    headers |= {"Accept": b"application/json", "Authorization": basic(key).encode()}
    body = {name: kwargs[name] for name in ("json", "files") if kwargs.get(name) is not None}
    if (data := kwargs.get("data")) is not None:
        body["content" if isinstance(data, str | bytes) else "data"] = data
    request = world.api.client_for(case.path).request(
        kwargs["method"], kwargs["url"], params=kwargs.get("params"), headers=headers, **body
    )
    case.validate_response(world.api.runner.run(request), checks=CHECKS)


def test_the_document_has_all_routes() -> None:
    assert len(list(schema.get_all_operations())) == len(ALL_ROUTES)
