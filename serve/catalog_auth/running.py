"""Running the rules: a plan per choice of options, made once, and applied to any document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from serve.catalog_auth.catalogue import RULES
from serve.catalog_auth.document import flows_of, parameters_of
from serve.catalog_auth.findings import Severity
from serve.catalog_auth.rule import Profile, Report, Rule, Subject

# Plans of so many different options are remembered.
PLANS_MAX = 256

# A rule as it runs: how bad its findings are (None: unheard), and whether the caller said so.
_Step = tuple[Rule, Severity | None, bool]


@dataclass(frozen=True, slots=True)
class Plan:
    """The rules that run, by what they look at; those that look at schemes and into them, by the
    scheme's type too. `by_subject` has them for any other type."""

    by_subject: Mapping[Subject, tuple[_Step, ...]]
    by_type: Mapping[Subject, Mapping[str, tuple[_Step, ...]]]

    def of_scheme(self, subject: Subject, type_: str | None) -> tuple[_Step, ...]:
        found = None if type_ is None else self.by_type[subject].get(type_)
        return self.by_subject[subject] if found is None else found


_TYPED = (Subject.SCHEME, Subject.FLOW, Subject.SIGNED_FLOW, Subject.PARAMETER)


@lru_cache(maxsize=PLANS_MAX)
def plan(profile: Profile, severities: frozenset[tuple[str, Severity | None]]) -> Plan:
    overrides = dict(severities)
    steps: list[_Step] = []
    for rule in RULES.values():
        severity = overrides.get(rule.id, rule.severity_in(profile))
        # Rules about secrets always run: the messages of all others are redacted by them.
        if severity is not None or rule.id[0] == "X":
            steps.append((rule, severity, rule.id in overrides))
    types = {type_ for rule in RULES.values() for type_ in rule.types or ()}
    by_type = {
        subject: {
            type_: tuple(
                step
                for step in steps
                if step[0].subject is subject and type_ in (step[0].types or (type_,))
            )
            for type_ in types
        }
        for subject in _TYPED
    }
    by_subject = {
        subject: tuple(
            step
            for step in steps
            if step[0].subject is subject and (subject not in _TYPED or step[0].types is None)
        )
        for subject in Subject
    }
    return Plan(by_subject, by_type)


def run(plan: Plan, report: Report) -> None:
    """Hands every rule of the plan every subject that the document has for it."""
    document = report.document
    _run(plan.by_subject[Subject.DOCUMENT], (document,), report)
    for scheme in document.schemes:
        _run(plan.of_scheme(Subject.SCHEME, scheme.type), (scheme,), report)
        if scheme.type == "oauth2":
            _run(plan.of_scheme(Subject.FLOW, scheme.type), flows_of(scheme), report)
        elif scheme.type == "signedUrl":
            flows = flows_of(scheme)
            _run(plan.of_scheme(Subject.SIGNED_FLOW, scheme.type), flows, report)
            parameters = [parameter for flow in flows for parameter in parameters_of(flow)]
            _run(plan.of_scheme(Subject.PARAMETER, scheme.type), parameters, report)
    _run(plan.by_subject[Subject.REFERENCES], document.references, report)
    _run(plan.by_subject[Subject.ACCESS], document.accesses, report)
    gated = [access for access in document.accesses if access.references is not None]
    _run(plan.by_subject[Subject.GATED_ACCESS], gated, report)


def _run(steps: tuple[_Step, ...], subjects: Sequence[object], report: Report) -> None:
    if not subjects:
        return
    for rule, severity, is_forced in steps:
        report.begin(rule, severity, is_forced)
        check = rule.check
        for subject in subjects:
            check(subject, report)
