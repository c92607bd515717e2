"""Resolves a target into the alternatives that lead to it, in the order to try them (part D,
"Resolving").

A target may be reached by any one of its `auth:refs`; each makes an alternative per flow, per input
of its chain and per storage. They stay as listed; when the caller says what it holds, those that it
can do with that come first. Schemes of the ancestors count where the document has none of a name.
"""

from collections.abc import Sequence
from dataclasses import replace

from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    REFS,
    Document,
    HolderKind,
    Scheme,
)
from tollgate.serve.catalog_auth.resolve.alternatives import (
    LOOKS_LIKE_A_PLACEHOLDER,
    AccessPlan,
    missing,
    planned,
    planned_public,
    steps_of,
)
from tollgate.serve.catalog_auth.resolve.available_credentials import (
    NOTHING_AVAILABLE,
    AvailableCredentials,
)
from tollgate.serve.catalog_auth.resolve.chains import Chain, Link, chains, dangling, suggested_name
from tollgate.serve.catalog_auth.resolve.object_stores import Store
from tollgate.serve.catalog_auth.resolve.secret_removal import (
    scheme_without_secrets,
    without_secrets,
)
from tollgate.serve.catalog_auth.resolve.steps import (
    Alternative,
    Need,
    Resolution,
    Unresolved,
    holds_placeholder,
)
from tollgate.serve.catalog_auth.resolve.target import AccessTarget, FoundTarget, NoTarget, aim
from tollgate.serve.catalog_auth.rules.findings import Finding, Path, pointer

# The type of the alternative that needs no scheme.
PUBLIC = "none"
ALTERNATIVES_MAX = 64
REFS_MAX = 64


def resolve(
    document: Document,
    target: AccessTarget,
    available: AvailableCredentials = NOTHING_AVAILABLE,
    findings: Sequence[Finding] = (),
    base_url: str | None = None,
) -> Resolution | NoTarget:
    """The ways to the target. `findings` are the document's, of `validate`: each alternative names
    the rules of those that concern it."""
    aimed = aim(document, target, base_url)
    if isinstance(aimed, NoTarget):
        return aimed
    refs = _refs(aimed)
    alternatives: list[Alternative] = []
    unresolved: list[Unresolved] = []
    if not refs:
        store = next(iter(aimed.stores.values()), None)
        plan = planned_public(aimed, store)
        own = _holder_rules(aimed, findings)
        alternatives.append(_finished(plan, None, PUBLIC, own, None))
    for ref in refs:
        scheme = document.scheme(ref)
        if scheme is None:
            unresolved.append(_unresolved(document, aimed, ref))
            continue
        found, broken = _alternatives(document, ref, scheme, aimed, available, findings)
        alternatives += found
        unresolved += broken
    alternatives = alternatives[:ALTERNATIVES_MAX]
    if available.held:
        alternatives.sort(key=lambda one: not one.is_executable or bool(one.missing))
    return Resolution(
        pointer=without_secrets(pointer(aimed.holder.path)),
        href=aimed.href,
        is_public=not refs,
        alternatives=tuple(alternatives),
        unresolved=tuple(dict.fromkeys(unresolved)),
    )


def _refs(aimed: FoundTarget) -> list[str]:
    refs = aimed.holder.refs
    if refs is MISSING or not isinstance(refs, list):
        return []
    return list(dict.fromkeys(ref for ref in refs[:REFS_MAX] if isinstance(ref, str)))


def _alternatives(
    document: Document,
    ref: str,
    scheme: Scheme,
    aimed: FoundTarget,
    available: AvailableCredentials,
    findings: Sequence[Finding],
) -> tuple[list[Alternative], list[Unresolved]]:
    found = _chains(document, scheme, available)
    storages: list[tuple[str | None, Store | None]] = [*aimed.stores.items()] or [(None, None)]
    if scheme.type != "s3":
        storages = storages[:1]
    several_storages, several_flows = len(storages) > 1, len(found) > 1
    alternatives = []
    for chain in found:
        rules = _rules(document, chain, aimed, ref, findings)
        cleaned, is_withheld = _without_secrets(chain)
        for name, store in storages:
            plan = planned(cleaned, store, aimed, available)
            if is_withheld:
                plan.stop("the scheme carries a credential, which is without_secrets here")
            if any(holds_placeholder(link.scheme.value) for link in cleaned.links):
                plan.stop(LOOKS_LIKE_A_PLACEHOLDER)
            last = cleaned.links[-1]
            one = _finished(plan, ref, scheme.type or "", rules, last.scheme)
            alternatives.append(
                replace(
                    one,
                    flow=last.flow if several_flows else None,
                    storage=name if several_storages else None,
                    chain=tuple(without_secrets(link.scheme.name) for link in chain.links[:-1]),
                )
            )
    return alternatives, dangling(document, found)


def _chains(document: Document, scheme: Scheme, available: AvailableCredentials) -> list[Chain]:
    """What the caller has of a scheme makes every way to that superfluous."""
    enough = {"oauth2": ("access_token",), "s3": ("access_key_id", "profile")}
    for name in enough.get(scheme.type or "", ()):
        if available.names(Need(scheme.name, name)):
            return [Chain((Link(scheme, None),))]
    return chains(document, scheme)


def _without_secrets(chain: Chain) -> tuple[Chain, bool]:
    links = tuple(
        Link(scheme_without_secrets(link.scheme), link.flow and without_secrets(link.flow))
        for link in chain.links
    )
    is_withheld = any(
        new.scheme.value != old.scheme.value for new, old in zip(links, chain.links, strict=True)
    )
    return Chain(links, chain.problem), is_withheld


def _finished(
    plan: AccessPlan, ref: str | None, type_: str, rules: list[str], scheme: Scheme | None
) -> Alternative:
    return Alternative(
        ref=None if ref is None else without_secrets(ref),
        type=without_secrets(type_),
        steps=steps_of(plan, scheme),
        is_executable=plan.problem is None,
        missing=tuple(map(without_secrets, missing(plan))),
        findings=tuple(sorted({*rules, *plan.findings})),
    )


def _unresolved(document: Document, aimed: FoundTarget, ref: str) -> Unresolved:
    """R02 where there are no schemes at all, R11 in an alternate, R01 elsewhere."""
    rule = "R01"
    if not document.schemes and not document.inherited:
        rule = "R02"
    elif aimed.holder.kind is HolderKind.ALTERNATE:
        rule = "R11"
    suggest = suggested_name(document, ref)
    return Unresolved(
        without_secrets(ref), rule, None if suggest is None else without_secrets(suggest)
    )


def _rules(
    document: Document, chain: Chain, aimed: FoundTarget, ref: str, findings: Sequence[Finding]
) -> list[str]:
    """The rules of the findings about the chain's schemes, and about the target itself."""
    rules = _holder_rules(aimed, findings, ref)
    own = {scheme.name for scheme in document.schemes}
    for link in chain.links:
        if link.scheme.name not in own:
            rules.append("R03")
            continue
        rules += [f.rule for f in findings if _is_below(f.path, link.scheme.path)]
    return rules


def _holder_rules(
    aimed: FoundTarget, findings: Sequence[Finding], ref: str | None = None
) -> list[str]:
    """Those at the target, but at no alternate inside it and at no other ref."""
    path = aimed.holder.path
    return [
        finding.rule
        for finding in findings
        if _is_below(finding.path, path) and _concerns(finding.path[len(path) :], aimed, ref)
    ]


def _concerns(rest: Path, aimed: FoundTarget, ref: str | None) -> bool:
    if not rest or rest[0] != REFS:
        return not rest or rest[0] != "alternate"
    refs = aimed.holder.refs
    if len(rest) == 1 or not isinstance(refs, list) or not isinstance(rest[1], int):
        return True
    return rest[1] < len(refs) and refs[rest[1]] == ref


def _is_below(path: Path, above: Path) -> bool:
    return path[: len(above)] == above
