"""The contents of the page for people, as plain values; the template only lays them out."""

from collections.abc import Sequence
from dataclasses import dataclass

from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.positions import TextPosition
from tollgate.serve.catalog_auth.page.excerpts import Excerpt, excerpt_of
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.findings import Finding, Severity
from tollgate.serve.catalog_auth.rules.rule import Profile
from tollgate.serve.catalog_auth.verdict.formats.text import counted, word_of
from tollgate.serve.catalog_auth.verdict.judgement import Judged
from tollgate.serve.catalog_auth.verdict.report import Verdict

# What a page can show and still be looked through.
FINDINGS_MAX = 200
TARGETS_MAX = 30


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """`repair_name`: what the button for its repair sends; None without a mechanical one.
    `suggestions`: title and name of each repair that a person has to choose."""

    severity: str
    rule: str
    name: str
    pointer: str
    message: str
    why: str
    repair: str
    place: Excerpt | None
    repair_name: str | None
    suggestions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ShownRecipe:
    """Something to copy."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class ShownAlternative:
    """One way to a target."""

    title: str
    notes: tuple[str, ...]
    recipes: tuple[ShownRecipe, ...]


@dataclass(frozen=True, slots=True)
class ShownTarget:
    """Something to get at; `told` says in a few words how."""

    name: str
    href: str
    told: str
    ways: tuple[ShownAlternative, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShownResult:
    """The outcome of a check."""

    title: str
    is_valid: bool
    told: str
    is_schema_valid: bool | None
    schema_told: str
    findings: tuple[ShownFinding, ...]
    left_out: tuple[str, ...]
    has_repairs: bool
    targets: tuple[ShownTarget, ...]
    targets_left_out: str


@dataclass(frozen=True, slots=True)
class ShownProblem:
    """The reason why there is no result."""

    message: str
    place: Excerpt | None = None


@dataclass(frozen=True, slots=True)
class View:
    """The page. `text`: what stands in the field; `repaired`: what was done to it."""

    text: str = ""
    profile: str = Profile.DEFAULT.value
    profiles: tuple[str, ...] = tuple(profile.value for profile in Profile)
    problem: ShownProblem | None = None
    result: ShownResult | None = None
    repaired: str = ""


def problem_at(message: str, text: str, line: int, column: int) -> ShownProblem:
    """A problem with its place in the text."""
    return ShownProblem(message, excerpt_of(text.split("\n"), TextPosition(line, column)))


def repair_name(finding: Finding, number: int | None = None) -> str:
    """The name of a repair between the page and here, or of a suggestion by its number: it means
    the same, or nothing, in a document that was changed since."""
    own = "" if number is None else f"{number} "
    return f"{own}{finding.rule} {pointer(finding.path)}"


def result_of(
    judged: Judged, text: str, targets: Sequence[ShownTarget], targets_in_all: int
) -> ShownResult:
    """The outcome, as it is shown."""
    verdict = judged.verdict
    lines = text.split("\n")
    worst_first = sorted(verdict.findings, key=lambda finding: -finding.severity.rank)
    shown = tuple(_finding(judged, finding, lines) for finding in worst_first[:FINDINGS_MAX])
    return ShownResult(
        title="Valid" if verdict.valid else "Not valid",
        is_valid=verdict.valid,
        told=_counted(verdict),
        is_schema_valid=verdict.schema_valid,
        schema_told=_schema_told(verdict),
        findings=shown,
        left_out=_cut(verdict, len(shown)),
        has_repairs=any(finding.fix for finding in verdict.findings),
        targets=tuple(targets),
        targets_left_out=_left_out(targets_in_all - len(targets), "asset or link"),
    )


def _finding(judged: Judged, finding: Finding, lines: list[str]) -> ShownFinding:
    rule = RULES[finding.rule]
    place = judged.places.get(finding.path)
    return ShownFinding(
        severity="note" if finding.severity is Severity.INFO else finding.severity.value,
        rule=rule.id,
        name=rule.name,
        pointer=pointer(finding.path),
        message=capitalised(finding.message),
        why=rule.why,
        repair=rule.repair,
        place=None if place is None else excerpt_of(lines, place),
        repair_name=repair_name(finding) if finding.fix else None,
        suggestions=tuple(
            (each.title, repair_name(finding, number))
            for number, each in enumerate(finding.suggestions)
        ),
    )


def capitalised(text: str) -> str:
    """The text as a sentence begins: an address or a name of the document stays as it is."""
    first, _, _ = text.partition(" ")
    is_word = first.isalpha() and first.islower()
    return f"{text[:1].upper()}{text[1:]}" if is_word else text


def _counted(verdict: Verdict) -> str:
    counts = [(severity, verdict.counts.get(severity, 0)) for severity in reversed(Severity)]
    said = [counted(count, word_of(severity)) for severity, count in counts if count]
    return ", ".join(said) if said else "Nothing to be said against it."


def _schema_told(verdict: Verdict) -> str:
    versions = " and ".join(f"v{version}" for version in verdict.declared_versions)
    if verdict.schema_valid is None:
        return "It declares no version of the extension that exists."
    told = "takes it" if verdict.schema_valid else "refuses it"
    return f"The official schema of {versions or 'its version'} {told}."


def _cut(verdict: Verdict, shown: int) -> tuple[str, ...]:
    """Tells what is not on the page: findings, and what the bounds on work have cut."""
    told = [f"Left out: {each}." for each in verdict.left_out]
    more = _left_out(sum(verdict.counts.values()) - shown, "finding")
    return (more, *told) if more else tuple(told)


def _left_out(count: int, what: str) -> str:
    return f"{count:,} more ({what}) are not shown here." if count > 0 else ""
