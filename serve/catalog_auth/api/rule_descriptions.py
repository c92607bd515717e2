"""A rule as it is told: its members, and its example with what is found in it."""

import json

from msgspec.json import encode

from tollgate.actors.kernel.json_value import Json, JsonValue
from tollgate.serve.catalog_auth.document.decoding import decode
from tollgate.serve.catalog_auth.document.document import Ancestors
from tollgate.serve.catalog_auth.repair.fixes import fix
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, Profile
from tollgate.serve.catalog_auth.verdict.judgement import Judged, judge, judgement_reply
from tollgate.serve.catalog_auth.verdict.report import Options

EXAMPLE = "example"


def rule_members(rule: CatalogRule) -> Json:
    """A rule as it is answered, without its example."""
    severities = {profile: rule.severity_in(profile) for profile in Profile}
    return {
        "id": rule.id,
        "name": rule.name,
        "severity": rule.severity.value,
        "profiles": {
            profile.value: "off" if severity is None else severity.value
            for profile, severity in severities.items()
        },
        "says": rule.says,
        "why": rule.why,
        "source": rule.source,
        "repair": rule.repair,
    }


def rule_in_full(rule: CatalogRule) -> Json:
    """With a document that breaks it, what is found there, and that document repaired."""
    return rule_members(rule) | {
        "example": rule.example if rule.example_text is None else rule.example_text.decode(),
        "context": rule.example_collection,
        "findings": judgement_reply(judged_example(rule))["findings"],
        "repaired": repaired_example(rule),
    }


def repaired_example(rule: CatalogRule) -> JsonValue:
    """The example with what the rule finds repaired; None when people have to do it."""
    root = decode(rule.example_text or encode(rule.example))
    made = fix(root, _options(rule), Ancestors(rule.example_collection), frozenset({rule.id}))
    return made.document if made.repairs else None


def judged_example(rule: CatalogRule) -> Judged:
    """The judgement of the example, under a profile in which the rule runs."""
    raw = example_text(rule).encode()
    return judge(raw, EXAMPLE, _options(rule), Ancestors(rule.example_collection))


def example_text(rule: CatalogRule) -> str:
    """The example as people read it."""
    if rule.example_text is not None:
        return rule.example_text.decode()
    return "\n".join(as_lines(rule.example))


def as_lines(value: object) -> list[str]:
    """A value as people read it."""
    return json.dumps(value, indent=2, ensure_ascii=False).splitlines()


def _options(rule: CatalogRule) -> Options:
    running = (profile for profile in Profile if rule.severity_in(profile) is not None)
    return Options(profile=Profile.DEFAULT if rule.is_on_by_default else next(running))
