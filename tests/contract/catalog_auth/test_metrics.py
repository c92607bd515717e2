"""What the service counts: calls by route and status."""

from tests.support.catalog_auth.api import CatalogApi, item


def test_calls_are_counted_by_route_and_status() -> None:
    api = CatalogApi()
    for _ in range(2):
        api.post("/validate", item())
    api.call("POST", "/validate", content=b"{", headers={"content-type": "application/json"})
    api.call("GET", "/rules/no-such-rule-of-anybody")
    api.call("BREW", "/validate")
    api.call("GET", "/secret-of-a-caller")
    assert api.call("GET", "/healthcheck").text == "OK"
    told = api.context.tallies.drain()
    validated = "catalog.requests.__method=POST.__route=/validate"
    assert told.counts[f"{validated}.__status=200"] == 2
    assert told.counts[f"{validated}.__status=400"] == 1
    assert told.counts["catalog.requests.__method=other.__route=none.__status=404"] == 1
    assert told.counts["catalog.requests.__method=other.__route=/validate.__status=405"] == 1
    assert told.counts["catalog.requests.__method=GET.__route=/healthcheck.__status=200"] == 1
    assert told.latencies["catalog.request.duration.__method=POST.__route=/validate"].count == 3
    # Nothing of what callers sent is in a name.
    assert not any("secret" in name or "anybody" in name for name in told.counts)
