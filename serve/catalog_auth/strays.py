"""Members with the prefix `auth:` outside their places (part B1), wherever in the document."""

from collections.abc import Mapping

from serve.catalog_auth.document import PREFIX, REFS, SCHEMES, Kind, Place, Stray
from serve.catalog_auth.findings import Path


def find_strays(root: Mapping[str, object], kind: Kind) -> tuple[Stray, ...]:
    """All of them, in the order of the document. Takes no stack: documents may be deep."""
    found: list[Stray] = []
    schemes_path = _schemes_path(kind)
    rest: list[tuple[Path, object]] = [((), root)]
    while rest:
        path, value = rest.pop()
        if isinstance(value, dict):
            if not _has_free_names(path, schemes_path):
                for name, inner in value.items():
                    if name.startswith(PREFIX) and not _is_official(path, name, kind):
                        found.append(Stray((*path, name), inner, _place(path, kind)))
            names = reversed(_members(path, value, schemes_path, kind))
            rest += [((*path, name), value[name]) for name in names if _opens(value[name])]
        elif isinstance(value, list):
            rest += [
                ((*path, i), value[i]) for i in reversed(range(len(value))) if _opens(value[i])
            ]
    return tuple(found)


def _schemes_path(kind: Kind) -> Path:
    return ("properties", SCHEMES) if kind is Kind.ITEM else (SCHEMES,)


def _has_free_names(path: Path, schemes_path: Path) -> bool:
    """Whether the members at `path` are named by the author: schemes, flows, assets, alternates.

    (What an `auth:` member of a map of alternates is, the official schema has an opinion on.)
    """
    if path[: len(schemes_path)] == schemes_path:
        return len(path) in (len(schemes_path), len(schemes_path) + 2)
    return path in (("assets",), ("item_assets",))


def _members(path: Path, value: Mapping[str, object], schemes_path: Path, kind: Kind) -> list[str]:
    """The members to go into. Below a flow, names belong to the author: scopes, parameters. The
    features of an item collection are documents of their own."""
    if not path and kind is Kind.ITEM_COLLECTION:
        return [name for name in value if name != "features"]
    if path[: len(schemes_path)] == schemes_path:
        depth = len(path) - len(schemes_path)
        if depth == 1:
            return ["flows"] if "flows" in value else []
        if depth > 2:
            return []
    return list(value)


def _opens(value: object) -> bool:
    return isinstance(value, dict | list)


def _is_official(path: Path, name: str, kind: Kind) -> bool:
    """Whether the extension gives a member of this name a meaning in the object at `path`."""
    if name == SCHEMES:
        return path == (("properties",) if kind is Kind.ITEM else ())
    if name != REFS:
        return False
    return _place(path, kind) in (Place.HOLDER, Place.ALTERNATE, Place.SCHEME)


def _place(path: Path, kind: Kind) -> Place:
    """What the object at `path` is."""
    match path:
        case ():
            return Place.ITEM_TOP if kind is Kind.ITEM else Place.TOP
        case ("properties",) if kind is Kind.ITEM:
            return Place.PROPERTIES
        case ("summaries",) if kind is Kind.COLLECTION:
            return Place.SUMMARIES
        case ("item_assets", *_) if kind is Kind.ITEM:
            return Place.ELSEWHERE
        case ("links", int()) | ("assets" | "item_assets", str()):
            return Place.HOLDER
        case ("assets" | "item_assets", str(), "alternate"):
            return Place.ALTERNATE_MAP
        case ("assets" | "item_assets", str(), "alternate", str()):
            return Place.ALTERNATE
        case (*above, str()) if tuple(above) == _schemes_path(kind):
            return Place.SCHEME
    return Place.ELSEWHERE
