"""Lists over the wire (part A, Lists; L1 to L3): to the byte, and against a model in Python."""

from typing import Any

import pytest

from tests.support.payments.api import ABSENT, App, PaymentsApi, fields_of, lines_of

Merchant = dict[str, Any]
ZEROS = "0" * 16


@pytest.fixture
def path(merchant: Merchant) -> str:
    return f"/merchants/{merchant['id']}/transactions"


@pytest.fixture
def made(api: PaymentsApi, shop: App, merchant: Merchant, path: str) -> list[dict[str, Any]]:
    """Eight transactions, the oldest first, every third of which failed."""
    for number in range(8):
        api.clock.advance(1)
        if number % 3 == 2:
            card = {"test": {"card": {"status": "lost"}}}
            api.call("POST", "/sandbox/payments", json=payment(merchant, number) | card)
        else:
            api.pay(merchant, number + 1)
    return api.listed(path, shop, sort="id")


def payment(merchant: Merchant, number: int) -> dict[str, Any]:
    card = {"number": "4100000000000000", "expiry": {"month": 1, "year": 2030}, "code": "123"}
    return {"key": merchant["key"], "amount": number + 1, "currency": "EUR", "card": card}


def test_a_list_is_framed_by_lines(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    path = f"/merchants/{merchant['id']}/users"
    response = api.call("GET", path, shop, params={"limit": 5})
    assert response.content == b"[\n]\n"
    for name in ("a", "b"):
        api.call("POST", path, shop, json={"email": f"{name}@example.com"})
    text = api.call("GET", path, shop, params={"limit": 5}).text
    first, b, a, last, rest = text.split("\n")
    assert (first, last, rest) == ("[", "]", "")
    assert b.startswith('{"id":"')
    assert b.endswith("},")
    assert a.endswith("}")
    one = api.call("GET", path, shop, params={"limit": 1}).text
    assert one == f"[\n{b[:-1]}\n]\n"


def test_a_list_is_newest_first(api: PaymentsApi, shop: App, path: str, made: list[Any]) -> None:
    assert [each["amount"] for each in made] == list(range(1, 9))
    assert api.listed(path, shop) == made[::-1]
    assert api.listed(path, shop, limit=3) == made[:-4:-1]


def test_paging_gives_everything_once_whatever_comes_in_between(
    api: PaymentsApi, shop: App, merchant: Merchant, path: str, made: list[Any]
) -> None:
    found: list[Any] = []
    query: dict[str, Any] = {"limit": 3}
    while page := api.listed(path, shop, **query):
        found += page
        api.pay(merchant, 99)
        query["before"] = page[-1]["id"]
    assert found == made[::-1]


def test_polling_with_after_misses_nothing(
    api: PaymentsApi, shop: App, path: str, made: list[Any]
) -> None:
    found = api.listed(path, shop, after=ABSENT.replace("f", "0"), limit=3)
    while page := api.listed(path, shop, after=found[-1]["id"], limit=3):
        found += page
    assert found == made


def test_bounds_are_values_and_exclusive(
    api: PaymentsApi, shop: App, path: str, made: list[Any]
) -> None:
    ids = [each["id"] for each in made]
    assert api.listed(path, shop, before=ids[5], after=ids[2]) == made[3:5][::-1]
    assert api.listed(path, shop, before=ids[2], after=ids[5]) == []
    # A client makes bounds from times: 8 digits of seconds, and zeros.
    second = f"{int(ids[4][:8], 16):08x}"
    assert api.listed(path, shop, before=second + ZEROS) == made[:4][::-1]
    assert api.listed(path, shop, after=second + ZEROS) == made[4:]
    assert api.listed(path, shop, after=ids[4], sort="-id") == made[5:][::-1]
    assert api.listed(path, shop, before=ids[4], sort="id", limit=2) == made[:2]


@pytest.mark.parametrize("successful", [None, True, False])
@pytest.mark.parametrize("test", [None, True, False])
@pytest.mark.parametrize("bounds", [(None, None), (6, None), (None, 1), (6, 1)])
def test_filters_agree_with_a_model(
    api: PaymentsApi,
    shop: App,
    path: str,
    made: list[Any],
    successful: bool | None,
    test: bool | None,
    bounds: tuple[int | None, int | None],
) -> None:
    """L3: filter(list) = list(filter), with several predicates at once."""
    before, after = bounds
    query: dict[str, Any] = {"limit": 100}
    expected = list(enumerate(made))
    if successful is not None:
        query["filter[successful]"] = "y" if successful else "n"
        expected = [pair for pair in expected if pair[1]["successful"] is successful]
    if test is not None:
        query["filter[test]"] = "true" if test else "false"
        expected = [pair for pair in expected if pair[1]["test"] is test]
    if before is not None:
        query["before"] = made[before]["id"]
        expected = [pair for pair in expected if pair[0] < before]
    if after is not None:
        query["after"] = made[after]["id"]
        expected = [pair for pair in expected if pair[0] > after]
    is_ascending = after is not None and before is None
    in_order = expected if is_ascending else expected[::-1]
    found = lines_of(api.call("GET", path, shop, params=query))
    assert found == [each for _, each in in_order]
    some = lines_of(api.call("GET", path, shop, params=query | {"limit": 2}))
    assert some == found[:2]


def test_a_filter_by_merchant_agrees_with_the_path(
    api: PaymentsApi, shop: App, merchant: Merchant, path: str, made: list[Any]
) -> None:
    query = {"filter[merchantId]": merchant["id"]}
    assert len(api.listed(path, shop, **query)) == len(made)
    assert api.listed(path, shop, **{"filter[merchantId]": ABSENT}) == []


def test_lines_by_transaction(
    api: PaymentsApi, shop: App, merchant: Merchant, made: list[Any]
) -> None:
    for each in made:
        if each["successful"]:
            api.act(shop, each["id"], "captures", amount=1)
    path = f"/merchants/{merchant['id']}/lines"
    (line,) = api.listed(path, shop, **{"filter[transactionId]": made[3]["id"]})
    assert line["transactionId"] == made[3]["id"]
    query = {"filter[transactionId]": made[3]["id"], "filter[test]": "n"}
    assert api.listed(path, shop, **query) == []


@pytest.mark.parametrize("what", ["users", "apps", "webhooks", "events"])
def test_a_list_knows_its_own_filters_only(
    api: PaymentsApi, shop: App, merchant: Merchant, what: str
) -> None:
    path = f"/merchants/{merchant['id']}/{what}"
    query = {"limit": 1, "filter[successful]": "y"}
    assert fields_of(api.call("GET", path, shop, params=query)) == ["filter.successful"]


def test_a_page_has_at_most_a_thousand(api: PaymentsApi, shop: App, path: str) -> None:
    assert fields_of(api.call("GET", path, shop, params={"limit": 1_001})) == ["limit"]
    assert fields_of(api.call("GET", path, shop)) == ["limit"]


def test_a_trailing_slash_is_the_same_route(
    api: PaymentsApi, shop: App, merchant: Merchant, path: str, made: list[Any]
) -> None:
    for each in ("/me", f"/merchants/{merchant['id']}", f"/transactions/{made[0]['id']}"):
        plain, slashed = api.call("GET", each, shop), api.call("GET", f"{each}/", shop)
        assert slashed.status_code == 200
        assert slashed.content == plain.content
    plain = api.call("GET", path, shop, params={"limit": 2})
    assert api.call("GET", f"{path}/", shop, params={"limit": 2}).content == plain.content
    response = api.call(
        "POST", f"/transactions/{made[0]['id']}/captures/", shop, json={"amount": 1}
    )
    assert response.status_code == 201


def test_bodies_of_get_and_delete_mean_nothing(
    api: PaymentsApi, shop: App, merchant: Merchant, path: str
) -> None:
    response = api.call("GET", path, shop, params={"limit": 1}, content=b"{not json")
    assert response.status_code == 200
    users = f"/merchants/{merchant['id']}/users"
    api.call("POST", users, shop, json={"email": "a@example.com"})
    (user,) = api.listed(users, shop)
    response = api.call("DELETE", f"{users}/{user['id']}", shop, json={"x": 1})
    assert response.status_code == 204
