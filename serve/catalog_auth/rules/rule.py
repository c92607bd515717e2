"""A rule of the catalogue, and the report that its check writes to.

A rule looks at one kind of subject. The runner hands its check every subject of that kind, and a
`FindingReport` that knows the document and the rule that runs. One check belongs to one rule;
what several rules need of a subject is computed once, in the subject.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from tollgate.serve.catalog_auth.document.document import Document
from tollgate.serve.catalog_auth.document.paths import Path, length_of
from tollgate.serve.catalog_auth.document.redaction import Redaction
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.findings import (
    Finding,
    Fix,
    Severity,
    Suggestion,
    length_of_steps,
)


class Subject(Enum):
    """The thing that a check is called with, besides the report (classes of `document`)."""

    DOCUMENT = "document"  # Document, once
    SCHEME = "scheme"  # Scheme, each that is an object, of the document itself
    FLOW = "flow"  # Flow, each that is an object, of schemes of type oauth2
    SIGNED_FLOW = "signed flow"  # Flow, the same of schemes of type signedUrl
    PARAMETER = "parameter"  # Parameter, each that is an object, of signed flows
    REFERENCES = "references"  # References, each distinct list
    ACCESS = "access"  # Access, each
    GATED_ACCESS = "gated access"  # Access, each that has references


class Profile(StrEnum):
    """A choice of the rules that run, and of how bad their findings are (part C)."""

    SCHEMA = "schema"
    DEFAULT = "default"
    STRICT = "strict"
    CEOS = "ceos"
    PORTOLAN = "portolan"


T = TypeVar("T")

# Of one document, so many findings are told, with so many characters; the rest is only counted. A
# place may be as long as the document, and a thousand findings may share it.
FINDINGS_MAX = 10_000
FINDINGS_LENGTH_MAX = 4 * 1024 * 1024
_NO_FINDINGS = dict.fromkeys(Severity, 0)
_NO_PROFILES: Mapping[Profile, Severity] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CatalogRule:
    """One rule of the catalogue.

    `types` are the scheme types it looks at (None: all), for subjects that have one. `profiles` has
    the severity where it is another than usual; a rule that is off by default runs only in those.
    `since` is the version whose text first demands it: in a document of an older one its findings
    are warnings at most. `example` is a whole document that has this finding, and `context` its
    ancestors when the rule needs them; a rule about raw text has it in `example_text` instead.
    """

    id: str
    name: str
    severity: Severity
    subject: Subject
    says: str
    why: str
    source: str
    repair: str
    check: Callable[[Any, "FindingReport"], None]
    example: Mapping[str, object]
    types: frozenset[str] | None = None
    profiles: Mapping[Profile, Severity] = field(default_factory=lambda: _NO_PROFILES)
    is_on_by_default: bool = True
    since: Version | None = None
    example_collection: Mapping[str, object] | None = None
    example_text: bytes | None = None

    def severity_in(self, profile: Profile) -> Severity | None:
        """The severity of its findings in this profile; None when it does not run."""
        if profile is Profile.SCHEMA and not self.is_in_schema_profile:
            return None
        if profile in self.profiles:
            return self.profiles[profile]
        return self.severity if self.is_on_by_default else None

    @property
    def is_in_schema_profile(self) -> bool:
        """The structure, and the identifier."""
        return self.id[0] == "S" or self.id in ("E01", "E03", "E07")


class RunningRule(NamedTuple):
    """A rule as it runs: how bad its findings are (None: nobody wants them), and whether the caller
    has said so, whatever the check thinks of the single case."""

    rule: CatalogRule
    severity: Severity | None
    is_forced: bool


class FindingReport:
    """Collects what the checks find in one document. `step` is the rule that runs."""

    __slots__ = (
        "_secrets",
        "_shared",
        "_spent",
        "counts",
        "document",
        "findings",
        "left_out",
        "length_left",
        "profile",
        "raw",
        "step",
    )

    def __init__(
        self,
        document: Document,
        profile: Profile,
        raw: bytes | None,
        length_max: int = FINDINGS_LENGTH_MAX,
    ) -> None:
        self.document = document
        self.profile = profile
        self.step: RunningRule
        # The document's own text, if there is one: no part of a larger one.
        self.raw = raw
        # The first FINDINGS_MAX, as far as `length_left` goes; `counts` has them all.
        self.length_left = length_max
        self.findings: list[Finding] = []
        self.counts = dict(_NO_FINDINGS)
        # What a bound has cut, each said once.
        self.left_out: dict[str, None] = {}
        self._secrets = Redaction()
        self._spent: dict[str, int] = {}
        self._shared: dict[Callable[[Document], object], object] = {}

    def add(
        self,
        path: Path,
        message: str,
        fix: Fix | None = None,
        severity: Severity | None = None,
        suggestions: tuple[Suggestion, ...] = (),
    ) -> None:
        """Adds a finding at `path`, from the document's root. `fix` is mechanical; what loses or
        guesses something is one of the `suggestions`. `severity` is for the case at hand, where it
        is not the rule's."""
        rule, worst, is_forced = self.step
        if worst is None:
            return
        if severity is not None and not is_forced:
            worst = severity
        if (
            worst is Severity.ERROR
            and rule.since is not None
            and self.document.version is not None
            and self.document.version.rank < rule.since.rank
        ):
            worst = Severity.WARNING
        self.counts[worst] += 1
        if len(self.findings) < FINDINGS_MAX and self.length_left > 0:
            self.length_left -= len(message) + length_of(path)
            self.length_left -= sum([length_of_steps(each.steps) for each in suggestions])
            self.length_left -= length_of_steps(fix or ())
            if self.length_left >= 0:
                self.findings.append(Finding(rule.id, worst, path, message, fix, suggestions))

    def leave_out(self, told: str) -> None:
        """Notes that a bound was reached: `told` says which, and nothing of the document, so that
        there are few of them."""
        self.left_out[told] = None

    def shared(self, compute: Callable[[Document], T]) -> T:
        """The value that `compute` makes of the document, made once for all rules that ask."""
        if compute not in self._shared:
            self._shared[compute] = compute(self.document)
        found: Any = self._shared[compute]
        return cast(T, found)

    def spend(self, amount: int, budget: int) -> bool:
        """Tells whether the rule that runs has this much of its budget for the document left."""
        spent = self._spent.get(self.step.rule.id, 0) + amount
        if spent > budget:
            return False
        self._spent[self.step.rule.id] = spent
        return True

    def hide(self, secret: str) -> None:
        """No message and no fix shows this text, of whatever rule."""
        self._secrets.add(secret)

    def finished(self) -> list[Finding]:
        """The findings, without what is hidden, in the order of their places."""
        findings = self.findings
        if self._secrets:
            findings = [self._without_secrets(finding) for finding in findings]
        return sorted(findings, key=_order)

    def _without_secrets(self, finding: Finding) -> Finding:
        fix = finding.fix
        if fix is not None and any(self._secrets.is_in(step.value) for step in fix):
            fix = None
        message = self._secrets.covered(finding.message)
        suggestions = tuple(
            Suggestion(self._secrets.covered(each.title), each.steps)
            for each in finding.suggestions
            if not any(self._secrets.is_in(step.value) for step in each.steps)
        )
        return msgspec.structs.replace(finding, message=message, fix=fix, suggestions=suggestions)


def _order(finding: Finding) -> tuple[list[str], str]:
    """(indices and names never stand beside each other, but they may be compared)"""
    steps = [step if isinstance(step, str) else f"{step:09}" for step in finding.path]
    return steps, finding.rule
