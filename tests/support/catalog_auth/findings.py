"""What one rule says of a document, for the tests of rules."""

from collections.abc import Mapping
from dataclasses import dataclass

from tollgate.serve.catalog_auth.document.document import NO_ANCESTORS, Ancestors
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.rules.findings import Finding, Fix, Severity
from tollgate.serve.catalog_auth.rules.rule import Profile
from tollgate.serve.catalog_auth.verdict.report import Options, validate

SCHEME = "/properties/auth:schemes/access"
HREF = "/assets/data/href"


@dataclass(frozen=True, slots=True)
class Row:
    """A document, and the one finding of `rule` in it: where, how bad, and words of its message."""

    rule: str
    document: Mapping[str, object]
    pointer: str
    severity: Severity
    says: str

    def __str__(self) -> str:
        return f"{self.rule}{self.pointer}"


def found(
    rule: str,
    document: object,
    profile: Profile = Profile.DEFAULT,
    ancestors: Ancestors = NO_ANCESTORS,
) -> list[Finding]:
    """The findings of one rule."""
    verdict = validate(document, Options(profile), ancestors)  # type: ignore[arg-type]
    return [finding for finding in verdict.findings if finding.rule == rule]


def repair_of(finding: Finding) -> Fix | None:
    """The steps of a finding's repair: the mechanical one, or the last that is suggested."""
    if finding.fix is None and finding.suggestions:
        return finding.suggestions[-1].steps
    return finding.fix


def places(rule: str, document: object) -> list[str]:
    """Where one rule finds something."""
    return [pointer(finding.path) for finding in found(rule, document)]


def check(row: Row) -> None:
    """The row's rule says what the row says, once."""
    (finding,) = found(row.rule, row.document)
    assert pointer(finding.path) == row.pointer
    assert finding.severity is row.severity
    assert row.says in finding.message
