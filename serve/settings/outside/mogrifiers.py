"""The one family of settings whose names are made by the operator: mogrifiers (B19).

AGENT_STATSD_MOGRIFIERS=FOO,BAR          the order in which they are tried
AGENT_STATSD_MOGRIFIER_FOO_PATTERN       a regular expression over a statistic's name
AGENT_STATSD_MOGRIFIER_FOO_NAME          the name it is sent under; `$1` is the first group
AGENT_STATSD_MOGRIFIER_FOO_TAGS          tags k:v,k:v; may hold `$1`, too
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tollgate.serve.settings.outside.expressions import BadExpressionError, compiled
from tollgate.serve.settings.rows import Row, SettingProblem, neutral_spelling, spelled
from tollgate.serve.settings.values import BadValueError, Pairs, pairs, text

PREFIX = "AGENT_STATSD_MOGRIFIER_"
_VARIABLE = re.compile(rf"{PREFIX}.+_(PATTERN|NAME|TAGS)")


@dataclass(frozen=True, slots=True)
class Mogrifier:
    """Rewrites the statistics whose name `pattern` matches."""

    name: str
    pattern: str
    replacement: str
    tags: Pairs = ()


def mogrifier_rows(variables: Iterable[str]) -> Iterator[Row]:
    """A row for each variable of the family among these names, in either spelling, sorted."""
    for name in sorted({neutral_spelling(variable) for variable in variables}):
        if _VARIABLE.fullmatch(name):
            yield Row(name, text, "", "part of a mogrifier")


def mogrifiers(
    names: Iterable[str], values: Mapping[str, object], given: Mapping[str, str]
) -> tuple[tuple[Mogrifier, ...], tuple[SettingProblem, ...]]:
    """The mogrifiers of these names, from values by canonical name, and what is wrong with them.
    `given`: the spelling of each setting of the environment."""
    built: list[Mogrifier] = []
    problems: list[SettingProblem] = []
    for name in names:
        stem = f"{PREFIX}{name.upper()}"
        pattern, replacement, tags = (
            str(values.get(f"{stem}_{part}", "")) for part in ("PATTERN", "NAME", "TAGS")
        )
        found = (
            *_required(f"{stem}_PATTERN", pattern, name, given),
            *_required(f"{stem}_NAME", replacement, name, given),
            *_pattern_problems(f"{stem}_PATTERN", pattern, given),
            *_tag_problems(f"{stem}_TAGS", tags, given),
        )
        problems += found
        if not found:
            built.append(Mogrifier(name, pattern, replacement, pairs(":")(tags)))
    return tuple(built), tuple(problems)


def _problem(variable: str, what: str, given: Mapping[str, str]) -> SettingProblem:
    return SettingProblem((variable,), f"{spelled(variable, given)}: {what}")


def _required(
    variable: str, value: str, name: str, given: Mapping[str, str]
) -> Iterator[SettingProblem]:
    if not value:
        yield _problem(variable, f"is not set, but the mogrifier {name!r} needs it", given)


def _pattern_problems(
    variable: str, value: str, given: Mapping[str, str]
) -> Iterator[SettingProblem]:
    try:
        compiled(value)
    except BadExpressionError as error:
        yield _problem(variable, f"{value!r} is not a regular expression: {error}", given)


def _tag_problems(variable: str, value: str, given: Mapping[str, str]) -> Iterator[SettingProblem]:
    try:
        if not all(content for _, content in pairs(":")(value)):
            yield _problem(variable, f"{value!r} has a tag without a value", given)
    except BadValueError as error:
        yield _problem(variable, f"{value!r} {error}", given)
