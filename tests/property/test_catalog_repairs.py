"""Repairs and migrations, whatever the document: each does what it says and spoils nothing."""

import copy
import json
from collections import Counter
from random import Random
from typing import Any

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from serve.catalog_auth.catalogue import RULES
from serve.catalog_auth.fixing import fix
from serve.catalog_auth.judging import patch_of
from serve.catalog_auth.locating import locate
from serve.catalog_auth.migrating import Migrated, migrate
from serve.catalog_auth.patching import patched
from serve.catalog_auth.report import Verdict, validate
from serve.catalog_auth.schema_validity.official import is_schema_valid
from serve.catalog_auth.versions import Version
from tests.catalog_mutations import mutated

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


def tally(verdict: Verdict) -> Counter[tuple[str, str]]:
    return Counter((finding.rule, finding.message) for finding in verdict.findings)


@given(documents())
def test_a_fix_ends_its_finding_and_keeps_what_is_valid(document: Any) -> None:
    before = validate(document)
    for finding in before.findings:
        if finding.fix:
            after = patched(document, finding.fix)
            verdict = validate(after)
            said = (finding.rule, finding.message)
            assert tally(verdict)[said] < tally(before)[said]
            assert before.schema_valid is not True or verdict.schema_valid is not False
            assert jsonpatch.apply_patch(document, patch_of(finding.fix)) == after


@given(documents())
def test_repairing_comes_to_an_end_and_keeps_what_is_valid(document: Any) -> None:
    before = copy.deepcopy(document)
    fixed = fix(document)
    assert document == before
    assert fixed.is_complete
    assert fix(fixed.document).patch == ()
    assert not any(finding.fix for finding in fixed.verdict.findings)
    assert validate(document).schema_valid is not True or fixed.verdict.schema_valid
    assert jsonpatch.apply_patch(document, patch_of(fixed.patch)) == fixed.document


@given(documents(), st.sampled_from(Version))
def test_migrating_keeps_what_is_valid_or_says_why_not(document: Any, to: Version) -> None:
    before = copy.deepcopy(document)
    answer = migrate(document, to)
    assert document == before
    if not isinstance(answer, Migrated):
        assert answer.obstacles
        return
    assert answer.verdict.declared_versions in ((to,), ())
    assert answer.verdict == validate(answer.document)
    assert jsonpatch.apply_patch(document, patch_of(answer.patch)) == answer.document
    was_valid = is_schema_valid(locate(document))
    assert was_valid is not True or answer.verdict.schema_valid is True
    if was_valid and isinstance(back := migrate(answer.document, to), Migrated):
        assert back.patch == ()
