"""v1.0.0, with its slips (part B3).

The rules for a scheme's fields were attached to the map of schemes, so that schemes may be
anything, but a scheme *named* `type`, `name`, `in`, `description`, `scheme` or `openConnectUrl` has
to be a text, and one named `flows` is taken for the flows. An item's links are never looked at. A
collection passes by any of four ways. Catalogs have no branch: none passes.
"""

from collections.abc import Mapping

from tollgate.serve.catalog_auth.document.document import REFS, SCHEMES
from tollgate.serve.catalog_auth.document.fields import are_strings, has_no_other, is_string_list


def is_valid_v1_0(root: Mapping[str, object]) -> bool:
    """Tells whether a document that declares v1.0.0 passes that version's schema."""
    match root.get("type"):
        case "Feature":
            return _takes_item(root)
        case "Collection":
            return (
                (SCHEMES in root and _are_fields(root))
                or _takes_by_assets(root)
                or _has_a_scheme_holder(root, "item_assets")
                or _takes_by_summaries(root)
            )
    return False


def _takes_item(root: Mapping[str, object]) -> bool:
    properties = root.get("properties")
    assets = root.get("assets")
    return (
        "links" in root
        and isinstance(properties, dict)
        and SCHEMES in properties
        and _are_fields(properties)
        and isinstance(assets, dict)
        and all(_are_fields(asset) for asset in assets.values())
    )


def _takes_by_assets(root: Mapping[str, object]) -> bool:
    """One asset that has schemes is enough; and links only count here, where one of them has to
    have the relation `auth`."""
    if not _has_a_scheme_holder(root, "assets"):
        return False
    if "links" not in root:
        return True
    links = root["links"]
    if not isinstance(links, list):
        return False
    auth_links = [link for link in links if isinstance(link, dict) and link.get("rel") == "auth"]
    return bool(auth_links) and all(
        is_string_list(link[REFS]) for link in auth_links if REFS in link
    )


def _has_a_scheme_holder(root: Mapping[str, object], where: str) -> bool:
    assets = root.get(where)
    return isinstance(assets, dict) and any(
        isinstance(asset, dict) and SCHEMES in asset and _are_fields(asset)
        for asset in assets.values()
    )


def _takes_by_summaries(root: Mapping[str, object]) -> bool:
    """Summaries that are no object pass: a schema's `required` asks only objects for members."""
    if "summaries" not in root:
        return False
    summaries = root["summaries"]
    return not isinstance(summaries, dict) or SCHEMES in summaries


def _are_fields(value: object) -> bool:
    """`fields` of the schema: the extension's members of any object."""
    return (
        isinstance(value, dict)
        and has_no_other(value, REFS, SCHEMES)
        and (REFS not in value or is_string_list(value[REFS]))
        and (SCHEMES not in value or _is_scheme_map(value[SCHEMES]))
    )


def _is_scheme_map(value: object) -> bool:
    return (
        isinstance(value, dict)
        and are_strings(value, "type", "description", "name", "in", "scheme", "openConnectUrl")
        and ("flows" not in value or _is_flows(value["flows"]))
    )


def _is_flows(value: object) -> bool:
    return (
        isinstance(value, dict)
        and are_strings(value, "authorizationUrl", "tokenUrl", "authorizationApi", "refreshUrl")
        and are_strings(value, "method", "responseField")
        and isinstance(value.get("scopes", {}), dict)
        and ("parameters" not in value or _is_parameters(value["parameters"]))
    )


def _is_parameters(value: object) -> bool:
    return (
        isinstance(value, dict)
        and are_strings(value, "in", "description")
        and isinstance(value.get("required", True), bool)
        and isinstance(value.get("schema", {}), dict)
    )
