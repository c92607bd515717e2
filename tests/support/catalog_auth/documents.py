"""Small catalog documents for the tests, and the ways to their one asset."""

from typing import Any

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.catalog_auth.document.document import NO_ANCESTORS, Ancestors
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.resolve.available_credentials import (
    AvailableCredential,
    AvailableCredentials,
)
from tollgate.serve.catalog_auth.resolve.resolution import resolve
from tollgate.serve.catalog_auth.resolve.steps import Resolution
from tollgate.serve.catalog_auth.resolve.target import AccessTarget, By
from tollgate.serve.catalog_auth.resolve.wire import resolution_json

V1_2_0 = "https://stac-extensions.github.io/authentication/v1.2.0/schema.json"
HREF = "https://data.example.com/a.tif"
DATA = AccessTarget(By.POINTER, "/assets/data")


def item(
    schemes: Json | None = None,
    refs: list[str] | None = None,
    href: str = HREF,
    asset: Json | None = None,
    properties: Json | None = None,
) -> Json:
    """An item with one asset, `data`."""
    data: Json = {"href": href, **(asset or {})}
    if refs is not None:
        data["auth:refs"] = refs
    members = dict(properties or {})
    if schemes is not None:
        members["auth:schemes"] = schemes
    return {
        "type": "Feature",
        "stac_version": "1.1.0",
        "stac_extensions": [V1_2_0],
        "id": "i1",
        "collection": "c1",
        "geometry": None,
        "properties": {"datetime": "2026-01-01T00:00:00Z", **members},
        "links": [],
        "assets": {"data": data},
    }


def resolved(
    root: Json,
    *available: str | AvailableCredential,
    target: AccessTarget = DATA,
    ancestors: Ancestors = NO_ANCESTORS,
    base_url: str | None = None,
) -> Resolution:
    held = tuple(AvailableCredential(one) if isinstance(one, str) else one for one in available)
    found = resolve(locate(root, ancestors), target, AvailableCredentials(held), base_url=base_url)
    assert isinstance(found, Resolution), found
    return found


def ways(
    root: Json, *available: str | AvailableCredential, target: AccessTarget = DATA
) -> list[Json]:
    """The alternatives as JSON."""
    answer: list[Json] = resolution_json(resolved(root, *available, target=target))["alternatives"]
    return answer


def way(scheme: Json, *available: str | AvailableCredential, href: str = HREF, **more: Any) -> Json:
    """The only alternative for an asset that refers to this one scheme, `s`."""
    (only,) = ways(item({"s": scheme}, ["s"], href, **more), *available)
    return only
