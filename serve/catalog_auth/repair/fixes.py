"""Repairs documents: applies the fixes of findings until there are none left (part A, POST /fix).

A fix is mechanical: it loses no value and guesses nothing. A suggestion is applied only where a
person has chosen it, once.

    round:  validate; take the fixes in the order of their findings, but none that comes near what
            another one of this round has changed; apply them
    end:    a round has nothing to apply

Two rules that undo each other's work would bring back a document that was there before: that ends
it as well, and there are at most so many rounds.
"""

from dataclasses import dataclass, replace

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.document.document import NO_ANCESTORS, Ancestors
from tollgate.serve.catalog_auth.document.paths import Path, pointer
from tollgate.serve.catalog_auth.repair.json_patch import Places, patched
from tollgate.serve.catalog_auth.rules.findings import Finding, Fix, Operation, length_of_steps
from tollgate.serve.catalog_auth.verdict.report import (
    DEFAULT_OPTIONS,
    Options,
    Verdict,
    added_bytes,
    validate,
)

# Most documents need two: one repairs, one sees that nothing is left.
ROUNDS_MAX = 32
# Repairs that say more than this in all are not complete: what is left is told by the verdict.
PATCH_BYTES_MAX = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Repair:
    """A finding whose fix was applied."""

    rule: str
    path: Path


@dataclass(frozen=True, slots=True)
class SuggestionChoice:
    """A suggestion that a person picked: number 0 and up, of the rule's finding at `path`."""

    rule: str
    path: str
    number: int


@dataclass(frozen=True, slots=True)
class Fixed:
    """A repaired document. `patch` makes it of the one that came in; `verdict` is on the result.
    `is_complete` is false when there was more to repair than ROUNDS_MAX or PATCH_BYTES_MAX allow.
    `unmet` are choices that no finding had, or that come near another one."""

    document: JsonValue
    patch: Fix
    repairs: tuple[Repair, ...]
    verdict: Verdict
    is_complete: bool
    unmet: tuple[SuggestionChoice, ...] = ()

    def then(self, after: "Fixed") -> "Fixed":
        """These repairs, and those that were made of the result, as one."""
        return replace(after, patch=self.patch + after.patch, repairs=self.repairs + after.repairs)


def fix(
    root: JsonValue,
    options: Options = DEFAULT_OPTIONS,
    ancestors: Ancestors = NO_ANCESTORS,
    rules: frozenset[str] | None = None,
    choices: frozenset[SuggestionChoice] = frozenset(),
) -> Fixed:
    """The document with every mechanical repair made, of these rules (None: of all that run), and
    with the suggestions that were chosen.

    What is repaired follows from the options: a rule that is off repairs nothing.
    """
    patch: list[Operation] = []
    repairs: list[Repair] = []
    earlier: list[tuple[list[tuple[Finding, Fix]], JsonValue]] = []
    verdict = validate(root, options, ancestors)
    # (choices are of the findings of the document as it came in: later on places have moved)
    chosen, met = _chosen(verdict, rules, choices)
    left = PATCH_BYTES_MAX
    # (the same document has the same repairs: those are compared first, and mostly differ)
    while chosen and left > 0 and len(earlier) < ROUNDS_MAX and (chosen, root) not in earlier:
        earlier.append((chosen, root))
        left -= sum(added_bytes(steps) + length_of_steps(steps) for _, steps in chosen)
        made = [step for _, steps in chosen for step in steps]
        root = patched(root, made)
        patch += made
        repairs += [Repair(finding.rule, finding.path) for finding, _ in chosen]
        verdict = validate(root, options, ancestors)
        chosen, _ = _chosen(verdict, rules, frozenset())
    return Fixed(root, tuple(patch), tuple(repairs), verdict, not chosen, tuple(choices - met))


def _chosen(
    verdict: Verdict, rules: frozenset[str] | None, choices: frozenset[SuggestionChoice]
) -> tuple[list[tuple[Finding, Fix]], frozenset[SuggestionChoice]]:
    """The repairs to make next, those of the choices first, and the choices that are among them:
    none comes near what another one changes."""
    chosen: list[tuple[Finding, Fix]] = []
    met: set[SuggestionChoice] = set()
    places = Places()
    if choices:
        by_place = {(each.rule, each.path): each for each in choices}
        for finding in verdict.findings:
            choice = by_place.get((finding.rule, pointer(finding.path)))
            if choice is None or not 0 <= choice.number < len(finding.suggestions):
                continue
            steps = finding.suggestions[choice.number].steps
            if not places.are_near(steps):
                places.add(steps)
                chosen.append((finding, steps))
                met.add(choice)
    for finding in verdict.findings:
        fix_steps = finding.fix if rules is None or finding.rule in rules else None
        if fix_steps and not places.are_near(fix_steps):
            places.add(fix_steps)
            chosen.append((finding, fix_steps))
    return chosen, frozenset(met)
