"""One text in, a judgement out: the verdict, and where in the text its findings are.

The doors, the page and the command all judge here, so they never differ.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tollgate.actors.kernel.json_value import Json, JsonValue
from tollgate.serve.catalog_auth.document.decoding import decode
from tollgate.serve.catalog_auth.document.document import NO_ANCESTORS, Ancestors
from tollgate.serve.catalog_auth.document.paths import Path, pointer
from tollgate.serve.catalog_auth.document.positions import TextPosition, positions
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.findings import Finding, Fix, Severity
from tollgate.serve.catalog_auth.verdict.report import DEFAULT_OPTIONS, Options, Verdict, validate


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict on the document called `name`. `places`: of the findings, by their paths."""

    name: str
    verdict: Verdict
    places: Mapping[Path, TextPosition]


@dataclass(frozen=True, slots=True)
class UnusableDocument:
    """An input that cannot be judged, and why not; `line` 0: nobody can say where."""

    name: str
    reason: str
    line: int = 0
    column: int = 0


def judge(
    raw: bytes,
    name: str,
    options: Options = DEFAULT_OPTIONS,
    ancestors: Ancestors = NO_ANCESTORS,
) -> Judged:
    """The judgement of a text. Raises UnreadableError."""
    return judge_value(decode(raw), raw, name, options, ancestors)


def judge_value(
    root: JsonValue,
    raw: bytes,
    name: str,
    options: Options = DEFAULT_OPTIONS,
    ancestors: Ancestors = NO_ANCESTORS,
) -> Judged:
    """The judgement of a value that was decoded from `raw`."""
    return located(name, validate(root, options, ancestors, raw), raw)


def located(name: str, verdict: Verdict, raw: bytes, within: Path = ()) -> Judged:
    """The verdict with the places of its findings in the text, in which the document stands at
    `within`; the findings in the order of their places."""
    if not verdict.findings:
        return Judged(name, verdict, {})
    paths = {finding.path: (*within, *finding.path) for finding in verdict.findings}
    found = positions(raw, paths.values())
    places = {path: found[inner] for path, inner in paths.items()}

    def order(finding: Finding) -> tuple[int, int]:
        place = places[finding.path]
        return place.line, place.column

    in_order = tuple(sorted(verdict.findings, key=order))
    return Judged(name, replace(verdict, findings=in_order), places)


def judgement_reply(judged: Judged) -> Json:
    """The judgement as it is answered."""
    verdict = judged.verdict
    left_out: Json = {"left_out": list(verdict.left_out)} if verdict.left_out else {}
    return {
        "valid": verdict.valid,
        "schema_valid": verdict.schema_valid,
        "type": verdict.kind.value,
        "declared_versions": [f"v{version}" for version in verdict.declared_versions],
        "counts": {severity.value: verdict.counts.get(severity, 0) for severity in Severity},
        "findings": [_finding(judged, finding) for finding in verdict.findings],
        **left_out,
    }


def _finding(judged: Judged, finding: Finding) -> Json:
    members: Json = {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "pointer": pointer(finding.path),
    }
    if (place := judged.places.get(finding.path)) is not None:
        members |= {"line": place.line, "column": place.column}
    members |= {"message": finding.message, "why": RULES[finding.rule].why}
    if finding.fix:
        members["fix"] = patch_of(finding.fix)
    if finding.suggestions:
        members["suggestions"] = suggestions_of(finding)
    return members


def suggestions_of(finding: Finding) -> list[Json]:
    """The alternatives that a person may pick from."""
    return [{"title": each.title, "patch": patch_of(each.steps)} for each in finding.suggestions]


def patch_of(fix: Fix) -> list[Json]:
    """The steps as a JSON Patch (RFC 6902)."""
    patch: list[Json] = []
    for step in fix:
        members: Json = {"op": step.op, "path": pointer(step.path)}
        if step.op == "move":
            assert step.source is not None, "a move comes from somewhere"
            members["from"] = pointer(step.source)
        elif step.op != "remove":
            members["value"] = step.value
        patch.append(members)
    return patch
