"""The payments API under whatever its own document allows, and under what it does not: never a
server error, never a status, a header or a body that is not documented.
"""

import asyncio
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
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

from tests.support.api_cases import Edges
from tests.support.payments.api import (
    GOOD_CARD,
    OPERATOR_KEY,
    REFERENCE,
    App,
    PaymentsApi,
    basic,
    done,
)
from tests.support.payments.checkout_client import CheckoutClient
from tollgate.actors.ledger.storage.migration import upgrade
from tollgate.serve.payments.api.asgi import OPERATOR_ROUTES, ROUTES
from tollgate.serve.payments.api.openapi.document import document

# A call each; 6 in a thorough run. The edges of values come before them.
EXAMPLES_MAX = settings.default.max_examples // 16
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ALL_ROUTES = (*ROUTES, *OPERATOR_ROUTES)
FIXTURES = Path(__file__).parents[3] / "e2e/payments/paylike/fixtures.yaml"
METHODS = {
    path: {route.method for route in ALL_ROUTES if route.path == path}
    for path in {route.path for route in ALL_ROUTES}
}
schema = schemathesis.openapi.from_dict(document(ALL_ROUTES, "0.0", REFERENCE.currencies.fundable))


# A record of each of the card network's files; ids are put in place of those that are empty.
RECORDS: dict[str, dict[str, object]] = {
    "/operator/disputes": {"reference": "R-1", "status": "won"},
    "/operator/frauds": {"reference": "R-1", "transactionId": ""},
    "/operator/settlements": {
        "reference": "R-1",
        "merchantId": "",
        "day": "2025-12-31",
        "currency": "DKK",
        "amount": 1,
    },
}


@dataclass(frozen=True, slots=True)
class World:
    """An API with one of everything. `ids`: of what is there, by the name in the path. `known`:
    fields of bodies that have to fit what is there. `tried`, `done`: the operations that were
    called about what is there, and those of them that were done at least once."""

    api: PaymentsApi
    shop: App
    ids: dict[str, str]
    known: dict[str, object]
    tried: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)

    def post(self, path: str, **body: object) -> Any:
        return done(self.api.call("POST", path, self.shop, json=body))

    def spent_by(self, method: str, path: str) -> dict[str, str]:
        """New ones of what a call uses up, so that the next calls have theirs."""
        here = f"/merchants/{self.ids['merchantId']}"
        match method, path.rsplit("/", 1)[1]:
            case "DELETE", "{appId}":
                spare = self.api.new_app()
                self.post(f"{here}/apps", appId=spare.id)
                return {"appId": spare.id}
            case "DELETE", "{userId}":
                self.post(f"{here}/users", email="spare@example.com")
                return {"userId": self.api.listed(f"{here}/users", self.shop)[0]["id"]}
            case "DELETE", "{webhookId}":
                newest, *others = self.api.listed(f"{here}/webhooks", self.shop)
                if others:
                    return {"webhookId": newest["id"]}
                made = self.post(f"{here}/webhooks", url="https://example.com/spare")
                return {"webhookId": made["webhook"]["id"]}
            case "PUT", "approval" | "rejection":
                self.api.clock.advance(10)  # (so many may wait, and they are counted anew)
                live = self.api.new_merchant(self.api.new_app(), test=False)["id"]
                return {"merchantId": live, "version": self.api.waiting()[live]["version"]}
            case "POST", "won" | "lost":
                body = {"transactionId": self.ids["transactionId"], "amount": 1}
                made = self.post("/sandbox/disputes", **body)
                return {"disputeId": made["dispute"]["id"]}
        return {}


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
        "step": "authorize-integration",
        "type": "fetch",
        "lineId": api.listed(f"{here}/lines", shop)[0]["id"],
    }
    known = {
        "key": merchant["key"],
        "amount": 1,
        "currency": "DKK",
        "card": GOOD_CARD,
        "test": {},
        "file": FIXTURES.read_text(encoding="utf-8"),
    }
    world = World(api, shop, ids, known)
    yield world
    assert api.ended == []
    # (Behind a key that has ended or an id that is not there, everything keeps to its document.)
    assert world.tried - world.done == set(), "refused whenever it was called"
    api.close()
    shutil.rmtree(file.parent)


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
def test_the_api_keeps_to_its_document(case: Any, world: World, edges: Edges) -> None:
    """As it is drawn; then, with the same rest, about what is there."""
    if not edges.takes(case):
        return
    key, ids, known = world.shop.key, world.ids, world.known
    if case.path.startswith("/operator"):
        key = OPERATOR_KEY
    if case.path.rsplit("/", 1)[1] in ("keys", "recoveries", "recovery-codes"):
        # (they end keys and codes, and the shop's are needed)
        spare = done(world.api.call("POST", "/apps"))["app"]
        key = spare["key"] if key != OPERATOR_KEY else key
        ids = ids | {"appId": spare["id"]}
        known = known | {"recoveryCode": spare["recoveryCode"]}
    send(case, world, key)
    if case.method not in METHODS.get(case.path, ()):
        return
    ids = ids | world.spent_by(case.method, case.path)
    for name in case.path_parameters or ():
        case.path_parameters[name] = ids[name]
    for name in case.query or ():
        if name.startswith("filter[") and (found := ids.get(name[7:-1])):
            case.query[name] = found
    if (record := RECORDS.get(case.path)) is not None:
        known = known | {
            "file": json.dumps({name: ids.get(name, value) for name, value in record.items()})
        }
    if isinstance(case.body, dict):
        fit(case.body, ids | known)
    if case.path.partition("/")[2].partition("/")[0] in ("vault", "payments"):
        fit_checkout(case, world)
    if case.path.endswith("recovery-codes"):
        # (short ones are refused there, as with `POST /apps`)
        case.headers.pop("Idempotency-Key", None)
    world.tried.add(f"{case.method} {case.path}")
    send(case, world, key)


def fit(body: dict[str, Any], known: dict[str, object]) -> None:
    """Makes a body one about what is there, as far as it names something."""
    for name in body.keys() & known.keys():
        body[name] = known[name]
    if body.get("transactionId") or body.get("authorizationId"):
        body.pop("cardId", None)
    for name in ("authorizationId", "cardId"):
        if body.get(name):
            body[name] = known["transactionId" if name == "authorizationId" else "cardId"]


def fit_checkout(case: Any, world: World) -> None:
    """A card's number to seal; or a payment's first call, with tokens of its own."""
    case.headers["Accept-Version"] = "1"
    if case.path == "/vault":
        case.body = {"type": "pcn", "value": GOOD_CARD["number"]}
        return
    case.body = CheckoutClient(world.api, {"key": world.known["key"]}).body


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
    response = world.api.runner.run(request)
    case.validate_response(response, checks=CHECKS)
    if response.is_success:
        world.done.add(f"{case.method} {case.path}")


def test_the_document_has_all_routes() -> None:
    assert len(list(schema.get_all_operations())) == len(ALL_ROUTES)
