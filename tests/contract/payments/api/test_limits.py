"""Tollgate's own limits in front of its payments API: 429 before anything happens."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.payments.api import ABSENT, MERCHANT, NOW_S, TABLES, PaymentsApi, done
from tests.support.ratelimit.engine import RecordedCounters
from tollgate.actors.ratelimit.counting.counters import LocalCounters
from tollgate.actors.ratelimit.counting.routes import spread_over
from tollgate.actors.ratelimit.rules.descriptors import Entries
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.payments.api.limits.calls import (
    engine_limits,
    load_limits,
    per_app,
    per_call,
)

LIMITS = """
domain: tollgate.payments
descriptors:
  - key: app
    descriptors:
      - key: mode
        value: test
        descriptors:
          - {key: kind, value: write, rate_limit: {unit: minute, requests_per_unit: 4}}
          - {key: kind, value: read, rate_limit: {unit: minute, requests_per_unit: 3}}
      - key: mode
        value: live
        descriptors:
          - {key: kind, value: write, rate_limit: {unit: minute, requests_per_unit: 100}}
          - {key: kind, value: read, rate_limit: {unit: minute, requests_per_unit: 50}}
  - key: merchant
    descriptors:
      - key: mode
        value: test
        descriptors:
          - {key: kind, value: write, rate_limit: {unit: minute, requests_per_unit: 2}}
  - key: call
    value: apps
    descriptors:
      - {key: address, rate_limit: {unit: hour, requests_per_unit: 3}}
  - key: call
    value: recoveries
    descriptors:
      - key: address
        rate_limit: {unit: hour, requests_per_unit: 2}
  - key: call
    value: merchants
    descriptors:
      - {key: address, rate_limit: {unit: hour, requests_per_unit: 8}}
  - key: call
    value: live_merchants
    descriptors:
      - key: app
        rate_limit: {unit: day, requests_per_unit: 2}
      - key: address
        rate_limit: {unit: day, requests_per_unit: 3}
  - key: call
    value: invitations
    descriptors:
      - {key: merchant, rate_limit: {unit: day, requests_per_unit: 2}}
      - {key: address, rate_limit: {unit: day, requests_per_unit: 3}}
  - key: call
    value: payments
    descriptors:
      - {key: address, rate_limit: {unit: minute, requests_per_unit: 5}}
      - key: key
        descriptors:
          - {key: address, rate_limit: {unit: minute, requests_per_unit: 2}}
"""


@pytest.fixture
def counters() -> RecordedCounters:
    return RecordedCounters()


@pytest.fixture(params=["counted elsewhere", "counted here"])
def limited(
    request: pytest.FixtureRequest, books_url: str, tmp_path: Path, counters: RecordedCounters
) -> Iterator[PaymentsApi]:
    file = tmp_path / "limits.yaml"
    file.write_text(LIMITS)
    with ThreadPoolExecutor(1) as thread:
        clock = ManualClock(NOW_S + 30)
        waits = thread if request.param == "counted elsewhere" else None
        limits = engine_limits(load_limits(file), counters, clock, waits, Tallies("test"))
        api = PaymentsApi(books_url, limits)
        yield api
        api.close()


def test_reads_and_writes_are_limited_apart_and_per_app(limited: PaymentsApi) -> None:
    shop, other = limited.new_app(), limited.new_app()
    merchant = limited.new_merchant(shop)
    path = f"/merchants/{merchant['id']}"
    for _ in range(2):
        done(limited.call("GET", path, shop))
    done(limited.call("PUT", path, shop, json={"name": "New"}))
    done(limited.call("GET", path, shop))
    response = limited.call("GET", path, shop)
    assert response.status_code == 429
    assert response.headers["retry-after"] == "30"
    assert response.json()["code"] == "TOO_MANY_REQUESTS"
    done(limited.call("PUT", path, shop, json={"name": "Newer"}))
    assert limited.call("GET", path, other).status_code == 403


def test_a_merchant_has_a_limit_over_all_its_apps(limited: PaymentsApi) -> None:
    shop, other = limited.new_app(), limited.new_app()
    merchant = limited.new_merchant(shop)
    path = f"/merchants/{merchant['id']}"
    done(limited.call("POST", f"{path}/apps", shop, json={"appId": other.id}))
    done(limited.call("PUT", path, other, json={"name": "a"}))
    assert limited.call("PUT", path, other, json={"name": "b"}).status_code == 429
    assert limited.call("PUT", path, shop, json={"name": "b"}).status_code == 429
    assert done(limited.call("GET", path, shop))["merchant"]["name"] == "a"


def test_a_call_over_the_limit_does_nothing(limited: PaymentsApi) -> None:
    shop = limited.new_app()
    merchant = limited.new_merchant(shop)
    path = f"/merchants/{merchant['id']}/users"
    for name in ("a", "b"):
        done(limited.call("POST", path, shop, json={"email": f"{name}@example.com"}))
    orders = len(limited.ledger.orders)
    response = limited.call("POST", path, shop, json={"email": "c@example.com"})
    assert response.status_code == 429
    assert len(limited.ledger.orders) == orders
    assert len(limited.invitations.sent) == 2


def test_app_creation_is_limited_by_address(limited: PaymentsApi) -> None:
    for _ in range(3):
        limited.new_app()
    response = limited.call("POST", "/apps")
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) == 3_600 - 30


def test_a_caller_with_many_ipv6_addresses_is_one() -> None:
    def entries(address: str) -> Entries:
        return per_call("payments", key="key", address=address)

    one, same, other = map(entries, ("2001:db8:0:1::1", "2001:db8:0:1:2:3:4:5", "2001:db8:0:2::1"))
    assert one == same != other
    assert entries("::ffff:192.0.2.1") == entries("192.0.2.1")


def test_payments_by_a_public_key_are_limited_by_key_and_address(limited: PaymentsApi) -> None:
    for _ in range(2):
        body = {"key": "stolen", "amount": 1}
        assert limited.call("POST", "/sandbox/payments", json=body).status_code == 400
    assert limited.call("POST", "/sandbox/payments", json={"key": "stolen"}).status_code == 429
    assert limited.call("POST", "/sandbox/payments", json={"key": "another"}).status_code == 400


def test_calls_pass_while_the_counters_do_not_answer(
    limited: PaymentsApi, counters: RecordedCounters
) -> None:
    counters.unreachable[0] = "gone"
    for _ in range(5):
        limited.new_app()


def test_values_of_callers_cannot_become_other_entries(
    limited: PaymentsApi, counters: RecordedCounters
) -> None:
    key = "k\x1eaddress\x1f1.2.3.4\x1dcall\x1fapps"
    limited.call("POST", "/sandbox/payments", json={"key": key})
    counted = counters.counts(NOW_S + 30)
    assert len(counted) == 2
    assert [name for _, name in counted if key.encode() in name]


def test_the_shipped_limits_can_be_loaded() -> None:
    rules = load_limits(TABLES / "limits.yaml")
    assert list(rules.domains) == ["tollgate.payments"]
    with ThreadPoolExecutor(1) as thread:
        limits = engine_limits(rules, LocalCounters(1), ManualClock(NOW_S), thread, Tallies("test"))
        assert limits


def test_counters_in_a_store_outside_have_the_names_that_they_have_there(
    tmp_path: Path, counters: RecordedCounters
) -> None:
    file = tmp_path / "limits.yaml"
    file.write_text(LIMITS)
    limits = engine_limits(
        load_limits(file),
        counters,
        ManualClock(NOW_S),
        None,
        Tallies("test"),
        route=spread_over(1),
        prefix="p:",
    )
    asyncio.run(limits.admit(per_app("a", is_test=True, is_write=False)))
    ((_, key),) = counters.counts(int(NOW_S))
    assert key == b"2|p:tollgate.payments_app_a_mode_test_kind_read_"


def test_probing_for_ids_is_limited(limited: PaymentsApi) -> None:
    shop = limited.new_app()
    for _ in range(3):
        assert limited.call("GET", f"/transactions/{ABSENT}", shop).status_code == 404
    # (the limit of live calls is the one of calls about nothing)
    statuses = {limited.call("GET", f"/merchants/{ABSENT}", shop).status_code for _ in range(100)}
    assert statuses == {404, 429}


def test_payments_without_credentials_are_limited_by_address(limited: PaymentsApi) -> None:
    for number in range(5):
        response = limited.call("POST", "/sandbox/payments", json={"key": f"guess {number}"})
        assert response.status_code == 400
    response = limited.call("POST", "/sandbox/payments", json={"key": "guess"})
    assert response.status_code == 429


def test_invitations_are_limited_by_merchant_and_by_address(limited: PaymentsApi) -> None:
    shop, other = limited.new_app(), limited.new_app()
    here, there = (limited.new_merchant(each, test=False)["id"] for each in (shop, other))
    statuses = [
        limited.call(
            "POST", f"/merchants/{merchant}/users", app, json={"email": f"{number}@example.com"}
        ).status_code
        for number, (merchant, app) in enumerate([(here, shop)] * 3 + [(there, other)] * 2)
    ]
    assert statuses == [201, 201, 429, 429, 429]


def test_recoveries_are_limited_apart_from_new_apps(limited: PaymentsApi) -> None:
    path = f"/apps/{limited.new_app().id}/recoveries"
    statuses = [
        limited.call("POST", path, json={"recoveryCode": "guess"}).status_code for _ in range(3)
    ]
    assert statuses == [403, 403, 429]
    limited.new_app()


def test_nobody_opens_test_merchants_by_the_thousand(limited: PaymentsApi) -> None:
    apps = [limited.new_app() for _ in range(2)]
    statuses = [
        limited.call("POST", "/merchants", app, json=MERCHANT).status_code for app in apps * 5
    ]
    assert statuses == [201] * 8 + [429] * 2


def test_merchants_that_wait_are_limited_by_app_and_by_address(limited: PaymentsApi) -> None:
    shop, other = limited.new_app(), limited.new_app()
    statuses = [
        limited.call("POST", "/merchants", app, json=MERCHANT | {"test": False}).status_code
        for app in (shop, shop, shop, other, other)
    ]
    assert statuses == [201, 201, 429, 429, 429]
    limited.new_merchant(other)
