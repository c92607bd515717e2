"""Members with the prefix `auth:` outside their places (part B1), wherever in the document."""

from collections.abc import Iterator, Mapping

from tollgate.serve.catalog_auth.document.document import PREFIX, REFS, SCHEMES, Kind, Place, Stray
from tollgate.serve.catalog_auth.document.trail import Trail, path_of
from tollgate.serve.catalog_auth.rules.findings import Path

# Of those in places without meaning, which do no harm, so many are told.
STRAYS_MAX = 1_000


def find_strays(root: Mapping[str, object], kind: Kind) -> list[Stray]:
    """All of them where the extension has an opinion, up to STRAYS_MAX of the rest; in no order.
    Takes no stack and no room for paths: documents may be deep."""
    found: list[Stray] = []
    rest: list[tuple[Trail, int, object]] = [(None, 0, root)]
    while rest:
        trail, depth, value = rest.pop()
        if isinstance(value, dict):
            place, names_are_free, into = _look(trail, depth, value, kind)
            if not names_are_free:
                names = [
                    name
                    for name in value
                    if name.startswith(PREFIX) and not _is_official(name, place, kind)
                ]
                if place is Place.ELSEWHERE:
                    names = names[: STRAYS_MAX - len(found)] if len(found) < STRAYS_MAX else []
                found += [Stray(path_of((trail, name)), value[name], place) for name in names]
            inner = [(name, value[name]) for name in into]
            rest += [((trail, name), depth + 1, item) for name, item in inner if _opens(item)]
        elif isinstance(value, list):
            steps = enumerate(value)
            rest += [((trail, index), depth + 1, item) for index, item in steps if _opens(item)]
    return found


def _opens(value: object) -> bool:
    return isinstance(value, dict | list)


# No place with a meaning is deeper: properties, auth:schemes, a name, flows, a name.
_DEPTH_MAX = 5


def _look(
    trail: Trail, depth: int, value: Mapping[str, object], kind: Kind
) -> tuple[Place, bool, Iterator[str] | list[str]]:
    """What the object is, whether its names are the author's to choose, and where to look on."""
    if depth > _DEPTH_MAX:
        return Place.ELSEWHERE, False, iter(value)
    path = path_of(trail)
    schemes_path: Path = ("properties", SCHEMES) if kind is Kind.ITEM else (SCHEMES,)
    if path[: len(schemes_path)] == schemes_path:
        return _look_at_schemes(path[len(schemes_path) :], value)
    if not path and kind is Kind.ITEM_COLLECTION:  # (its features are documents of their own)
        return Place.TOP, False, [name for name in value if name != "features"]
    return _place(path, kind), path in (("assets",), ("item_assets",)), iter(value)


def _look_at_schemes(
    path: Path, value: Mapping[str, object]
) -> tuple[Place, bool, Iterator[str] | list[str]]:
    """Schemes, flows, parameters and scopes are named by the author: what is below a flow says
    nothing of access."""
    match len(path):
        case 1:
            return Place.SCHEME, False, ["flows"] if "flows" in value else []
        case 3:
            return Place.ELSEWHERE, False, []
        case _:
            return Place.ELSEWHERE, True, iter(value)


def _place(path: Path, kind: Kind) -> Place:
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
        case ("assets" | "item_assets", str(), "alternate", str(name)) if name[:5] != PREFIX:
            return Place.ALTERNATE
    return Place.ELSEWHERE


def _is_official(name: str, place: Place, kind: Kind) -> bool:
    """Whether the extension gives a member of this name a meaning there."""
    if name == SCHEMES:
        return place is (Place.PROPERTIES if kind is Kind.ITEM else Place.TOP)
    return name == REFS and place in (Place.HOLDER, Place.ALTERNATE, Place.SCHEME)
