"""The cost of the payments API at its worst, with a key and without: time in proportion to the
body, a free event loop, no memory kept, and a bounded reply."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.contract.payments.test_body_costs import BODIES
from tests.support.call_costs import (
    Ask,
    asked,
    assert_linear,
    assert_loop_is_free,
    cost_of,
    growth_of,
    kept_bytes,
)
from tests.support.payments.api import ABSENT, App, PaymentsApi, basic
from tollgate.serve.payments.api.bodies.constraints import CUSTOM_BYTES_MAX
from tollgate.serve.payments.api.bodies.readers import BODY_BYTES_MAX, FORM
from tollgate.serve.payments.api.checkout.form_payments import PAYMENT_BODY_BYTES_MAX
from tollgate.serve.payments.api.paging import LIMIT_MAX
from tollgate.serve.payments.api.routes.apps import APP_BODY_BYTES_MAX

JSON = "application/json"
REFUSAL_BYTES_MAX = 16 * 1024
READ_PAYMENTS = 20


def listed(element: bytes, size: int) -> bytes:
    return b",".join([element] * (size // (len(element) + 1)))


def names(size: int) -> bytes:
    return b"{%b}" % b",".join(b'"%06d":1' % number for number in range(size // 11))


def fields(size: int) -> bytes:
    """As many as a form may have, with all that is encoded."""
    value = b"%C3%A9" * max(1, (size // 1_000 - 12) // 6)
    return b"&".join(b"%d[x]=%b" % (number, value) for number in range(1_000))


SHAPES: dict[str, tuple[str, Callable[[int], bytes]]] = {
    **BODIES,
    "empty objects": (JSON, lambda size: b'{"a":[%b]}' % listed(b"{}", size)),
    "empty lists": (JSON, lambda size: b'{"custom":{"a":[%b]}}' % listed(b"[]", size)),
    "numbers": (JSON, lambda size: b'{"a":[%b]}' % listed(b"1", size)),
    "one long text": (JSON, lambda size: b'{"name":"%b"}' % (b"x" * size)),
    "control characters": (JSON, lambda size: b'{"name":"%b"}' % (b"\\n" * (size // 2))),
    "names of a part": (JSON, lambda size: b'{"company":%b}' % names(size)),
    "names of custom data": (JSON, lambda size: b'{"custom":%b}' % names(size)),
    "halves of pairs": (JSON, lambda size: b'{"a":[%b]}' % listed(b'"\\u0041"', size)),
    "a name twice": (JSON, lambda size: b'{"a":1,%b}' % listed(b'"a":1', size)),
    "encoded fields": (FORM, fields),
    "a long name, encoded": (FORM, lambda size: b"name=" + b"%E2%80%8E" * (size // 9)),
}


@pytest.fixture(scope="module")
def api(empty_books: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaymentsApi]:
    """One for all: what a call costs does not depend on those before."""
    file = shutil.copy(empty_books, tmp_path_factory.mktemp("books"))
    api = PaymentsApi(f"sqlite:///{file}")
    yield api
    assert api.ended == []
    api.close()


@pytest.fixture(scope="module")
def shop(api: PaymentsApi) -> App:
    return api.new_app("Coffee & Cake")


@pytest.fixture(scope="module")
def merchant(api: PaymentsApi, shop: App) -> dict[str, Any]:
    return api.new_merchant(shop)


@pytest.fixture(scope="module")
def busy(api: PaymentsApi, shop: App) -> dict[str, Any]:
    """A merchant with much to read."""
    merchant = api.new_merchant(shop)
    for number in range(READ_PAYMENTS):
        api.pay(merchant, custom={"text": "x" * 40_000, "number": number})
    return merchant


def call(
    api: PaymentsApi, method: str, path: str, body: bytes = b"", kind: str = JSON, key: str = ""
) -> Ask:
    headers = [("content-type", kind), ("accept", JSON)]
    if key:
        headers.append(("authorization", basic(key)))
    path, _, query = path.partition("?")
    return partial(asked, api.app, method, path, body, headers, query.encode(), api.prefix)


def assert_bodies_cost_their_share(
    api: PaymentsApi, path: str, bound: int, name: str, key: str = ""
) -> None:
    kind, make = SHAPES[name]

    def ask(size: int) -> Ask:
        return call(api, "POST", path, make(size - 64)[:bound], kind, key)

    growth = api.runner.run(growth_of(ask, bound))
    assert_linear(growth)
    for cost in (growth.small, growth.large):
        assert_loop_is_free(cost)
        assert cost.answer.status in (201, 400)
        assert len(cost.answer.body) < REFUSAL_BYTES_MAX


@pytest.mark.parametrize("name", SHAPES)
def test_a_body_without_a_key_costs_its_share(name: str, api: PaymentsApi) -> None:
    assert_bodies_cost_their_share(api, "/apps", APP_BODY_BYTES_MAX, name)
    assert_bodies_cost_their_share(api, "/sandbox/payments", PAYMENT_BODY_BYTES_MAX, name)


@pytest.mark.parametrize("name", SHAPES)
def test_a_body_with_a_key_costs_its_share(
    name: str, api: PaymentsApi, shop: App, merchant: dict[str, Any]
) -> None:
    for path in ("/merchants", f"/merchants/{merchant['id']}/transactions"):
        assert_bodies_cost_their_share(api, path, BODY_BYTES_MAX, name, shop.key)


@pytest.mark.parametrize("name", ["numbers", "one long text", "encoded fields", "many names"])
def test_a_body_leaves_nothing_behind(name: str, api: PaymentsApi, shop: App) -> None:
    kind, make = SHAPES[name]
    body = make(PAYMENT_BODY_BYTES_MAX)
    ask = call(api, "POST", "/merchants", body, kind, shop.key)
    assert api.runner.run(kept_bytes(ask, len(body))) < len(body)


def test_the_largest_custom_data_is_taken_while_others_are_answered(
    api: PaymentsApi, shop: App, merchant: dict[str, Any]
) -> None:
    """The most values, and the longest text."""
    numbers = b'{"n":[%b]}' % listed(b"1", CUSTOM_BYTES_MAX - 16)
    text = b'{"t":"%b"}' % (b"x" * (CUSTOM_BYTES_MAX - 16))
    source = api.pay(merchant)
    path = f"/merchants/{merchant['id']}/transactions"
    head = b'{"transactionId":"%b","amount":100,"currency":"DKK","custom":' % source.encode()
    for custom in (numbers, text):
        cost = api.runner.run(
            cost_of(call(api, "POST", path, head + custom + b"}", JSON, shop.key))
        )
        assert cost.answer.status == 201
        assert_loop_is_free(cost)


@pytest.mark.parametrize(
    "path",
    [
        "transactions",
        "lines",
        "events",
        "audit",
        "webhooks",
        "cards",
        "transactions?filter[test]=yes&filter[successful]=yes&limit=1000",
        "lines.csv",
        "lines.ndjson",
        "transactions?" + "&".join(f"filter[{number}]=x" for number in range(60)),
        "transactions?limit=" + "9" * 8_000,
        "x" * 60_000,
    ],
)
def test_reads_are_bounded(path: str, api: PaymentsApi, shop: App, busy: dict[str, Any]) -> None:
    full = f"/merchants/{busy['id']}/{path}"
    if "?" not in full:
        full += f"?limit={LIMIT_MAX}"
    cost = api.runner.run(cost_of(call(api, "GET", full, key=shop.key)))
    assert_loop_is_free(cost)
    # (a transaction is what its merchant has stored: its custom data, and little more)
    assert len(cost.answer.body) < (READ_PAYMENTS + 1) * (CUSTOM_BYTES_MAX + 2_048)


def test_heads_cost_little(api: PaymentsApi) -> None:
    path = f"/transactions/{ABSENT}"
    headers = [
        ("accept", "a/b;q=0.1," * 1_500),
        ("authorization", "Basic " + "A" * 16_000),
        ("idempotency-key", "k" * 16_000),
        ("x-forwarded-for", "1.2.3.4," * 2_000),
        *(("cookie", "a=b") for _ in range(1_000)),
    ]
    ask = partial(asked, api.app, "GET", path, b"", headers, b"a=b&" * 4_096, api.prefix)
    cost = api.runner.run(cost_of(ask))
    assert_loop_is_free(cost)
    assert cost.answer.status == 401
