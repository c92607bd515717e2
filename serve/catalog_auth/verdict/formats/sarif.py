"""Judgements as a SARIF 2.1.0 log (OASIS standard): one run, with a result for each finding.

The place of a result is a line and a column where the text is known, and the JSON Pointer always.
A repair is a JSON Patch, which SARIF has no form for: it is a property of its result.
"""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.findings import Finding, Severity
from tollgate.serve.catalog_auth.rules.rule import CatalogRule
from tollgate.serve.catalog_auth.verdict.judgement import (
    Judged,
    UnusableDocument,
    patch_of,
    suggestions_of,
)

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
MEDIA_TYPE = "application/sarif+json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif_log(
    judgements: Sequence[Judged], version: str, unusable: Sequence[UnusableDocument] = ()
) -> Json:
    """The log. `version`: Tollgate's own. Rules without a finding are left out."""
    found = {finding.rule for judged in judgements for finding in judged.verdict.findings}
    rules = [rule for rule in RULES.values() if rule.id in found]
    indices = {rule.id: index for index, rule in enumerate(rules)}
    driver: Json = {
        "name": "Tollgate catalog auth",
        "version": version,
        "rules": [_rule(rule) for rule in rules],
    }
    invocation: Json = {"executionSuccessful": not unusable}
    notifications = [_notification(each) for each in unusable]
    notifications += [each for judged in judgements for each in _left_out(judged)]
    if notifications:
        invocation["toolExecutionNotifications"] = notifications
    run: Json = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [each for judged in judgements for each in _results(judged, indices)],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: CatalogRule) -> Json:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.says},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.repair} ({rule.source})"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _results(judged: Judged, indices: Mapping[str, int]) -> Iterator[Json]:
    for finding in judged.verdict.findings:
        result: Json = {
            "ruleId": finding.rule,
            "ruleIndex": indices[finding.rule],
            "level": _LEVELS[finding.severity],
            "message": {"text": finding.message},
            "locations": [_location(judged, finding)],
        }
        if finding.fix:
            result["properties"] = {"jsonPatch": patch_of(finding.fix)}
        elif finding.suggestions:
            result["properties"] = {"suggestions": suggestions_of(finding)}
        yield result


def _location(judged: Judged, finding: Finding) -> Json:
    physical: Json = {"artifactLocation": {"uri": _uri(judged.name)}}
    place = judged.places.get(finding.path)
    if place is not None:
        physical["region"] = {"startLine": place.line, "startColumn": place.column}
    return {
        "physicalLocation": physical,
        "logicalLocations": [{"fullyQualifiedName": pointer(finding.path)}],
    }


def _notification(unusable: UnusableDocument) -> Json:
    physical: Json = {"artifactLocation": {"uri": _uri(unusable.name)}}
    if unusable.line:
        physical["region"] = {"startLine": unusable.line, "startColumn": unusable.column}
    return {
        "level": "error",
        "message": {"text": unusable.reason},
        "locations": [{"physicalLocation": physical}],
    }


def _left_out(judged: Judged) -> Iterator[Json]:
    """The bounds that have cut something."""
    for told in judged.verdict.left_out:
        yield {
            "level": "note",
            "message": {"text": f"left out: {told}"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(judged.name)}}}],
        }


def _uri(name: str) -> str:
    """A path or an address as a URI reference; a drive or a colon at its front stays a path."""
    return name if "://" in name else quote(name, safe="/~!$&'()*+,;=@")
