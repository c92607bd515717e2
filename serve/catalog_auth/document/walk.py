"""The one walk over the places that the extension knows, for schemes and for all that can hold
references (part B1)."""

from collections.abc import Mapping

from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    PREFIX,
    REFS,
    SCHEMES,
    AccessGroup,
    Holder,
    HolderKind,
    Kind,
    Misshapen,
    References,
    Scheme,
)
from tollgate.serve.catalog_auth.document.fields import is_string_list
from tollgate.serve.catalog_auth.document.paths import Path

_KINDS = {kind.value: kind for kind in Kind if kind is not Kind.OTHER}


def schemes_of(value: object, path: Path) -> tuple[Scheme, ...]:
    """The schemes of a map at `path` that are objects."""
    if not isinstance(value, dict):
        return ()
    found = []
    for name, scheme in value.items():
        if isinstance(scheme, dict):
            type_ = scheme.get("type")
            text = type_ if isinstance(type_, str) else None
            found.append(Scheme(name, (*path, name), scheme, text))
    return tuple(found)


# What holds something: its name, its path and the object itself.
_Entry = tuple[str, Path, Mapping[str, object]]
# No href begins with this.
NO_PLACE = "\0"


class _Group:
    """Holders with the same references, or with none: their accesses by what the hrefs have in
    common, and the one that was met last."""

    __slots__ = ("accesses", "holders", "place", "reached", "references")

    def __init__(self, references: References | None, holders: list[Holder]) -> None:
        self.references = references
        self.holders = holders
        self.accesses: dict[str, AccessGroup] = {}
        self.place = NO_PLACE
        self.reached: list[Holder] = []


class Walk:
    """Gathers schemes and holders; `fields` counts the `auth:` members in official places."""

    def __init__(self, root: object, inherited: Mapping[str, Scheme]) -> None:
        self.misshapen: list[Misshapen] = []
        if not isinstance(root, dict):
            self.misshapen.append(Misshapen((), root, "object"))
            root = {}
        type_ = root.get("type")
        kind = _KINDS.get(type_, Kind.OTHER) if isinstance(type_, str) else Kind.OTHER
        self.root: Mapping[str, object] = root
        self.kind = kind
        self.inherited = inherited
        self.fields = 0
        self.holders: list[Holder] = []
        self.references: list[References] = []
        self.accesses: list[AccessGroup] = []
        self._groups: dict[tuple[str, ...], _Group] = {}
        self._open = _Group(None, [])
        self.malformed: list[Holder] = []
        self._find_schemes(root, kind)
        if kind is Kind.ITEM_COLLECTION:
            if not isinstance(features := root.get("features"), list):
                self.misshapen.append(Misshapen(("features",), features, "array"))
            return
        is_catalog = kind is Kind.CATALOG
        if "assets" in root:
            self._assets(HolderKind.ASSET, "assets", root["assets"], not is_catalog)
        if "item_assets" in root and kind is not Kind.ITEM:
            is_official = kind is Kind.COLLECTION
            self._assets(HolderKind.ITEM_ASSET, "item_assets", root["item_assets"], is_official)
        if "links" in root:
            self._links(root["links"])

    def _find_schemes(self, root: Mapping[str, object], kind: Kind) -> None:
        owner: object = root
        self.schemes_path: Path = (SCHEMES,)
        if kind is Kind.ITEM:
            self.schemes_path = ("properties", SCHEMES)
            owner = root.get("properties")
            if not isinstance(owner, dict) and "properties" in root:
                self.misshapen.append(Misshapen(("properties",), owner, "object"))
        value = owner.get(SCHEMES, MISSING) if isinstance(owner, dict) else MISSING
        self.schemes_value = value
        self.schemes = schemes_of(value, self.schemes_path)
        self.schemes_by_name = {scheme.name: scheme for scheme in self.schemes}
        self._names = value if isinstance(value, dict) else ()
        if value is not MISSING:
            self.fields += 1
            for scheme in self.schemes:
                if REFS in scheme.value:
                    self.fields += 1

    def _assets(self, kind: HolderKind, where: str, assets: object, is_official: bool) -> None:
        if not isinstance(assets, dict):
            if is_official:
                self.misshapen.append(Misshapen((where,), assets, "object"))
            return
        found: list[_Entry] = []
        alternates: list[_Entry] = []
        for name, asset in assets.items():
            if isinstance(asset, dict):
                found.append((name, (where, name), asset))
                if "alternate" in asset:
                    inner = asset["alternate"]
                    self._alternates((where, name, "alternate"), inner, is_official, alternates)
            elif is_official:
                self.misshapen.append(Misshapen((where, name), asset, "object"))
        self._hold(kind, found, is_official)
        self._hold(HolderKind.ALTERNATE, alternates, is_official)

    def _alternates(
        self, path: Path, alternates: object, is_official: bool, found: list[_Entry]
    ) -> None:
        if isinstance(alternates, dict):
            for name, alternate in alternates.items():
                # (whatever an `auth:` member of the map itself is, it is no alternate)
                if isinstance(alternate, dict) and name[:5] != PREFIX:
                    found.append((name, (*path, name), alternate))
        elif is_official:
            self.misshapen.append(Misshapen(path, alternates, "object"))

    def _links(self, links: object) -> None:
        if not isinstance(links, list):
            self.misshapen.append(Misshapen(("links",), links, "array"))
            return
        found: list[_Entry] = []
        for index, link in enumerate(links):
            if isinstance(link, dict):
                found.append((str(index), ("links", index), link))
            else:
                self.misshapen.append(Misshapen(("links", index), link, "object"))
        self._hold(HolderKind.LINK, found, True)

    def _hold(self, kind: HolderKind, entries: list[_Entry], is_official: bool) -> None:
        # The inside of this loop runs for every holder of every document: it is written to be
        # quick, with what it needs at hand.
        hold = self.holders.append
        without = self._open
        fields = 0
        known: object = MISSING
        gated: _Group | None = None
        for name, path, value in entries:
            refs = value.get(REFS, MISSING)
            href = value.get("href")
            if not isinstance(href, str):
                href = None
            holder = Holder(kind, name, path, value, refs, href, is_official)
            hold(holder)
            group = without
            if refs is not MISSING:
                fields += 1
                # Mostly they are those of the one before.
                if refs != known:
                    known, gated = refs, self._group(refs)
                if gated is None:
                    self.malformed.append(holder)
                else:
                    group = gated
                    group.holders.append(holder)
            if href is None:
                continue
            # Mostly it is the place of the one before.
            if "?" in href or "#" in href or not href.startswith(group.place):
                self._enter(group, href)
            group.reached.append(holder)
        self.fields += fields

    def _group(self, refs: object) -> _Group | None:
        """The holders of a well-formed list of references."""
        if not isinstance(refs, list):
            return None
        names = tuple(refs)
        try:
            group = self._groups.get(names)
        except TypeError:  # (something in it cannot be hashed, so it is no text)
            return None
        if group is None and is_string_list(refs):
            references = self._resolved(names)
            group = self._groups[names] = _Group(references, references.holders)
            self.references.append(references)
        return group

    def _enter(self, group: _Group, href: str) -> None:
        """Takes the access at the place of this href for the one that holders come from."""
        place = _place(href)
        access = group.accesses.get(place)
        if access is None:
            access = group.accesses[place] = AccessGroup(href, group.references, [])
            self.accesses.append(access)
        # Only what ends where a path begins is a beginning that others can have, too.
        group.place = place if place[-1:] == "/" and place != href else NO_PLACE
        group.reached = access.holders

    def _resolved(self, names: tuple[str, ...]) -> References:
        schemes = []
        inherited = []
        missing = []
        for name in dict.fromkeys(names):
            if (own := self.schemes_by_name.get(name)) is not None:
                schemes.append(own)
            elif (above := self.inherited.get(name)) is not None:
                schemes.append(above)
                inherited.append(name)
            elif name not in self._names:  # (one that is no object is bad enough)
                missing.append(name)
        return References(names, tuple(schemes), tuple(inherited), tuple(missing), [])


def _place(href: str) -> str:
    """The part that hrefs of one access share: all before the path, or everything."""
    if "?" in href or "#" in href:
        return href
    colon = href.find("://")
    if colon < 0:
        return href if ":" in href or href[:2] == "//" else ""
    slash = href.find("/", colon + 3)
    return href if slash < 0 else href[: slash + 1]
