"""Builds a rule set from drafts, or gives the first reason why not (B1, steps 4 and 5).

One bad file refuses the whole set. Files are taken in the order of their names, so that the same
files give the same rules, and blame the same file, every time; the checks of one descriptor come in
the reference's order, before those of its children, and those before its next sibling's.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import NoReturn

from tollgate.actors.kernel.hashing import digest
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.rules.descriptors import ENTRY_BYTES_MAX
from tollgate.actors.ratelimit.rules.draft_reader import read_rule_file
from tollgate.actors.ratelimit.rules.drafts import DomainDraft, LimitDraft, RuleDraft
from tollgate.actors.ratelimit.rules.rule_file import RuleFile, RuleFileError
from tollgate.actors.ratelimit.rules.rule_set import (
    EMPTY_LEVEL,
    Level,
    Limit,
    LimitRule,
    RuleSet,
    Source,
)

__all__ = [
    "DESCRIPTORS_MAX",
    "RuleFile",
    "RuleFileError",
    "RuleSetBuilder",
    "build_rules",
    "load_rules",
]
DESCRIPTORS_MAX = 200_000
"""In all files together. Ours: a descriptor may be written in a few bytes, by an alias or in a
message, and it takes a kilobyte in every process."""


def load_rules(
    files: Sequence[RuleFile],
    *,
    merge_domains: bool,
    read: Callable[[RuleFile], DomainDraft] = read_rule_file,
) -> RuleSet:
    """The rule set of these files. Raises RuleFileError for the first thing that is wrong (B1).

    `read`: the draft in a file; those of a control plane are no YAML.
    """
    ordered = sorted(files, key=lambda file: file.name)
    drafts = map(read, ordered)  # lazily: a file is read only when those before are good
    contents = (
        part
        for file in ordered
        for part in (file.name.encode("utf-8", "surrogatepass"), file.content())
    )
    return build_rules(
        drafts, merge_domains=merge_domains, digest=digest(bytes((merge_domains,)), *contents)
    )


def build_rules(drafts: Iterable[DomainDraft], *, merge_domains: bool, digest: str = "") -> RuleSet:
    """The rule set of these drafts, in their order. Raises RuleFileError (B1, steps 4 and 5)."""
    builder = RuleSetBuilder(merge_domains=merge_domains)
    for draft in drafts:
        builder.add(draft)
    return builder.finish(digest)


class RuleSetBuilder:
    """Takes drafts one by one; a draft that is refused leaves no trace."""

    def __init__(self, *, merge_domains: bool) -> None:
        self._merge_domains = merge_domains
        self._domains: dict[str, dict[str, LimitRule]] = {}
        self._descriptors = 0

    def add(self, draft: DomainDraft) -> None:
        """Checks a draft and adds its rules. Raises RuleFileError."""
        if not draft.domain:
            _refuse(draft, draft.line, "config file cannot have empty domain")
        known = self._domains.get(draft.domain)
        if known is not None and not self._merge_domains:
            _refuse(draft, draft.line, f"duplicate domain '{draft.domain}' in config file")
        descriptors = self._descriptors + _descriptors_in(draft.rules)
        if descriptors > DESCRIPTORS_MAX:
            reason = f"the files so far have more than {DESCRIPTORS_MAX} descriptors together"
            _refuse(draft, None, f"{reason}: take some out")
        rules = _siblings(draft, draft.rules, draft.domain, known or {})
        self._descriptors = descriptors
        self._domains.setdefault(draft.domain, {}).update(rules)

    def finish(self, digest: str = "") -> RuleSet:
        """The rule set of everything that was added."""
        levels = {domain: Level.of(rules.values()) for domain, rules in self._domains.items()}
        return RuleSet(levels, digest)


def _refuse(draft: DomainDraft, line: int | None, reason: str) -> NoReturn:
    raise RuleFileError(draft.file, line, reason)


def _descriptors_in(written: Sequence[RuleDraft]) -> int:
    return len(written) + sum(_descriptors_in(each.children) for each in written)


def _siblings(
    draft: DomainDraft, written: Sequence[RuleDraft], path: str, taken: Container[str]
) -> dict[str, LimitRule]:
    """The rules of one level by id. `taken`: ids that siblings from other files have already."""
    rules: dict[str, LimitRule] = {}
    for each in written:
        if not each.key:
            _refuse(draft, each.line, "descriptor has empty key")
        _check_length(draft, each)
        full_id = f"{path}.{each.id}"
        if each.id in rules or each.id in taken:
            _refuse(draft, each.line, f"duplicate descriptor composite key '{full_id}'")
        rules[each.id] = _rule(draft, each, full_id)
    return rules


def _rule(draft: DomainDraft, written: RuleDraft, full_id: str) -> LimitRule:
    limit = None if written.limit is None else _limit(draft, written.limit)
    if written.shares_threshold and not written.has_wildcard:
        reason = (
            "share_threshold can only be used with wildcard values (containing '*'), "
            f"but found key '{written.id}'"
        )
        _refuse(draft, written.line, reason)
    if written.metadata_problem:
        _refuse(draft, written.line, f"error parsing metadata: {written.metadata_problem}")
    children = _siblings(draft, written.children, full_id, ())
    return LimitRule(
        key=written.key,
        value=written.value,
        source=Source(draft.file, written.line),
        limit=limit,
        is_shadow=written.is_shadow,
        is_quota=written.is_quota,
        has_detailed_metric=written.has_detailed_metric,
        has_value_to_metric=written.has_value_to_metric,
        shares_threshold=written.shares_threshold,
        metadata=written.metadata,
        children=Level.of(children.values()) if children else EMPTY_LEVEL,
    )


def _check_length(draft: DomainDraft, written: RuleDraft) -> None:
    """Ours: what no request may carry cannot be met, and aliases would make it cost memory."""
    for name, text in (("key", written.key), ("value", written.value)):
        if len(text) > ENTRY_BYTES_MAX or len(text.encode()) > ENTRY_BYTES_MAX:
            reason = f"descriptor {name} is longer than {ENTRY_BYTES_MAX} bytes"
            _refuse(draft, written.line, reason)


def _limit(draft: DomainDraft, written: LimitDraft) -> Limit:
    unit = Unit.__members__.get(written.unit.upper())
    if written.is_unlimited and unit is not None:
        reason = "should not specify rate limit unit when unlimited"
        _refuse(draft, written.line, reason)
    if not written.is_unlimited and unit is None:
        _refuse(draft, written.line, f"invalid rate limit unit '{written.unit}'")
    for name in written.replaces:
        if not name:
            _refuse(draft, written.line, "should not have an empty replaces entry")
        if name == written.name:
            reason = "replaces should not contain name of same descriptor"
            _refuse(draft, written.line, reason)
    requests_per_unit = 0 if written.is_unlimited else written.requests_per_unit or 0
    return Limit(requests_per_unit, unit, written.name, written.replaces)
