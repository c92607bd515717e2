"""Tells whether the official schema of the declared version takes a document.

These rules are written by hand although a library could run the official files, for two reasons.
Their verdicts: `$` in the files' patterns is Python's, which also matches before a line break at
the end (case s47 of the conformance data), and `jsonschema-rs` has Rust's. Their price: over the 72
public documents the mean is 7 µs here, on a document that is located anyway, and 48 µs there, of
292 µs for everything. Apart from such names the two agree on 22,000 mutated documents, which is
what tests/conformance/catalog_auth/test_schema_differences.py holds them to.

Formats are not asserted, as draft-07 has it by default.
"""

from tollgate.serve.catalog_auth.document.document import Document
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.schema_validity import version_1_0, version_1_1


def is_schema_valid(document: Document, version: Version | None = None) -> bool | None:
    """Tells whether the official schemas of all declared versions take it; None when none is.

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
        return version_1_0.is_valid_v1_0(document.root)
    return version_1_1.is_valid_since_v1_1(document, version)
