"""Calls while the storage is away: 503 and a time to ask again, whoever asks for what."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial

import httpx
import pytest

from tests.support.payments.api import ABSENT, App, PaymentsApi
from tests.support.servers.postgresql import PostgresqlServer, stoppable_postgresql
from tollgate.actors.ledger.shard.client import Unanswered
from tollgate.actors.ledger.storage.connections import engine
from tollgate.actors.ledger.storage.migration import upgrade
from tollgate.serve.payments.api.application import payments_application
from tollgate.serve.payments.api.asgi import ROUTES, Dispatcher
from tollgate.serve.payments.api.health import STORAGE_ERRORS, BooksHealth, StorageWatch
from tollgate.serve.payments.api.router import Access

PATHS = sorted({(each.method, each.path) for each in ROUTES if each.access is Access.APP})
LONGER_THAN_REMEMBERED_S = 2.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    with stoppable_postgresql() as server:
        asyncio.run(upgrade(server.url))
        yield server


def refused_for_now(response: httpx.Response) -> bool:
    return (
        response.status_code == 503
        and int(response.headers["retry-after"]) > 0
        and response.json()["code"] == "UNAVAILABLE"
        and response.json()["requestId"] == response.headers["x-request-id"]
    )


def test_every_call_with_a_key_says_so_and_goes_on_when_the_server_is_back(
    server: PostgresqlServer,
) -> None:
    api = PaymentsApi(server.url)
    counted: list[str] = []
    watch = StorageWatch(api.clock, counted.append)
    api.client = api.client_of(Dispatcher(api.context, watch=watch))
    shop = api.new_app()
    merchant = api.new_merchant(shop)
    paid = api.pay(merchant)
    server.stop()
    try:
        known = api.call("GET", f"/merchants/{merchant['id']}", shop)
        assert refused_for_now(known), "the caller is remembered, and what they ask for is not"
        for method, path in PATHS:
            api.clock.advance(LONGER_THAN_REMEMBERED_S)
            whole = "/".join(ABSENT if "{" in part else part for part in path.split("/"))
            answer = api.call(method, whole, shop, json={})
            assert refused_for_now(answer), (method, whole, answer.status_code, answer.text)
        assert set(counted) == {STORAGE_ERRORS}
        assert len(counted) >= len(PATHS)
    finally:
        server.start()
    api.clock.advance(LONGER_THAN_REMEMBERED_S)
    assert api.transaction(shop, paid)["capturedAmount"] == 0
    api.close()


def test_a_write_whose_caller_is_known_says_so_too(server: PostgresqlServer) -> None:
    """It reaches the shard, which ends: the outcome is not known."""
    api = PaymentsApi(server.url)
    shop = api.new_app()
    paid = api.pay(api.new_merchant(shop))
    path, once = f"/transactions/{paid}/captures", {"Idempotency-Key": "once"}
    # What the capture needs to know is remembered.
    assert api.call("POST", path, shop, json={"amount": 1}).status_code == 201
    server.stop()
    try:
        answer = api.call("POST", path, shop, json={"amount": 2}, headers=once)
        assert refused_for_now(answer), answer.text
        assert len(api.ended) == 1, "the process of a shard without storage ends"
    finally:
        server.start()
    api.close()


def test_readers_that_are_all_busy_are_storage_that_is_away(
    api: PaymentsApi, shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "READER_WITHIN_S", 0.01)

    async def crowded() -> httpx.Response:
        async with AsyncExitStack() as busy:
            for _ in range(engine.READERS_MAX):
                await busy.enter_async_context(api.database.reading())
            return await api.request("GET", "/me", shop)

    assert refused_for_now(api.runner.run(crowded()))
    assert api.call("GET", "/me", shop).status_code == 200


def test_the_health_page_tells_what_cannot_be_done(server: PostgresqlServer) -> None:
    api = PaymentsApi(server.url)
    is_written = True

    async def written() -> None:
        if not is_written:
            raise Unanswered("the shard is away")

    checks = {"read": partial(api.context.store.key_owner, ""), "written": written}
    health = BooksHealth(checks, api.clock)
    api.client = api.client_of(payments_application(Dispatcher(api.context), "0", health))

    def page() -> tuple[int, str]:
        api.clock.advance(LONGER_THAN_REMEMBERED_S)
        answer = api.call("GET", "/healthcheck")
        assert ("retry-after" in answer.headers) == (answer.status_code == 503)
        return answer.status_code, answer.text.strip()

    assert page() == (200, "OK")
    is_written = False
    assert page() == (503, "the books cannot be written at this moment")
    server.stop()
    try:
        assert page() == (503, "the books cannot be read or written at this moment")
        is_written = True
        assert page() == (503, "the books cannot be read at this moment")
    finally:
        server.start()
    assert page() == (200, "OK")
    api.close()
