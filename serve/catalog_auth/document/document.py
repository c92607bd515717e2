"""A decoded catalog document, and where its authentication fields are (part B1).

One walk over the official places finds the schemes and everything that can hold references.
What most documents have none of is set apart there too, so that no rule has to look for it again:
fields in wrong places (`misplaced`), values of a wrong shape (`misshapen`), lists of references
that are none (`malformed`).

Two groupings keep the rules off the single holder. Holders that name the same schemes share one
`References`; holders that name the same schemes *and* are fetched from the same place share one
`AccessGroup`. A real item has forty of one and two or three of the other.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum

from msgspec import UNSET, Struct, UnsetType

from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.versions import Version

# What a holder's `refs` is when it has no such member.
MISSING: UnsetType = UNSET

SCHEMES = "auth:schemes"
REFS = "auth:refs"
PREFIX = "auth:"


class Kind(StrEnum):
    """The kinds of documents, by their `type`."""

    CATALOG = "Catalog"
    COLLECTION = "Collection"
    ITEM = "Feature"
    ITEM_COLLECTION = "FeatureCollection"
    OTHER = "other"


class HolderKind(Enum):
    """The kinds of objects that can hold `auth:refs`."""

    ASSET = "asset"
    ITEM_ASSET = "item asset"
    LINK = "link"
    ALTERNATE = "alternate"


class FieldPlace(Enum):
    """A place of a field that does not belong there."""

    ITEM_TOP = "the top level of an item"
    TOP = "the top level"
    PROPERTIES = "an item's properties"
    HOLDER = "an asset, item asset or link"
    ALTERNATE_MAP = "the map of alternates"
    ALTERNATE = "an alternate"
    SUMMARIES = "a collection's summaries"
    SCHEME = "a scheme"
    ELSEWHERE = "a place without meaning for authentication"


class Holder(Struct, frozen=True, gc=False):
    """Something with an href, or the promise of one: `path` is its own, `name` its key or index.

    `is_official` is false for the assets of a catalog, which the extension does not know.
    """

    kind: HolderKind
    name: str
    path: Path
    value: Mapping[str, object]
    refs: object
    href: str | None
    is_official: bool = True


class Scheme(Struct, frozen=True, gc=False):
    """A scheme that is an object; `type` is None when it is missing or no text.

    `path` leads through the document that defines it: for one of an ancestor, that is the ancestor.
    """

    name: str
    path: Path
    value: Mapping[str, object]
    type: str | None


class Flow(Struct, frozen=True, gc=False):
    """A flow that is an object, of a scheme of type oauth2 or signedUrl."""

    name: str
    path: Path
    value: Mapping[str, object]
    scheme: Scheme


class Parameter(Struct, frozen=True, gc=False):
    """A parameter that is an object, of a signed-URL flow."""

    name: str
    path: Path
    value: Mapping[str, object]
    flow: Flow


class References(Struct, frozen=True, gc=False):
    """The same well-formed list of references, wherever it stands.

    `schemes` are those that exist, in the order of `names`, each once; `inherited` are the names
    that only an ancestor defines, `missing` those that nobody does.
    """

    names: tuple[str, ...]
    schemes: tuple[Scheme, ...]
    inherited: tuple[str, ...]
    missing: tuple[str, ...]
    holders: list[Holder]


class AccessGroup(Struct, frozen=True, gc=False):
    """Holders that are reached alike: the same references (None: they have none, or a malformed
    list), and hrefs that are equal up to the path.

    `href` is the first holder's. All hrefs of a group have the same scheme, user, host and port; an
    href with a query or a fragment is in a group with its equals only, and so is one without `//`
    that has a colon. What is said of a group is worth one finding, at its first holder, when it is
    mere information; a warning or an error belongs at each holder.
    """

    href: str
    references: References | None
    holders: list[Holder]


class MisplacedField(Struct, frozen=True, gc=False):
    """A member with the prefix `auth:` that is not in its place; `path` ends with its name."""

    path: Path
    value: object
    place: FieldPlace


class Misshapen(Struct, frozen=True, gc=False):
    """A value on the way to the holders that is not the object or array it has to be."""

    path: Path
    value: object
    expected: str


class Ancestors(Struct, frozen=True, gc=False):
    """The documents above: an item's or collection's collection, and the catalog above that."""

    collection: Mapping[str, object] | None = None
    catalog: Mapping[str, object] | None = None


NO_ANCESTORS = Ancestors()


class Document(Struct, frozen=True, gc=False):
    """A document as the rules look at it.

    `declared` are the entries of `stac_extensions` that mean this extension, as written; `versions`
    the ones among them that exist, in that order. `version` is the one to judge by: the caller's,
    or the newest declared, or None when there is none. `schemes_path` is where `auth:schemes`
    belongs, and `schemes_value` what is there (MISSING: nothing). `is_exact`: as many `auth:`
    members were located as there are in the text; false when there is no text to count in.
    """

    root: Mapping[str, object]
    kind: Kind
    declared: tuple[str, ...]
    versions: tuple[Version, ...]
    version: Version | None
    schemes_path: Path
    schemes_value: object
    schemes: tuple[Scheme, ...]
    schemes_by_name: Mapping[str, Scheme]
    inherited: Mapping[str, Scheme]
    holders: Sequence[Holder]
    references: Sequence[References]
    accesses: Sequence[AccessGroup]
    malformed: Sequence[Holder]
    misshapen: Sequence[Misshapen]
    misplaced: Sequence[MisplacedField]
    is_exact: bool
    ancestors: Ancestors

    def scheme(self, name: str) -> Scheme | None:
        """The scheme of this name, here or in an ancestor, whoever is nearer."""
        return self.schemes_by_name.get(name) or self.inherited.get(name)

    @property
    def has_auth_fields(self) -> bool:
        """Tells whether there is any `auth:` member in this document."""
        return bool(
            self.schemes_value is not MISSING or self.misplaced or self.references or self.malformed
        )


def inputs_of(scheme: Scheme) -> tuple[str, ...]:
    """The schemes that this one names as its own input (v1.2.0); what is no text is left out."""
    refs = scheme.value.get(REFS)
    if isinstance(refs, list):
        return tuple(ref for ref in refs if isinstance(ref, str))
    return ()


def flows_of(scheme: Scheme) -> list[Flow]:
    """The flows of a scheme that are objects."""
    flows = scheme.value.get("flows")
    if not isinstance(flows, dict):
        return []
    path = (*scheme.path, "flows")
    return [
        Flow(name, (*path, name), flow, scheme)
        for name, flow in flows.items()
        if isinstance(flow, dict)
    ]


def parameters_of(flow: Flow) -> list[Parameter]:
    """The parameters of a signed-URL flow that are objects."""
    parameters = flow.value.get("parameters")
    if not isinstance(parameters, dict):
        return []
    path = (*flow.path, "parameters")
    return [
        Parameter(name, (*path, name), parameter, flow)
        for name, parameter in parameters.items()
        if isinstance(parameter, dict)
    ]
