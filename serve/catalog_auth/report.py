"""Validating: one document in, one verdict out (part A).

The verdict has two answers that are never merged: what the official schema of the declared version
says (`schema_valid`), and whether there is a finding as bad as the caller fears (`valid`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

import msgspec

from serve.catalog_auth.catalogue import RULES
from serve.catalog_auth.decoding import decode
from serve.catalog_auth.document import (
    NO_ANCESTORS,
    Ancestors,
    Document,
    Flow,
    Kind,
    Parameter,
    Scheme,
)
from serve.catalog_auth.findings import Finding, JsonValue, Operation, Path, Severity
from serve.catalog_auth.locating import locate
from serve.catalog_auth.rule import Profile, Report, Rule, Subject
from serve.catalog_auth.versions import Version

# Plans of so many different options are remembered.
PLANS_MAX = 256
_AS_USUAL: Mapping[str, Severity | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Options:
    """How to validate. `version` overrides what is declared; `severities` overrides single rules
    by id (None: off); a finding of `fail_on` or worse makes a document invalid."""

    profile: Profile = Profile.DEFAULT
    version: Version | None = None
    severities: Mapping[str, Severity | None] = field(default_factory=lambda: _AS_USUAL)
    fail_on: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True)
class Verdict:
    """`schema_valid` is None when no version is declared: then no official schema is asked.
    `declared_versions` are those that exist, as declared."""

    valid: bool
    schema_valid: bool | None
    kind: Kind
    declared_versions: tuple[Version, ...]
    findings: tuple[Finding, ...]
    counts: Mapping[Severity, int]


DEFAULT_OPTIONS = Options()

# A rule as it runs: how bad its findings are (None: unheard), and whether the caller said so.
_Step = tuple[Rule, Severity | None, bool]


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

    `raw` is the text that `root` was decoded from: repeated members show only there.
    """
    if not isinstance(root, dict):
        root, raw = {"": root}, None
    document = locate(root, ancestors, options.version, raw)
    plan = _plan(options.profile, frozenset(options.severities.items()))
    findings = _findings(document, plan, options.profile, raw)
    schema_valid = None
    if document.kind is Kind.ITEM_COLLECTION:
        schema_valid = _validate_features(root, options, ancestors, plan, findings)
    counts = dict.fromkeys(Severity, 0)
    for finding in findings:
        counts[finding.severity] += 1
    return Verdict(
        not any(
            count and severity.rank >= options.fail_on.rank for severity, count in counts.items()
        ),
        schema_valid,
        document.kind,
        document.versions,
        tuple(findings),
        MappingProxyType(counts),
    )


def _validate_features(
    root: Mapping[str, object],
    options: Options,
    ancestors: Ancestors,
    plan: "_Plan",
    findings: list[Finding],
) -> bool | None:
    """Adds the findings of the features; whether the official schemas take all that declare one."""
    features = root.get("features")
    if not isinstance(features, list):
        return None
    answers: set[bool | None] = set()
    for index, feature in enumerate(features):
        if not isinstance(feature, dict):
            continue
        document = locate(feature, ancestors, options.version)
        inner = _findings(document, plan, options.profile, None)
        findings += [_moved(finding, ("features", index)) for finding in inner]
        answers.add(None)
    return None if answers <= {None} else False not in answers


def _moved(finding: Finding, below: Path) -> Finding:
    """The finding of a feature, in its collection."""
    fix = finding.fix
    if fix is not None:
        fix = tuple(
            Operation(
                step.op,
                (*below, *step.path),
                step.value,
                None if step.source is None else (*below, *step.source),
            )
            for step in fix
        )
    return msgspec.structs.replace(finding, path=(*below, *finding.path), fix=fix)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The rules that run, by what they look at; those of schemes, by the scheme's type too."""

    by_subject: Mapping[Subject, tuple[_Step, ...]]
    by_type: Mapping[Subject, Mapping[str, tuple[_Step, ...]]]

    def of_scheme(self, subject: Subject, type_: str | None) -> tuple[_Step, ...]:
        found = None if type_ is None else self.by_type[subject].get(type_)
        return self.by_subject[subject] if found is None else found


_TYPED = (Subject.SCHEME, Subject.FLOW, Subject.SIGNED_FLOW, Subject.PARAMETER)


@lru_cache(maxsize=PLANS_MAX)
def _plan(profile: Profile, severities: frozenset[tuple[str, Severity | None]]) -> _Plan:
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
    return _Plan(by_subject, by_type)


def _findings(
    document: Document, plan: _Plan, profile: Profile, raw: bytes | None
) -> list[Finding]:
    report = Report(document, profile, raw)
    _run(plan.by_subject[Subject.DOCUMENT], (document,), report)
    for scheme in document.schemes:
        _run(plan.of_scheme(Subject.SCHEME, scheme.type), (scheme,), report)
        if scheme.type == "oauth2":
            flows = _flows(scheme)
            _run(plan.of_scheme(Subject.FLOW, scheme.type), flows, report)
        elif scheme.type == "signedUrl":
            flows = _flows(scheme)
            _run(plan.of_scheme(Subject.SIGNED_FLOW, scheme.type), flows, report)
            parameters = [parameter for flow in flows for parameter in _parameters(flow)]
            _run(plan.of_scheme(Subject.PARAMETER, scheme.type), parameters, report)
    _run(plan.by_subject[Subject.REFERENCES], document.references, report)
    _run(plan.by_subject[Subject.ACCESS], document.accesses, report)
    gated = [access for access in document.accesses if access.references is not None]
    _run(plan.by_subject[Subject.GATED_ACCESS], gated, report)
    return report.finished()


def _run(steps: tuple[_Step, ...], subjects: Sequence[object], report: Report) -> None:
    if not subjects:
        return
    for rule, severity, is_forced in steps:
        report.begin(rule, severity, is_forced)
        check = rule.check
        for subject in subjects:
            check(subject, report)


def _flows(scheme: Scheme) -> list[Flow]:
    flows = scheme.value.get("flows")
    if not isinstance(flows, dict):
        return []
    path = (*scheme.path, "flows")
    return [
        Flow(name, (*path, name), flow, scheme)
        for name, flow in flows.items()
        if isinstance(flow, dict)
    ]


def _parameters(flow: Flow) -> list[Parameter]:
    parameters = flow.value.get("parameters")
    if not isinstance(parameters, dict):
        return []
    path = (*flow.path, "parameters")
    return [
        Parameter(name, (*path, name), parameter, flow)
        for name, parameter in parameters.items()
        if isinstance(parameter, dict)
    ]
