"""All rules, in order of their ids, each id once (`__init__.py` tells the file of each)."""

from collections.abc import Mapping
from types import MappingProxyType

from tollgate.serve.catalog_auth.rules.exposure import addresses, leaking_urls, secrets
from tollgate.serve.catalog_auth.rules.references import (
    chains,
    dangling_references,
    gated_assets,
    inheritance,
    reference_lists,
    unused_schemes,
)
from tollgate.serve.catalog_auth.rules.rule import CatalogRule
from tollgate.serve.catalog_auth.rules.schemes import (
    api_key,
    custom_types,
    endpoints,
    flow_names,
    http,
    oauth2,
    object_storage,
    signed_url,
    signed_url_parameters,
)
from tollgate.serve.catalog_auth.rules.structure import (
    declaration,
    declared_version,
    descriptions,
    flow_fields,
    placement,
    scheme_fields,
)


def _joined(*groups: tuple[CatalogRule, ...]) -> Mapping[str, CatalogRule]:
    rules = sorted((rule for group in groups for rule in group), key=lambda rule: rule.id)
    by_id = {rule.id: rule for rule in rules}
    assert len(by_id) == len(rules), "two rules share an id"
    return MappingProxyType(by_id)


# Every rule by its id.
RULES: Mapping[str, CatalogRule] = _joined(
    addresses.RULES,
    api_key.RULES,
    chains.RULES,
    custom_types.RULES,
    dangling_references.RULES,
    declaration.RULES,
    declared_version.RULES,
    descriptions.RULES,
    endpoints.RULES,
    flow_fields.RULES,
    flow_names.RULES,
    gated_assets.RULES,
    http.RULES,
    inheritance.RULES,
    leaking_urls.RULES,
    oauth2.RULES,
    object_storage.RULES,
    placement.RULES,
    reference_lists.RULES,
    scheme_fields.RULES,
    secrets.RULES,
    signed_url.RULES,
    signed_url_parameters.RULES,
    unused_schemes.RULES,
)
