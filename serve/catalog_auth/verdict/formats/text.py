"""Judgements as text for people and for annotations of a build.

item.json:12:7: error: R01 dangling-ref
    auth:refs names "oo", which is no scheme of this document; meant is perhaps "o"
    why: a client finds no way to the asset under this name
    fix: name a scheme that is there [tollgate catalog fix]
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.findings import Finding, Severity
from tollgate.serve.catalog_auth.verdict.judgement import Judged, UnusableDocument
from tollgate.serve.catalog_auth.verdict.report import Verdict

WIDTH = 100
INDENT = "    "
MECHANICAL = "[mechanical: tollgate catalog fix]"
_ESCAPES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY_ESCAPES = str.maketrans({":": "%3A", ",": "%2C"})
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def as_text(judged: Judged) -> Iterator[str]:
    """The findings of one document, each a block, and its verdict as the last line."""
    for finding in judged.verdict.findings:
        yield from block(judged, finding)
        yield ""
    yield from left_out_lines(judged)
    yield verdict_line(judged)


def left_out_lines(judged: Judged) -> Iterator[str]:
    """The bounds that have cut something."""
    for told in judged.verdict.left_out:
        yield f"{judged.name}: left out: {told}"


def block(judged: Judged, finding: Finding) -> Iterator[str]:
    """A finding: where and what in the first line, then the message, why it matters, the repair."""
    rule = RULES[finding.rule]
    yield f"{place_text(judged, finding)}: {finding.severity}: {rule.id} {rule.name}"
    yield from _wrapped("", finding.message)
    yield from _wrapped("why: ", rule.why)
    yield from _wrapped("fix: ", f"{rule.repair} {MECHANICAL}" if finding.fix else rule.repair)
    for each in finding.suggestions:
        yield from _wrapped("  or: " if len(finding.suggestions) > 1 else " can: ", each.title)


def place_text(judged: Judged, finding: Finding) -> str:
    """`file:line:column`; without lines, the JSON Pointer in its place."""
    found = judged.places.get(finding.path)
    if found is None:
        return f"{judged.name}:{pointer(finding.path)}"
    return f"{judged.name}:{found.line}:{found.column}"


def verdict_line(judged: Judged) -> str:
    """One line with both verdicts."""
    verdict = judged.verdict
    valid = "valid" if verdict.valid else "not valid"
    schema = schema_words(verdict)
    counts = [(severity, verdict.counts.get(severity, 0)) for severity in reversed(Severity)]
    severities = ", ".join(counted(count, word_of(severity)) for severity, count in counts if count)
    return f"{judged.name}: {valid}, {schema}{f' ({severities})' if severities else ''}"


def schema_words(verdict: Verdict) -> str:
    """The official schema's verdict, or the reason why none is asked."""
    if verdict.schema_valid is not None:
        return "schema valid" if verdict.schema_valid else "not schema valid"
    if verdict.is_declared:
        return "declares no version of the extension that exists"
    return "does not declare the extension"


def word_of(severity: Severity) -> str:
    """The word for findings of a severity when they are counted."""
    return "note" if severity is Severity.INFO else severity.value


def counted(count: int, word: str) -> str:
    """A count with its word: `1 error`, `2 errors`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def as_github(judged: Judged) -> Iterator[str]:
    """Workflow commands: each finding becomes an annotation at its line."""
    for finding in judged.verdict.findings:
        rule = RULES[finding.rule]
        found = judged.places.get(finding.path)
        properties = [f"file={_property(judged.name)}"]
        if found is not None:
            properties += [f"line={found.line}", f"col={found.column}"]
        properties.append(f"title={_property(f'{rule.id} {rule.name}')}")
        told = f"{finding.message}\n{rule.why}\nfix: {rule.repair}"
        yield f"::{_LEVELS[finding.severity]} {','.join(properties)}::{_data(told)}"
    for told in judged.verdict.left_out:
        yield f"::notice file={_property(judged.name)},title=left out::{_data(told)}"


def unusable_as_github(unusable: UnusableDocument) -> str:
    """The annotation of a file that could not be read."""
    properties = f"file={_property(unusable.name)}"
    if unusable.line:
        properties += f",line={unusable.line},col={unusable.column}"
    return f"::error {properties},title=unusable::{_data(unusable.reason)}"


def total_line(judgements: Sequence[Judged], unusable: int) -> str:
    """The sum of all judgements, as one line."""
    valid = sum(judged.verdict.valid for judged in judgements)
    parts = [f"{valid:,} valid", f"{len(judgements) - valid:,} not valid"]
    if unusable:
        parts.append(f"{unusable:,} unusable")
    return f"{counted(len(judgements) + unusable, 'document')}: {', '.join(parts)}"


def _wrapped(label: str, text: str) -> Iterable[str]:
    return textwrap.wrap(
        label + text,
        WIDTH,
        initial_indent=INDENT,
        subsequent_indent=INDENT + " " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _data(text: str) -> str:
    return text.translate(_ESCAPES)


def _property(text: str) -> str:
    return _data(text).translate(_PROPERTY_ESCAPES)
