"""Running the rules: a plan per choice of options, made once, and applied to any document."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tollgate.serve.catalog_auth.document.document import flows_of, parameters_of
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import FindingReport, Profile, RunningRule, Subject

# Plans of so many different options are remembered.
PLANS_MAX = 256


# RunningRules, each with the check of its rule at hand.
RunningRules = tuple[tuple[RunningRule, Callable[[Any, FindingReport], None]], ...]


@dataclass(frozen=True, slots=True)
class SchemePlan:
    """The rules that look at schemes of one type, and into them."""

    scheme: RunningRules
    flow: RunningRules
    signed_flow: RunningRules
    parameter: RunningRules


@dataclass(frozen=True, slots=True)
class RulePlan:
    """The rules that run, by what they look at."""

    document: RunningRules
    references: RunningRules
    access: RunningRules
    gated_access: RunningRules
    by_type: Mapping[str, SchemePlan]
    other_types: SchemePlan


@lru_cache(maxsize=PLANS_MAX)
def plan(profile: Profile, severities: frozenset[tuple[str, Severity | None]]) -> RulePlan:
    """The rules as this profile has them, with the caller's own severities (None: off)."""
    overrides = dict(severities)
    steps: list[RunningRule] = []
    for rule in RULES.values():
        severity = overrides.get(rule.id, rule.severity_in(profile))
        # Rules about secrets always run: the messages of all others are redacted by them.
        if severity is not None or rule.id[0] == "X":
            steps.append(RunningRule(rule, severity, rule.id in overrides))

    def looking_at(subject: Subject, type_: str | None = None) -> RunningRules:
        return tuple(
            (step, step.rule.check)
            for step in steps
            if step.rule.subject is subject
            and (step.rule.types is None or (type_ is not None and type_ in step.rule.types))
        )

    def scheme_plan(type_: str | None) -> SchemePlan:
        return SchemePlan(
            looking_at(Subject.SCHEME, type_),
            looking_at(Subject.FLOW, type_),
            looking_at(Subject.SIGNED_FLOW, type_),
            looking_at(Subject.PARAMETER, type_),
        )

    types = {type_ for rule in RULES.values() for type_ in rule.types or ()}
    return RulePlan(
        looking_at(Subject.DOCUMENT),
        looking_at(Subject.REFERENCES),
        looking_at(Subject.ACCESS),
        looking_at(Subject.GATED_ACCESS),
        {type_: scheme_plan(type_) for type_ in types},
        scheme_plan(None),
    )


def run(plan: RulePlan, report: FindingReport) -> None:
    """Hands every rule of the plan every subject that the document has for it."""
    document = report.document
    _run(plan.document, (document,), report)
    for scheme in document.schemes:
        steps = plan.by_type.get(scheme.type or "", plan.other_types)
        _run(steps.scheme, (scheme,), report)
        if scheme.type == "oauth2":
            _run(steps.flow, flows_of(scheme), report)
        elif scheme.type == "signedUrl":
            flows = flows_of(scheme)
            _run(steps.signed_flow, flows, report)
            parameters = [parameter for flow in flows for parameter in parameters_of(flow)]
            _run(steps.parameter, parameters, report)
    _run(plan.references, document.references, report)
    _run(plan.access, document.accesses, report)
    gated = [access for access in document.accesses if access.references is not None]
    _run(plan.gated_access, gated, report)


def _run(steps: RunningRules, subjects: Sequence[object], report: FindingReport) -> None:
    if len(subjects) == 1:  # (which is mostly so, and quicker said)
        subject = subjects[0]
        for report.step, check in steps:
            check(subject, report)
    elif subjects:
        for report.step, check in steps:
            for subject in subjects:
                check(subject, report)
