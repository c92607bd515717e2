"""The laws of repairs and migrations, for whatever document."""

import copy
import json
from collections import Counter
from random import Random
from typing import Any

import jsonpatch

from tests.support.catalog_auth.spaced_texts import change, spaced
from tollgate.serve.catalog_auth.document.fields import FIELDS_BY_TYPE
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.versions import Version, same_identifier
from tollgate.serve.catalog_auth.repair.fixes import SuggestionChoice, fix
from tollgate.serve.catalog_auth.repair.json_patch import patched, value_at
from tollgate.serve.catalog_auth.repair.migration import Migrated, migrate
from tollgate.serve.catalog_auth.repair.text_patch import patched_text
from tollgate.serve.catalog_auth.schema_validity.official import is_schema_valid
from tollgate.serve.catalog_auth.verdict.judgement import patch_of
from tollgate.serve.catalog_auth.verdict.report import Verdict, validate


def check_fixes(document: Any) -> None:
    """Each fix ends its finding, and what is valid stays so."""
    before = validate(document)
    for finding in before.findings:
        if finding.fix:
            after = patched(document, finding.fix)
            verdict = validate(after)
            said = (finding.rule, finding.message)
            assert _tally(verdict)[said] < _tally(before)[said], finding
            assert before.schema_valid is not True or verdict.schema_valid is not False, finding
            assert jsonpatch.apply_patch(document, patch_of(finding.fix)) == after, finding


def _tally(verdict: Verdict) -> Counter[tuple[str, str]]:
    return Counter((finding.rule, finding.message) for finding in verdict.findings)


def check_suggestions(document: Any) -> None:
    """Each suggestion fits the document, and can be chosen."""
    for finding in validate(document).findings:
        assert finding.fix is None or not finding.suggestions, finding
        for number, suggestion in enumerate(finding.suggestions):
            after = patched(document, suggestion.steps)
            assert jsonpatch.apply_patch(document, patch_of(suggestion.steps)) == after, finding
            choice = SuggestionChoice(finding.rule, pointer(finding.path), number)
            made = fix(document, rules=frozenset(), choices=frozenset({choice}))
            assert made.document == after or made.unmet == (choice,), finding


def check_text(document: Any, random: Random) -> None:
    """Each step changes one place of the text; of a list, or an object, no more than an entry."""
    for finding in validate(document).findings:
        for steps in (finding.fix or (), *(each.steps for each in finding.suggestions)):
            text = spaced(document, random)
            for step in steps:
                before = json.loads(text)
                after = patched_text(text, (step,))
                gone, come = change(text, after)
                text = after
                if step.op == "replace":
                    old = value_at(before, step.path)
                    is_container = isinstance(old, dict | list)
                    assert not is_container or type(old) is not type(step.value), finding
                elif step.op == "remove":
                    assert come == "", finding
                elif step.op == "add":
                    owner: Any = value_at(before, step.path[:-1])
                    # (to add a member that is there replaces it: RFC 6902, 4.1)
                    is_new = isinstance(owner, list) or step.path[-1] not in owner
                    is_first = not owner and gone.isspace()
                    assert not is_new or gone == "" or is_first, finding


def check_nothing_is_lost(before: Any, after: Any) -> None:
    """Every value and name of the document is in the repaired one: one that stood there twice
    may stand there once, and the letter case of a keyword, or the spelling of the extension's
    address, may have changed."""
    # (an object that was empty may have got something that was in the wrong place)
    lost = contents(before).keys() - contents(after).keys() - EMPTY
    assert not lost, lost


def check_nothing_is_guessed(before: Any, after: Any) -> None:
    """Nothing is in the repaired document that was not there, no empty object or list either,
    except the declaration of the extension (E01), the type of a scheme that has fields of one type
    only (S04), and an empty meaning for each scope of a list (S11)."""
    added = contents(after) - contents(before)
    guessed = added.keys() - ADDED
    assert not guessed, guessed


def contents(value: Any) -> Counter[str]:
    """The values and names in a document, and how often each is there."""
    found: Counter[str] = Counter()
    rest = [value]
    while rest:
        value = rest.pop()
        if value in ({}, []):
            found[f"empty {type(value).__name__}"] += 1
        elif isinstance(value, dict):
            found.update(map(normal, value))
            rest += value.values()
        elif isinstance(value, list):
            rest += value
        else:
            found[normal(value)] += 1
    return found


def normal(value: object) -> str:
    if isinstance(value, str) and (version := same_identifier(value)) is not None:
        return version.identifier
    # (`required: "True"` is the same as `required: true`)
    return value.strip().lower() if isinstance(value, str) else json.dumps(value)


EMPTY = {"empty dict", "empty list"}
DECLARED = {"stac_extensions", *(version.identifier for version in Version)}
TYPED = {"type", *map(normal, FIELDS_BY_TYPE)}
ADDED = {*DECLARED, *TYPED, ""}


def check_repair(document: Any) -> None:
    """All fixes together come to an end, lose nothing, and what is valid stays so."""
    before = copy.deepcopy(document)
    fixed = fix(document)
    assert document == before
    assert fixed.is_complete
    check_nothing_is_lost(before, fixed.document)
    check_nothing_is_guessed(before, fixed.document)
    assert fix(fixed.document).patch == ()
    assert not any(finding.fix for finding in fixed.verdict.findings)
    assert validate(document).schema_valid is not True or fixed.verdict.schema_valid
    assert jsonpatch.apply_patch(document, patch_of(fixed.patch)) == fixed.document


def check_migration(document: Any, to: Version) -> None:
    """What is valid in its version is valid in the new one, or the reasons are given."""
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
    if was_valid and isinstance(again := migrate(answer.document, to), Migrated):
        assert again.patch == ()
