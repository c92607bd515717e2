"""Reads a rule file into a domain draft: known keys, then types (B1, steps 2 and 3).

The walk over keys does not know where it is: a key that is known anywhere passes everywhere, and is
ignored where it means nothing (with a remark). Under `metadata` it looks at nothing.
"""

import math
from dataclasses import dataclass, field
from typing import NoReturn

from tollgate.actors.ratelimit.rules.drafts import DomainDraft, LimitDraft, Remark, RuleDraft
from tollgate.actors.ratelimit.rules.rule_file import RuleFile, RuleFileError
from tollgate.actors.ratelimit.rules.rule_set import REQUESTS_PER_UNIT_MAX
from tollgate.actors.ratelimit.rules.yaml_document import (
    YamlList,
    YamlMap,
    YamlNode,
    YamlScalar,
    read_yaml,
    refuse_yaml,
)
from tollgate.actors.ratelimit.rules.yaml_scalars import INT64_MAX, type_name

_ROOT_KEYS = frozenset(("domain", "descriptors"))
_RULE_KEYS = frozenset(
    (
        "key",
        "value",
        "descriptors",
        "rate_limit",
        "shadow_mode",
        "quota_mode",
        "detailed_metric",
        "value_to_metric",
        "share_threshold",
        "metadata",
    )
)
_LIMIT_KEYS = frozenset(("unit", "requests_per_unit", "unlimited", "name", "replaces"))
_REPLACES_KEYS = frozenset(("name",))
_PLACES = {
    "the root of the file": _ROOT_KEYS,
    "a descriptor": _RULE_KEYS,
    "rate_limit": _LIMIT_KEYS,
    "an entry of replaces": _REPLACES_KEYS,
}
_KNOWN_KEYS = frozenset().union(*_PLACES.values())


def read_rule_file(file: RuleFile) -> DomainDraft:
    """The draft of a rule file. Raises RuleFileError with the texts of B1, steps 1 to 3."""
    document = read_yaml(file)
    root = document.root
    if root is None or (isinstance(root, YamlScalar) and root.value is None):
        return DomainDraft(file.name, "")
    if not isinstance(root, YamlMap):
        _Decoder(file.name).refuse(root, "a mapping")
    _check_keys(file.name, root)
    return _Decoder(file.name).domain(root, document.ignored_document_line)


def _check_keys(file: str, node: YamlMap) -> None:
    for key, value in node.pairs:
        if not isinstance(key, YamlScalar) or not isinstance(key.value, str):
            reason = f"config error, key is not of type string: {_shown(key)}"
            raise RuleFileError(file, key.line, reason)
        if key.value not in _KNOWN_KEYS:
            raise RuleFileError(file, key.line, f"config error, unknown key '{key.value}'")
        if key.value != "metadata":
            _check_value(file, value)


def _check_value(file: str, value: YamlNode) -> None:
    if isinstance(value, YamlMap):
        _check_keys(file, value)
    elif isinstance(value, YamlList):
        for item in value.items:
            if not isinstance(item, YamlMap):
                reason = "config error, yaml file contains list of type other than map"
                raise RuleFileError(file, item.line, f"{reason}: {_shown(item)}")
            _check_keys(file, item)
    elif isinstance(value.value, float) or (
        isinstance(value.value, int) and value.value > INT64_MAX
    ):
        raise RuleFileError(file, value.line, "error checking config")


def _shown(node: YamlNode) -> str:
    """A value as the reference prints it: `[a b]`, `map[k:v]`, `<nil>`, `true`, `0.25`."""
    if isinstance(node, YamlList):
        return f"[{' '.join(map(_shown, node.items))}]"
    if isinstance(node, YamlMap):
        return f"map[{' '.join(f'{_shown(key)}:{_shown(value)}' for key, value in node.pairs)}]"
    if node.value is None:
        return "<nil>"
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    return str(node.value).removesuffix(".0") if isinstance(node.value, float) else str(node.value)


@dataclass(slots=True)
class _Decoder:
    """Decodes one checked file and gathers the remarks about it."""

    file: str
    remarks: list[Remark] = field(default_factory=list)

    def domain(self, root: YamlMap, ignored_document_line: int | None) -> DomainDraft:
        fields = self.fields(root, "the root of the file")
        rules = tuple(map(self.rule, self.items(fields.get("descriptors"))))
        if ignored_document_line is not None:
            text = "only the first document of a file is read: what follows here is ignored"
            self.remarks.append(Remark(ignored_document_line, text))
        domain = self.text(fields.get("domain"))
        return DomainDraft(self.file, domain, rules, tuple(self.remarks), root.line)

    def rule(self, node: YamlMap) -> RuleDraft:
        fields = self.fields(node, "a descriptor")
        metadata, metadata_problem = _metadata(fields.get("metadata"))
        return RuleDraft(
            key=self.text(fields.get("key")),
            value=self.text(fields.get("value")),
            limit=self.limit(fields.get("rate_limit")),
            is_shadow=self.flag(fields.get("shadow_mode")),
            is_quota=self.flag(fields.get("quota_mode")),
            has_detailed_metric=self.flag(fields.get("detailed_metric")),
            has_value_to_metric=self.flag(fields.get("value_to_metric")),
            shares_threshold=self.flag(fields.get("share_threshold")),
            metadata=metadata,
            metadata_problem=metadata_problem,
            children=tuple(map(self.rule, self.items(fields.get("descriptors")))),
            line=node.line,
        )

    def limit(self, node: YamlNode | None) -> LimitDraft | None:
        if node is None or _is_null(node):
            return None
        if not isinstance(node, YamlMap):
            self.refuse(node, "a mapping")
        fields = self.fields(node, "rate_limit")
        replaces = self.items(fields.get("replaces"))
        names = (self.fields(each, "an entry of replaces").get("name") for each in replaces)
        return LimitDraft(
            unit=self.text(fields.get("unit")),
            requests_per_unit=self.count(fields.get("requests_per_unit")),
            is_unlimited=self.flag(fields.get("unlimited")),
            name=self.text(fields.get("name")),
            replaces=tuple(map(self.text, names)),
            line=node.line,
        )

    def fields(self, node: YamlMap, place: str) -> dict[str, YamlNode]:
        """The values of the keys that mean something in this place; remarks for the others."""
        found: dict[str, YamlNode] = {}
        for key, value in node.pairs:
            assert isinstance(key, YamlScalar), "the key walk lets no other key pass"
            if key.text in _PLACES[place]:
                found[key.text] = value
            else:
                homes = " or ".join(home for home, keys in _PLACES.items() if key.text in keys)
                text = f"'{key.text}' is ignored in {place}: it belongs in {homes}"
                self.remarks.append(Remark(key.line, text))
        for key in node.repeated:
            text = (
                f"'{key.text}' is written again below in {place}: the last counts, mappings merge"
            )
            self.remarks.append(Remark(key.line, text))
        return found

    def items(self, node: YamlNode | None) -> list[YamlMap]:
        if node is None or _is_null(node):
            return []
        if not isinstance(node, YamlList):
            self.refuse(node, "a list")
        return [each for each in node.items if isinstance(each, YamlMap)]

    def text(self, node: YamlNode | None) -> str:
        """A string field: the raw text of any scalar, and nothing for null."""
        if node is None or _is_null(node):
            return ""
        if not isinstance(node, YamlScalar):
            self.refuse(node, "a string")
        return node.text

    def flag(self, node: YamlNode | None) -> bool:
        if node is None or _is_null(node):
            return False
        if not isinstance(node, YamlScalar) or not isinstance(node.value, bool):
            self.refuse(node, "a boolean")
        return node.value

    def count(self, node: YamlNode | None) -> int | None:
        if node is None or _is_null(node):
            return None
        wanted = f"an integer from 0 to {REQUESTS_PER_UNIT_MAX}"
        if not isinstance(node, YamlScalar) or type(node.value) is not int:
            self.refuse(node, wanted)
        if not 0 <= node.value <= REQUESTS_PER_UNIT_MAX:
            self.refuse(node, wanted)
        return node.value

    def refuse(self, node: YamlNode, wanted: str) -> NoReturn:
        if isinstance(node, YamlScalar):
            found = f"{type_name(node.value)} `{node.text}`"
        else:
            found = "!!seq" if isinstance(node, YamlList) else "!!map"
        problem = f"unmarshal errors: line {node.line}: cannot unmarshal {found} into {wanted}"
        refuse_yaml(self.file, node.line, problem)


def _is_null(node: YamlNode) -> bool:
    return isinstance(node, YamlScalar) and node.value is None


def _metadata(node: YamlNode | None) -> tuple[dict[str, object] | None, str]:
    if node is None or _is_null(node):
        return None, ""
    if not isinstance(node, YamlMap):
        return None, f"line {node.line}: metadata is not a mapping"
    try:
        return _json_map(node), ""
    except ValueError as error:
        return None, str(error)


def _json_map(node: YamlMap) -> dict[str, object]:
    values: dict[str, object] = {}
    for key, value in node.pairs:
        if not isinstance(key, YamlScalar) or not isinstance(key.value, str):
            raise ValueError(f"line {key.line}: key is not of type string: {_shown(key)}")
        values[key.value] = _json_value(value)
    return values


def _json_value(node: YamlNode) -> object:
    if isinstance(node, YamlMap):
        return _json_map(node)
    if isinstance(node, YamlList):
        return [_json_value(each) for each in node.items]
    if isinstance(node.value, float) and not math.isfinite(node.value):
        raise ValueError(f"line {node.line}: {node.text} is not a number that JSON has")
    return node.value
