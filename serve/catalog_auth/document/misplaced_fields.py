"""Members with the prefix `auth:` outside their places (part B1), wherever in the document."""

from collections.abc import Iterator, Mapping

from tollgate.serve.catalog_auth.document.document import (
    PREFIX,
    REFS,
    SCHEMES,
    FieldPlace,
    Kind,
    MisplacedField,
)
from tollgate.serve.catalog_auth.document.paths import Path, ReversePath, forward_path, length_of

# Of those in places without meaning, which do no harm, so many are told, with so many characters in
# the paths to them.
MISPLACED_MAX = 1_000
MISPLACED_LENGTH_MAX = 64 * 1024


def find_misplaced(root: Mapping[str, object], kind: Kind) -> list[MisplacedField]:
    """All of them where the extension has an opinion, up to MISPLACED_MAX of the rest, or fewer
    of those that are deep; in no order.

    Takes no stack and no room for paths: documents may be deep.
    """
    found: list[MisplacedField] = []
    length_left = MISPLACED_LENGTH_MAX
    rest: list[tuple[ReversePath, int, object]] = [(None, 0, root)]
    while rest:
        reverse_path, depth, value = rest.pop()
        if isinstance(value, dict):
            place, names_are_free, into = _look(reverse_path, depth, value, kind)
            if not names_are_free:
                names = [
                    name
                    for name in value
                    if name.startswith(PREFIX) and not _is_official(name, place, kind)
                ]
                if names and place is FieldPlace.ELSEWHERE:
                    length = 1 + length_of(forward_path(reverse_path))
                    room = min(MISPLACED_MAX - len(found), length_left // length)
                    names = names[: max(room, 0)]
                    length_left -= len(names) * length
                found += [
                    MisplacedField(forward_path((reverse_path, name)), value[name], place)
                    for name in names
                ]
            inner = [(name, value[name]) for name in into]
            rest += [
                ((reverse_path, name), depth + 1, item) for name, item in inner if _opens(item)
            ]
        elif isinstance(value, list):
            steps = enumerate(value)
            rest += [
                ((reverse_path, index), depth + 1, item) for index, item in steps if _opens(item)
            ]
    return found


def _opens(value: object) -> bool:
    return isinstance(value, dict | list)


# No place with a meaning is deeper: properties, auth:schemes, a name, flows, a name.
_DEPTH_MAX = 5


def _look(
    reverse_path: ReversePath, depth: int, value: Mapping[str, object], kind: Kind
) -> tuple[FieldPlace, bool, Iterator[str] | list[str]]:
    """The object's place, whether its names are the author's choice, and where to look on."""
    if depth > _DEPTH_MAX:
        return FieldPlace.ELSEWHERE, False, iter(value)
    path = forward_path(reverse_path)
    schemes_path: Path = ("properties", SCHEMES) if kind is Kind.ITEM else (SCHEMES,)
    if path[: len(schemes_path)] == schemes_path:
        return _look_at_schemes(path[len(schemes_path) :], value)
    if not path and kind is Kind.ITEM_COLLECTION:  # (its features are documents of their own)
        return FieldPlace.TOP, False, [name for name in value if name != "features"]
    return _place(path, kind), path in (("assets",), ("item_assets",)), iter(value)


def _look_at_schemes(
    path: Path, value: Mapping[str, object]
) -> tuple[FieldPlace, bool, Iterator[str] | list[str]]:
    """Schemes, flows, parameters and scopes are named by the author: what is below a flow says
    nothing of access."""
    match len(path):
        case 1:
            return FieldPlace.SCHEME, False, ["flows"] if "flows" in value else []
        case 3:
            return FieldPlace.ELSEWHERE, False, []
        case _:
            return FieldPlace.ELSEWHERE, True, iter(value)


def _place(path: Path, kind: Kind) -> FieldPlace:
    match path:
        case ():
            return FieldPlace.ITEM_TOP if kind is Kind.ITEM else FieldPlace.TOP
        case ("properties",) if kind is Kind.ITEM:
            return FieldPlace.PROPERTIES
        case ("summaries",) if kind is Kind.COLLECTION:
            return FieldPlace.SUMMARIES
        case ("item_assets", *_) if kind is Kind.ITEM:
            return FieldPlace.ELSEWHERE
        case ("links", int()) | ("assets" | "item_assets", str()):
            return FieldPlace.HOLDER
        case ("assets" | "item_assets", str(), "alternate"):
            return FieldPlace.ALTERNATE_MAP
        case ("assets" | "item_assets", str(), "alternate", str(name)) if name[:5] != PREFIX:
            return FieldPlace.ALTERNATE
    return FieldPlace.ELSEWHERE


def _is_official(name: str, place: FieldPlace, kind: Kind) -> bool:
    """Tells whether the extension gives a member of this name a meaning there."""
    if name == SCHEMES:
        return place is (FieldPlace.PROPERTIES if kind is Kind.ITEM else FieldPlace.TOP)
    return name == REFS and place in (FieldPlace.HOLDER, FieldPlace.ALTERNATE, FieldPlace.SCHEME)
