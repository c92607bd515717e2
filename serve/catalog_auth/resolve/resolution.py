"""Resolves a target into the alternatives that lead to it, in the order to try them (part D,
"Resolving").

A target may be reached by any one of its `auth:refs`; each makes an alternative per flow, per input
of its chain and per storage. They stay as listed; when the caller says what it holds, those that it
can do with that come first. Schemes of the ancestors count where the document has none of a name.
"""

from collections.abc import Sequence
from dataclasses import replace

from tollgate.serve.catalog_auth.document.document import REFS, Document, HolderKind, Scheme
from tollgate.serve.catalog_auth.document.paths import Path, pointer
from tollgate.serve.catalog_auth.objects.storage_schemes import SCHEMES_MAX
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
from tollgate.serve.catalog_auth.resolve.chains import (
    CHAINS_MAX,
    REFS_MAX,
    Chain,
    Link,
    chains,
    dangling,
    dangling_ref,
    names_in,
)
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
from tollgate.serve.catalog_auth.rules.findings import Finding

# The type of the alternative that needs no scheme.
PUBLIC = "none"
ALTERNATIVES_MAX = 64
_REFS_CUT = f"of a list of references, the first {REFS_MAX} are read"
_CHAINS_CUT = f"of the ways through one scheme, no more than {CHAINS_MAX} are planned"
_STORES_CUT = f"of storage:schemes, the first {SCHEMES_MAX} are read"


def resolve(
    document: Document,
    target: AccessTarget,
    available: AvailableCredentials = NOTHING_AVAILABLE,
    findings: Sequence[Finding] = (),
    base_url: str | None = None,
    alternatives_max: int = ALTERNATIVES_MAX,
) -> Resolution | NoTarget:
    """The ways to the target. `findings` are the document's, of `validate`: each alternative names
    the rules of those that concern it."""
    aimed = aim(document, target, base_url)
    if isinstance(aimed, NoTarget):
        return aimed
    refs = names_in(aimed.holder.refs)
    work = _ResolutionWork(aimed, findings, alternatives_max)
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
        room = alternatives_max - len(alternatives)
        if room == 0:
            work.leave_out_alternatives()
            break
        found, broken = _alternatives(document, ref, scheme, work, available, room)
        alternatives += found
        unresolved += broken
    if available.held:
        alternatives.sort(key=lambda one: not one.is_executable or bool(one.missing))
    return Resolution(
        pointer=without_secrets(pointer(aimed.holder.path)),
        href=aimed.href,
        is_public=not refs,
        alternatives=tuple(alternatives),
        unresolved=tuple(dict.fromkeys(unresolved)),
        left_out=tuple(work.left_out),
    )


def _alternatives(
    document: Document,
    ref: str,
    scheme: Scheme,
    work: "_ResolutionWork",
    available: AvailableCredentials,
    room: int,
) -> tuple[list[Alternative], list[Unresolved]]:
    """No more alternatives than there is room for: what is planned is told."""
    aimed = work.aimed
    found = _chains(document, scheme, available)
    if len(found) == CHAINS_MAX:
        work.left_out[_CHAINS_CUT] = None
    storages: list[tuple[str | None, Store | None]] = [*aimed.stores.items()] or [(None, None)]
    if scheme.type != "s3":
        storages = storages[:1]
    several_storages, several_flows = len(storages) > 1, len(found) > 1
    alternatives: list[Alternative] = []
    for chain in found:
        if len(alternatives) >= room:
            work.leave_out_alternatives()
            break
        rules = work.rules(document, chain, ref)
        cleaned, is_withheld, has_placeholder = work.cleaned(chain)
        if len(storages) > room - len(alternatives):
            work.leave_out_alternatives()
        for name, store in storages[: room - len(alternatives)]:
            plan = planned(cleaned, store, aimed, available)
            if is_withheld:
                plan.stop("the scheme carries a credential, which is withheld here")
            if has_placeholder:
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
    """The ways through a scheme; none but itself is needed where the caller has what it gives."""
    enough = {"oauth2": ("access_token",), "s3": ("access_key_id", "profile")}
    for name in enough.get(scheme.type or "", ()):
        if available.names(Need(scheme.name, name)):
            return [Chain((Link(scheme, None),))]
    return chains(document, scheme)


class _ResolutionWork:
    """Work on schemes and findings, done once for a target however many chains there are."""

    def __init__(
        self, aimed: FoundTarget, findings: Sequence[Finding], alternatives_max: int
    ) -> None:
        self.aimed = aimed
        # What a bound has cut, each said once.
        self.left_out: dict[str, None] = {}
        self._alternatives_max = alternatives_max
        if isinstance(refs := aimed.holder.refs, list) and len(refs) > REFS_MAX:
            self.left_out[_REFS_CUT] = None
        if aimed.has_unread_stores:
            self.left_out[_STORES_CUT] = None
        self._findings = findings
        self._cleaned: dict[str, tuple[Scheme, bool, bool]] = {}
        self._rules_by_path: dict[Path, list[str]] | None = None
        self._own: dict[str, list[str]] = {}

    def leave_out_alternatives(self) -> None:
        self.left_out[f"the first {self._alternatives_max} alternatives are told"] = None

    def cleaned(self, chain: Chain) -> tuple[Chain, bool, bool]:
        """The chain without secrets; whether it had one; whether something in it looks like a
        placeholder."""
        found = [self._scheme(link.scheme) for link in chain.links]
        links = tuple(
            Link(scheme, link.flow and without_secrets(link.flow))
            for (scheme, _, _), link in zip(found, chain.links, strict=True)
        )
        return (
            Chain(links, chain.problem),
            any(is_withheld for _, is_withheld, _ in found),
            any(has_placeholder for _, _, has_placeholder in found),
        )

    def _scheme(self, scheme: Scheme) -> tuple[Scheme, bool, bool]:
        if scheme.name not in self._cleaned:
            cleaned = scheme_without_secrets(scheme)
            is_withheld = cleaned.value != scheme.value
            has_placeholder = holds_placeholder(cleaned.value)
            self._cleaned[scheme.name] = cleaned, is_withheld, has_placeholder
        return self._cleaned[scheme.name]

    def rules(self, document: Document, chain: Chain, ref: str) -> list[str]:
        """The rules of the findings about the chain's schemes, and about the target itself."""
        if ref not in self._own:
            self._own[ref] = _holder_rules(self.aimed, self._findings, ref)
        rules = [*self._own[ref]]
        for link in chain.links:
            if link.scheme.name in document.schemes_by_name:
                rules += self._rules_of(link.scheme)
            else:
                rules.append("R03")
        return rules

    def _rules_of(self, scheme: Scheme) -> list[str]:
        if self._rules_by_path is None:
            self._rules_by_path = {}
            for finding in self._findings:
                for length in (2, 3):  # (of a catalog's or collection's scheme; of an item's)
                    rules = self._rules_by_path.setdefault(finding.path[:length], [])
                    if finding.rule not in rules:
                        rules.append(finding.rule)
        return self._rules_by_path.get(scheme.path, [])


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
    return dangling_ref(document, ref, rule)


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
