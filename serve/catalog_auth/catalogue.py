"""All rules, in order of their ids, each id once."""

from collections.abc import Mapping
from types import MappingProxyType

from serve.catalog_auth.rule import Rule
from serve.catalog_auth.rules import (
    chains,
    declaration,
    flow_structure,
    inheritance,
    placement,
    references,
    structure,
)


def _joined(*groups: tuple[Rule, ...]) -> Mapping[str, Rule]:
    rules = sorted((rule for group in groups for rule in group), key=lambda rule: rule.id)
    by_id = {rule.id: rule for rule in rules}
    assert len(by_id) == len(rules), "two rules share an id"
    return MappingProxyType(by_id)


# Every rule by its id.
RULES: Mapping[str, Rule] = _joined(
    chains.RULES,
    declaration.RULES,
    flow_structure.RULES,
    inheritance.RULES,
    placement.RULES,
    references.RULES,
    structure.RULES,
)
