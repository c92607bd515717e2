"""Repairing: the fixes of findings, applied until there are none left (part A, POST /fix).

    round:  validate; take the fixes in the order of their findings, but none that comes near what
            another one of this round has changed; apply them
    end:    a round has nothing to apply

Two rules that undo each other's work would bring back a document that was there before: that ends
it as well, and there are at most so many rounds.
"""

from dataclasses import dataclass

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.document.document import NO_ANCESTORS, Ancestors
from tollgate.serve.catalog_auth.repair.json_patch import Places, patched
from tollgate.serve.catalog_auth.rules.findings import Finding, Fix, Operation, Path
from tollgate.serve.catalog_auth.verdict.report import DEFAULT_OPTIONS, Options, Verdict, validate

# Most documents need two: one repairs, one sees that nothing is left.
ROUNDS_MAX = 32


@dataclass(frozen=True, slots=True)
class Repair:
    """A finding whose fix was applied."""

    rule: str
    path: Path


@dataclass(frozen=True, slots=True)
class Fixed:
    """A repaired document. `patch` makes it of the one that came in; `verdict` is on the result.
    `is_complete` is false when there was more to repair than the rounds allow."""

    document: JsonValue
    patch: Fix
    repairs: tuple[Repair, ...]
    verdict: Verdict
    is_complete: bool


def fix(
    root: JsonValue,
    options: Options = DEFAULT_OPTIONS,
    ancestors: Ancestors = NO_ANCESTORS,
    rules: frozenset[str] | None = None,
) -> Fixed:
    """The document with every mechanical repair made, of these rules (None: of all that run).

    What is repaired follows from the options: a rule that is off repairs nothing.
    """
    patch: list[Operation] = []
    repairs: list[Repair] = []
    earlier: list[JsonValue] = []
    verdict = validate(root, options, ancestors)
    chosen = _chosen(verdict, rules)
    while chosen and len(earlier) < ROUNDS_MAX and root not in earlier:
        earlier.append(root)
        for finding in chosen:
            steps = finding.fix or ()
            root = patched(root, steps)
            patch += steps
            repairs.append(Repair(finding.rule, finding.path))
        verdict = validate(root, options, ancestors)
        chosen = _chosen(verdict, rules)
    return Fixed(root, tuple(patch), tuple(repairs), verdict, is_complete=not chosen)


def _chosen(verdict: Verdict, rules: frozenset[str] | None) -> list[Finding]:
    """The findings to repair next: none comes near what another one changes."""
    chosen = []
    places = Places()
    for finding in verdict.findings:
        steps = finding.fix
        is_wanted = rules is None or finding.rule in rules
        if steps and is_wanted and not places.are_near(steps):
            places.add(steps)
            chosen.append(finding)
    return chosen
