"""All rules, in order of their ids, each id once."""

from collections.abc import Mapping
from types import MappingProxyType

from serve.catalog_auth.rule import Rule
from serve.catalog_auth.rules import (
    api_key,
    chains,
    custom_types,
    declaration,
    description,
    endpoints,
    exposure,
    flow_names,
    flow_structure,
    http,
    inheritance,
    leaking_urls,
    oauth2,
    object_storage,
    placement,
    references,
    secrets,
    signed_url,
    signed_url_parameters,
    structure,
)


def _joined(*groups: tuple[Rule, ...]) -> Mapping[str, Rule]:
    rules = sorted((rule for group in groups for rule in group), key=lambda rule: rule.id)
    by_id = {rule.id: rule for rule in rules}
    assert len(by_id) == len(rules), "two rules share an id"
    return MappingProxyType(by_id)


# Every rule by its id.
RULES: Mapping[str, Rule] = _joined(
    api_key.RULES,
    chains.RULES,
    custom_types.RULES,
    declaration.RULES,
    description.RULES,
    endpoints.RULES,
    exposure.RULES,
    flow_names.RULES,
    flow_structure.RULES,
    http.RULES,
    inheritance.RULES,
    leaking_urls.RULES,
    oauth2.RULES,
    object_storage.RULES,
    placement.RULES,
    references.RULES,
    secrets.RULES,
    signed_url.RULES,
    signed_url_parameters.RULES,
    structure.RULES,
)
