"""Small whole documents of each kind, of which examples of rules are made."""

from collections.abc import Mapping

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.catalog_auth.document.versions import Version

LOGIN: Json = {
    "type": "openIdConnect",
    "openIdConnectUrl": "https://login.example.com/.well-known/openid-configuration",
}
KEY: Json = {"type": "apiKey", "in": "header", "name": "X-Api-Key"}
SCENE = "https://data.example.com/scene.tif"


def scene(*refs: str, href: str = SCENE, **members: object) -> Json:
    """An asset with these references."""
    return {"href": href, **members, "auth:refs": list(refs)}


def item(
    schemes: object = None,
    assets: Mapping[str, object] | None = None,
    version: Version = Version.V1_1_0,
    **members: object,
) -> Json:
    """An item with these schemes (None: no such member), and an asset that references all of them
    unless there are other assets."""
    if assets is None:
        assets = {"data": scene(*schemes)} if isinstance(schemes, dict) and schemes else {}
    return {
        "type": "Feature",
        "stac_version": "1.1.0",
        "stac_extensions": [version.identifier],
        "id": "scene",
        "geometry": None,
        "properties": {
            "datetime": "2026-01-01T00:00:00Z",
            **({} if schemes is None else {"auth:schemes": schemes}),
        },
        "links": [],
        "assets": dict(assets),
        **members,
    }


def collection(
    schemes: object = None, version: Version = Version.V1_1_0, **members: object
) -> Json:
    """A collection with these schemes (None: no such member)."""
    return {
        "type": "Collection",
        "stac_version": "1.1.0",
        "stac_extensions": [version.identifier],
        "id": "scenes",
        "description": "Scenes.",
        "license": "CC-BY-4.0",
        "extent": {
            "spatial": {"bbox": [[-180, -90, 180, 90]]},
            "temporal": {"interval": [["2026-01-01T00:00:00Z", None]]},
        },
        "links": [],
        **({} if schemes is None else {"auth:schemes": schemes}),
        **members,
    }
