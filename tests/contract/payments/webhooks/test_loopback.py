"""Webhooks on the operator's own machine: whose may be there, and who may say so."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.payments.api import App, PaymentsApi, done, fields_of
from tollgate.serve.net.guarded_client import TargetPolicy
from tollgate.serve.payments.api.asgi import Dispatcher
from tollgate.serve.payments.webhooks.calls import WebhookTargets
from tollgate.serve.payments.wiring import webhook_targets
from tollgate.serve.settings import Settings

Merchant = dict[str, Any]
URL = {"url": "https://example.com/hook"}


def added(api: PaymentsApi, shop: App, path: str, **more: object) -> str:
    webhook = done(api.call("POST", path, shop, json=URL | more))["webhook"]["id"]
    return f"{path}/{webhook}"


LOOPBACK = ("http://localhost:9000/hook", "http://127.0.0.1:9000/hook", "https://[::1]:9000/")


@pytest.fixture
def local(api: PaymentsApi) -> PaymentsApi:
    """A Tollgate that serves its own machine alone, called from there."""
    targets = WebhookTargets(test=TargetPolicy(allows_loopback=True))
    api.address = "127.0.0.1"
    api.client = api.client_of(Dispatcher(replace(api.context, targets=targets)))
    return api


@pytest.mark.parametrize("url", LOOPBACK)
def test_on_the_loopback_a_test_merchant_s_webhook_may_be_there(
    local: PaymentsApi, shop: App, path: str, url: str
) -> None:
    here = added(local, shop, path)
    assert local.call("POST", path, shop, json={"url": url}).status_code == 201
    assert local.call("PUT", here, shop, json={"url": url}).status_code == 204


@pytest.mark.parametrize("url", LOOPBACK)
def test_a_live_merchant_s_webhook_is_never_on_the_loopback(
    local: PaymentsApi, shop: App, url: str
) -> None:
    live_one = local.new_merchant(shop, test=False)
    response = local.call("POST", f"/merchants/{live_one['id']}/webhooks", shop, json={"url": url})
    assert fields_of(response) == ["url"]


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"Via": "1.1 proxy"},
        {"X-Real-IP": "127.0.0.1"},
        {"X-Forwarded-Host": "localhost"},
        {"X-Forwarded-Proto": "https"},
    ],
)
def test_whoever_comes_through_a_proxy_is_not_on_this_machine(
    local: PaymentsApi, shop: App, path: str, headers: dict[str, str]
) -> None:
    for url in LOOPBACK:
        response = local.call("POST", path, shop, json={"url": url}, headers=headers)
        assert fields_of(response) == ["url"]


def test_whoever_calls_from_elsewhere_does_not_name_this_machine(
    local: PaymentsApi, shop: App, path: str
) -> None:
    local.address = "192.0.2.7"
    targets = WebhookTargets(test=TargetPolicy(allows_loopback=True))
    local.client = local.client_of(Dispatcher(replace(local.context, targets=targets)))
    here = added(local, shop, path)
    for url in LOOPBACK:
        assert fields_of(local.call("POST", path, shop, json={"url": url})) == ["url"]
        assert fields_of(local.call("PUT", here, shop, json={"url": url})) == ["url"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1", "2130706433", "[::1]"])
def test_names_and_numbers_of_the_loopback_are_one(
    api: PaymentsApi, shop: App, path: str, host: str
) -> None:
    for scheme in ("http", "https"):
        answer = api.call("POST", path, shop, json={"url": f"{scheme}://{host}/"})
        assert fields_of(answer) == ["url"]
        assert "WEBHOOK_ALLOW_LOOPBACK=true" in answer.text, "the refusal names the setting"


def test_no_other_refusal_names_the_setting(api: PaymentsApi, shop: App, path: str) -> None:
    for url in ("http://example.com/", "https://10.0.0.1/", "http://user@localhost/"):
        answer = api.call("POST", path, shop, json={"url": url})
        assert fields_of(answer) == ["url"]
        assert "WEBHOOK_ALLOW_LOOPBACK" not in answer.text


@pytest.mark.parametrize(
    ("environment", "is_allowed"),
    [
        ({"HOST": "127.0.0.1"}, False),
        ({"HOST": "127.0.0.1", "WEBHOOK_ALLOW_LOOPBACK": "true"}, True),
        ({"WEBHOOK_ALLOW_LOOPBACK": "true"}, False),
        (
            {
                "HOST": "127.0.0.1",
                "WEBHOOK_ALLOW_LOOPBACK": "true",
                "PAYMENTS_TRUST_FORWARDED_FOR": "true",
            },
            False,
        ),
    ],
)
def test_the_operator_says_that_a_machine_is_for_development(
    environment: dict[str, str], is_allowed: bool
) -> None:
    targets = webhook_targets(Settings.from_environment(environment))
    assert targets.test.allows_loopback is is_allowed
    assert not targets.live.allows_loopback
