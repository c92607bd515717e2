"""Members of a body that mean nothing are refused, with the name that may have been meant (A)."""

from typing import Any

import pytest

from tests.support.payments.api import MERCHANT, App, PaymentsApi, fields_of


def test_a_misspelt_member_does_not_capture(
    api: PaymentsApi, shop: App, merchant: dict[str, Any]
) -> None:
    paid = api.pay(merchant)
    body = {"amount": 10, "curency": "USD"}
    response = api.call("POST", f"/transactions/{paid}/captures", shop, json=body)
    assert fields_of(response) == ["curency"]
    assert response.json()[0]["message"] == "is unknown; did you mean currency?"
    assert api.transaction(shop, paid)["capturedAmount"] == 0


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"company": {"country": "DK", "numer": "1"}}, "company.numer", "did you mean number?"),
        ({"zzz": 1}, "zzz", "is unknown"),
    ],
)
def test_parts_are_looked_at_too(
    api: PaymentsApi, shop: App, change: dict[str, Any], field: str, message: str
) -> None:
    response = api.call("POST", "/merchants", shop, json=MERCHANT | change)
    assert fields_of(response) == [field]
    assert message in response.json()[0]["message"]


def test_required_parameters_are_documented_as_such(api: PaymentsApi) -> None:
    paths = api.call("GET", "/openapi.json").json()["paths"]
    for path, name in (
        ("/disputes", "filter[merchantId]"),
        ("/frauds", "filter[merchantId]"),
        ("/merchants/{merchantId}/audit", "limit"),
    ):
        (found,) = [each for each in paths[path]["get"]["parameters"] if each["name"] == name]
        assert found["required"], path
