"""Repairs and migrations, whatever the document: each does what it says and spoils nothing."""

import json
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.catalog_auth.mutations import mutated
from tests.support.catalog_auth.repairs import (
    check_fixes,
    check_migration,
    check_repair,
    check_suggestions,
    check_text,
)
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.repair.fixes import fix
from tollgate.serve.catalog_auth.repair.text_patch import patched_text
from tollgate.serve.catalog_auth.rules.catalogue import RULES

EXAMPLES: list[Any] = [rule.example for rule in RULES.values() if rule.example]


@st.composite
def documents(draw: st.DrawFn) -> Any:
    """The example of a rule, or something like it, in any version."""
    # (through its text, so that no part of it is in two places)
    document = json.loads(json.dumps(draw(st.sampled_from(EXAMPLES))))
    version = draw(st.sampled_from([None, *Version]))
    if version is not None:
        document["stac_extensions"] = [version.identifier]
    seed = draw(st.none() | st.integers(0, 2**32))
    if seed is not None:
        document = json.loads(json.dumps(mutated(document, Random(seed))))
    return document


@given(documents())
def test_a_fix_ends_its_finding_and_keeps_what_is_valid(document: Any) -> None:
    check_fixes(document)


@given(documents())
def test_a_suggestion_fits_and_can_be_chosen(document: Any) -> None:
    check_suggestions(document)


@given(documents())
def test_a_repaired_text_has_the_repaired_document(document: Any) -> None:
    text = json.dumps(document, indent=2)
    fixed = fix(document)
    assert json.loads(patched_text(text, fixed.patch)) == fixed.document


@given(documents(), st.integers(0, 2**32))
def test_a_repair_changes_nothing_else_in_the_text(document: Any, seed: int) -> None:
    check_text(document, Random(seed))


@given(documents())
def test_repairing_comes_to_an_end_and_keeps_what_is_valid(document: Any) -> None:
    check_repair(document)


@given(documents(), st.sampled_from(Version))
def test_migrating_keeps_what_is_valid_or_says_why_not(document: Any, to: Version) -> None:
    check_migration(document, to)
