"""What holds of the verdict on any document whatever."""

from collections import Counter
from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.catalog_auth.mutations import EXCHANGE, FIELDS, FLOW_KEYS, OLD, TYPES, mutated
from tollgate.serve.catalog_auth.document.document import Ancestors, Kind
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.positions import positions
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import Profile
from tollgate.serve.catalog_auth.verdict.report import Options, Verdict, validate, validate_raw

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)))
    | st.sampled_from([*TYPES, *(version.identifier for version in Version)])
)
NAMES = st.sampled_from([*FIELDS, *FLOW_KEYS]) | st.text(
    st.characters(exclude_categories=("Cs",)), max_size=5
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=30,
)
EXAMPLES = [msgspec.json.encode(rule.example) for rule in RULES.values()]
EXAMPLES += [msgspec.json.encode(document) for document in (*OLD, EXCHANGE)]


@st.composite
def documents(draw: st.DrawFn) -> Any:
    """A rule's example, changed in a few places."""
    document = msgspec.json.decode(draw(st.sampled_from(EXAMPLES)))
    random = Random(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(0, 4))):
        document = mutated(document, random)
    if isinstance(document, dict) and draw(st.booleans()):
        document["stac_extensions"] = [draw(st.sampled_from(Version)).identifier]
    return document


ANY = JSON | documents()


def errors(verdict: Verdict) -> Counter[tuple[str, str]]:
    return Counter(
        (finding.rule, pointer(finding.path))
        for finding in verdict.findings
        if finding.severity is Severity.ERROR
    )


@given(ANY, st.sampled_from(Profile), st.sampled_from([None, *Version]), ANY)
def test_any_json_has_a_verdict(
    document: Any, profile: Profile, version: Version | None, above: Any
) -> None:
    ancestors = Ancestors(above) if isinstance(above, dict) else Ancestors()
    verdict = validate(document, Options(profile, version), ancestors)
    assert sum(verdict.counts.values()) == len(verdict.findings)
    assert verdict.valid is (verdict.counts[Severity.ERROR] == 0)
    assert all(finding.rule in RULES and finding.message for finding in verdict.findings)


@given(ANY, st.sampled_from(Profile))
def test_the_text_changes_nothing_when_nothing_is_repeated(document: Any, profile: Profile) -> None:
    for raw in (msgspec.json.encode(document), _indented(document)):
        assert validate_raw(raw, Options(profile)) == validate(document, Options(profile))


def _indented(document: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


@given(documents())
def test_every_finding_has_a_place_in_the_text(document: Any) -> None:
    raw = _indented(document)
    paths = [finding.path for finding in validate_raw(raw).findings]
    lines = raw.decode().split("\n")
    for place in positions(raw, paths).values():
        assert 1 <= place.line <= len(lines)
        assert 1 <= place.column <= len(lines[place.line - 1])


@given(documents(), st.sampled_from([Version.V1_1_0, Version.V1_2_0]))
@settings(max_examples=3 * settings.default.max_examples)
def test_whatever_the_official_schema_rejects_is_explained(document: Any, version: Version) -> None:
    """The profile `schema` has an error wherever the schema has one (it has others besides)."""
    if not isinstance(document, dict) or locate(document).kind is Kind.ITEM_COLLECTION:
        return
    document["stac_extensions"] = [version.identifier]
    for profile in (Profile.SCHEMA, Profile.STRICT):
        verdict = validate(document, Options(profile))
        assert verdict.schema_valid or not verdict.valid, verdict


@given(ANY)
def test_strictness_adds_errors_and_takes_none_away(document: Any) -> None:
    usual = errors(validate(document))
    for profile in (Profile.STRICT, Profile.CEOS):
        assert usual <= errors(validate(document, Options(profile)))


@given(ANY)
def test_fearing_less_makes_more_valid(document: Any) -> None:
    answers = [validate(document, Options(fail_on=severity)).valid for severity in Severity]
    assert answers == sorted(answers)


@given(documents(), st.sampled_from(list(RULES)))
def test_a_rule_that_is_off_is_not_heard_and_changes_no_other(document: Any, rule: str) -> None:
    usual = validate(document).findings
    without = validate(document, Options(severities={rule: None})).findings
    assert without == tuple(finding for finding in usual if finding.rule != rule)


# Rules whose example has their finding by itself, whatever version it declares.
BROKEN_BY_EXAMPLE = [
    name
    for name, rule in RULES.items()
    if rule.since is None and name in {finding.rule for finding in validate(rule.example).findings}
]


@given(documents(), st.sampled_from(BROKEN_BY_EXAMPLE), st.sampled_from(Severity))
def test_a_rule_is_as_bad_as_the_caller_says(document: Any, rule: str, severity: Severity) -> None:
    options = Options(severities={rule: severity})
    told = [f.severity for f in validate(RULES[rule].example, options).findings if f.rule == rule]
    assert told, "its example breaks it"
    told += [f.severity for f in validate(document, options).findings if f.rule == rule]
    assert set(told) == {severity}
