"""The one answer: does the official schema of the declared version take this document?

Formats are not asserted, as draft-07 has it by default. What a pattern means is what Python's `re`
makes of it, which is what the validators of catalogs run; a name that ends in a newline is the one
case where that differs from other implementations.
"""

from tollgate.serve.catalog_auth.document.document import Document
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.verdict.schema_validity import current, first


def is_schema_valid(document: Document, version: Version | None = None) -> bool | None:
    """Whether the official schemas of all declared versions take it; None when none is declared.

    With `version`, which the caller says: whether that version's schema would, if its identifier
    stood where the document's own does.
    """
    versions = document.versions
    if not versions:
        return None if version is None else False
    if not isinstance(document.root.get("stac_extensions"), list):
        return False
    if version is not None:
        return _takes(version, document)
    return all(_takes(declared, document) for declared in versions)


def _takes(version: Version, document: Document) -> bool:
    if version is Version.V1_0_0:
        return first.takes(document.root)
    return current.takes(document, version)
