"""Finds the authentication fields of a document in one walk over the official places.

Members with the prefix `auth:` in any other place can be anywhere, so that looking for
them means to visit everything. Nearly every document has none, and the bytes prove it: when the
text `"auth:` occurs exactly as often as official places hold such a member, there is no other one.
(A name could hide from that count behind an escape, if one of its letters were written as one.)
"""

import re
from collections.abc import Mapping

from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    NO_ANCESTORS,
    REFS,
    SCHEMES,
    Ancestors,
    Document,
    Scheme,
)
from tollgate.serve.catalog_auth.document.misplaced_fields import find_misplaced
from tollgate.serve.catalog_auth.document.versions import VERSIONS_BY_IDENTIFIER, Version, is_meant
from tollgate.serve.catalog_auth.document.walk import Walk, schemes_of

# A letter of `auth:` as an escape.
_HIDDEN = re.compile(rb"\\u00(?:61|75|74|68|3[aA])")


def locate(
    root: object,
    ancestors: Ancestors = NO_ANCESTORS,
    version: Version | None = None,
    raw: bytes | None = None,
) -> Document:
    """The document as the rules look at it; what is no object is an empty one that is misshapen at
    its root. `version` is the caller's, if there is one; `raw`, the bytes of `root` and nothing
    else, saves the search for misplaced ones."""
    walk = Walk(root, _inherited(ancestors))
    return _document(walk, ancestors, version, _is_exact(raw, walk.fields))


def locate_features(
    collection: Document, version: Version | None = None, raw: bytes | None = None
) -> tuple[list[Document], bool]:
    """The features of a collection of items, each as a document; and whether all `auth:` members
    of the whole text, which is `raw`, are in their places."""
    features = collection.root.get("features")
    if not isinstance(features, list):
        return [], False
    inherited = _inherited(collection.ancestors)
    walks = [Walk(feature, inherited) for feature in features]
    fields = sum(walk.fields for walk in walks) + (collection.schemes_value is not MISSING)
    fields += sum(REFS in scheme.value for scheme in collection.schemes)
    is_exact = not collection.misplaced and _is_exact(raw, fields)
    above = collection.ancestors
    return [_document(walk, above, version, is_exact) for walk in walks], is_exact


def _is_exact(raw: bytes | None, fields: int) -> bool:
    """Tells whether there are as many `auth:` members in a text as were found in their places."""
    return (
        raw is not None
        and raw.count(b'"auth:') == fields
        # (the first question is quicker to answer, and mostly enough)
        and (b"\\" not in raw or _HIDDEN.search(raw) is None)
    )


def _document(
    walk: Walk, ancestors: Ancestors, version: Version | None, is_exact: bool
) -> Document:
    root = walk.root
    declared = _declared(root.get("stac_extensions"))
    versions = tuple(
        VERSIONS_BY_IDENTIFIER[text] for text in declared if text in VERSIONS_BY_IDENTIFIER
    )
    if version is None and versions:
        version = max(versions, key=_rank)
    return Document(
        root,
        walk.kind,
        declared,
        versions,
        version,
        walk.schemes_path,
        walk.schemes_value,
        walk.schemes,
        walk.schemes_by_name,
        walk.inherited,
        walk.holders,
        walk.references,
        walk.accesses,
        walk.malformed,
        walk.misshapen,
        () if is_exact else find_misplaced(root, walk.kind),
        is_exact,
        ancestors,
    )


def _rank(version: Version) -> int:
    return version.rank


def _declared(extensions: object) -> tuple[str, ...]:
    if isinstance(extensions, str):  # (somebody forgot the brackets, and is told so)
        extensions = [extensions]
    if not isinstance(extensions, list):
        return ()
    return tuple(
        text
        for text in extensions
        if isinstance(text, str) and (text in VERSIONS_BY_IDENTIFIER or is_meant(text))
    )


def _inherited(ancestors: Ancestors) -> Mapping[str, Scheme]:
    """The schemes of the ancestors by name; the collection is nearer than the catalog."""
    found: dict[str, Scheme] = {}
    if ancestors is NO_ANCESTORS:
        return found
    for root in (ancestors.catalog, ancestors.collection):
        value = root.get(SCHEMES) if root is not None else None
        for scheme in schemes_of(value, (SCHEMES,)):
            found[scheme.name] = scheme
    return found
