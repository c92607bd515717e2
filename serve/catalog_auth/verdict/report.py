"""Validating: one document in, one verdict out (part A).

The verdict has two answers that are never merged: what the official schema of the declared version
says (`schema_valid`), and whether there is a finding as bad as the caller fears (`valid`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import msgspec

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.document.decoding import decode
from tollgate.serve.catalog_auth.document.document import NO_ANCESTORS, Ancestors, Document, Kind
from tollgate.serve.catalog_auth.document.locator import locate, locate_features
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.findings import (
    Finding,
    Fix,
    Severity,
    Suggestion,
    steps_below,
)
from tollgate.serve.catalog_auth.rules.rule import (
    FINDINGS_LENGTH_MAX,
    FINDINGS_MAX,
    FindingReport,
    Profile,
)
from tollgate.serve.catalog_auth.rules.runner import plan, run
from tollgate.serve.catalog_auth.schema_validity.official import is_schema_valid

# Findings on a text from anybody have so many characters, and so many times those of the text.
FINDINGS_LENGTH_FREE = 256 * 1024
FINDINGS_GROWTH_MAX = 8
# What the fixes of all features add is no more than this; findings beyond have no fix.
REPAIR_BYTES_MAX = 1024 * 1024
_REPAIRS_CUT = (
    f"of the features' repairs, those are told that add no more than {REPAIR_BYTES_MAX:,} bytes"
)
_AS_USUAL: Mapping[str, Severity | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a validation. `version` overrides what is declared; `severities` overrides single
    rules by id (None: off); a finding of `fail_on` or worse makes a document invalid. All findings
    have at most `length_max` characters."""

    profile: Profile = Profile.DEFAULT
    version: Version | None = None
    severities: Mapping[str, Severity | None] = field(default_factory=lambda: _AS_USUAL)
    fail_on: Severity = Severity.ERROR
    length_max: int = FINDINGS_LENGTH_MAX

    def for_text_of(self, size: int) -> "Options":
        """The same, with findings in proportion to a text of `size` bytes from anybody."""
        length_max = min(FINDINGS_LENGTH_MAX, FINDINGS_LENGTH_FREE + FINDINGS_GROWTH_MAX * size)
        return replace(self, length_max=length_max)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`schema_valid` is None when no version is declared: then no official schema is asked. Of an
    item collection that declares none itself, it is that of its features together.
    `declared_versions` are those that exist, as declared; `is_declared`: whether the document, or a
    feature of it, declares the extension in whatever version, existing or not. `findings` are at
    most FINDINGS_MAX, in the order of their places; `counts` has them all. `left_out` says which
    bounds have cut what, in a sentence each; mostly it is empty."""

    valid: bool
    schema_valid: bool | None
    kind: Kind
    declared_versions: tuple[Version, ...]
    is_declared: bool
    findings: tuple[Finding, ...]
    counts: Mapping[Severity, int]
    left_out: tuple[str, ...] = ()


DEFAULT_OPTIONS = Options()
_AT_LEAST = {
    feared: tuple(severity for severity in Severity if severity.rank >= feared.rank)
    for feared in Severity
}


def validate_raw(
    raw: bytes, options: Options = DEFAULT_OPTIONS, ancestors: Ancestors = NO_ANCESTORS
) -> Verdict:
    """The verdict on a JSON text.

    Raises:
        UnreadableError: it is none.
    """
    return validate(decode(raw), options, ancestors, raw)


def validate(
    root: JsonValue,
    options: Options = DEFAULT_OPTIONS,
    ancestors: Ancestors = NO_ANCESTORS,
    raw: bytes | None = None,
) -> Verdict:
    """The verdict on a decoded document, or on an item collection with all of its features.

    `raw` is the text that `root` was decoded from: repeated members show only there, and it is
    faster with it.
    """
    return verdict_on(locate(root, ancestors, options.version, raw), options, raw)


def verdict_on(
    document: Document, options: Options = DEFAULT_OPTIONS, raw: bytes | None = None
) -> Verdict:
    """The verdict on a document that was located in `raw`, for the version of the options."""
    features: list[Document] = []
    if document.kind is Kind.ITEM_COLLECTION:
        features, is_exact = locate_features(document, options.version, raw)
        document = msgspec.structs.replace(document, is_exact=is_exact)
    report = _reported(document, options, raw, options.length_max)
    findings = report.finished()
    counts = report.counts
    left_out = report.left_out
    schema_valid = is_schema_valid(document, options.version)
    if features:
        answer = _validate_features(
            features, options, findings, counts, left_out, report.length_left
        )
        if schema_valid is None:
            schema_valid = answer
    if (in_all := sum(counts.values())) > len(findings):
        left_out[f"of {in_all:,} findings, the first {len(findings):,} are told"] = None
    return Verdict(
        not any(counts[severity] for severity in _AT_LEAST[options.fail_on]),
        schema_valid,
        document.kind,
        document.versions,
        any(one.declared for one in (document, *features)),
        tuple(findings),
        counts,
        tuple(left_out),
    )


def _reported(
    document: Document,
    options: Options,
    raw: bytes | None,
    length_max: int,
) -> FindingReport:
    report = FindingReport(document, options.profile, raw, length_max)
    # (a mapping cannot be hashed, what is in it can)
    severities = frozenset(options.severities.items()) if options.severities else frozenset()
    run(plan(options.profile, severities), report)
    return report


def _validate_features(
    features: list[Document],
    options: Options,
    findings: list[Finding],
    counts: dict[Severity, int],
    left_out: dict[str, None],
    length_left: int,
) -> bool | None:
    """Adds what is found in the features. Tells whether the official schemas take all that declare
    a version, None when none does."""
    answer: bool | None = None
    left = REPAIR_BYTES_MAX
    for index, document in enumerate(features):
        report = _reported(document, options, None, length_left)
        length_left = report.length_left
        inner = report.finished()[: FINDINGS_MAX - len(findings)]
        for number, finding in enumerate(inner):
            added = added_bytes(finding.fix or ())
            left -= added
            if added and left < 0:
                inner[number] = msgspec.structs.replace(finding, fix=None)
                left_out[_REPAIRS_CUT] = None
        left_out.update(report.left_out)
        findings += [_moved(finding, ("features", index)) for finding in inner]
        for severity, count in report.counts.items():
            counts[severity] += count
        if (one := is_schema_valid(document, options.version)) is not None:
            answer = one and answer is not False
    return answer


def added_bytes(steps: Fix) -> int:
    """The size of the objects that a fix adds."""
    added = [step.value for step in steps if isinstance(step.value, dict)]
    return len(msgspec.json.encode(added)) if any(added) else 0


def _moved(finding: Finding, below: Path) -> Finding:
    """The finding of a feature, in its collection."""
    return msgspec.structs.replace(
        finding,
        path=(*below, *finding.path),
        fix=None if finding.fix is None else steps_below(below, finding.fix),
        suggestions=tuple(
            Suggestion(each.title, steps_below(below, each.steps)) for each in finding.suggestions
        ),
    )
