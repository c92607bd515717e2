"""Reads YAML text into a tree that keeps raw scalars, types and lines (B1, step 1).

The tree is built from libyaml's events and not with PyYAML's composer: that one recurses in C and
ends the process on deeply nested text, and it cannot tell a plain `1.5` from a tagged one. The law:

- only the first document is read;
- of equal keys in a mapping the last one counts, but two mappings become one;
- `<<` merges mappings, and keys that are written out beat merged ones;
- depth and number of nodes are bounded with every alias expanded, so an alias costs what it stands
  for, and none can contain itself.
"""

from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

import yaml

from tollgate.actors.ratelimit.rules.rule_file import RULE_FILE_BYTES_MAX, RuleFile, RuleFileError
from tollgate.actors.ratelimit.rules.yaml_scalars import ScalarValue, plain_value, tagged_value

NODES_MAX = 1_000_000
NODE_DEPTH_MAX = 160  # a descriptor level takes two: enough for the 64 entries a request may have


@dataclass(frozen=True, slots=True)
class YamlScalar:
    """A scalar: the text as it was written, what it is worth, and whether it was plain (without
    quotes or tag)."""

    line: int
    text: str
    value: ScalarValue
    is_plain: bool


@dataclass(frozen=True, slots=True)
class YamlList:
    """A sequence."""

    line: int
    items: "tuple[YamlNode, ...]"


@dataclass(frozen=True, slots=True)
class YamlMap:
    """A mapping: every key once. `repeated` holds the keys that a later equal one overrides."""

    line: int
    pairs: "tuple[tuple[YamlNode, YamlNode], ...]"
    repeated: tuple[YamlScalar, ...] = ()


YamlNode: TypeAlias = YamlScalar | YamlList | YamlMap


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """The first document of a text. `root` None: the text holds none."""

    root: YamlNode | None
    ignored_document_line: int | None = None


def read_yaml(file: RuleFile) -> YamlDocument:
    """The tree of a file's first document. RuleFileError: bad syntax, bad alias, out of bounds."""
    content = file.content()
    if len(content) > RULE_FILE_BYTES_MAX:
        refuse_yaml(file.name, None, f"the file is larger than {RULE_FILE_BYTES_MAX} bytes")
    try:
        return _Composer(content).compose()
    except _DocumentError as error:
        refuse_yaml(file.name, error.line, f"line {error.line}: {error}")
    except yaml.YAMLError as error:
        line, problem = _line_and_problem(error, content)
        refuse_yaml(file.name, line, f"line {line}: {problem}")
    except UnicodeDecodeError:  # libyaml unescapes tags without a look at what comes out
        refuse_yaml(file.name, None, "a tag is not valid UTF-8")


def refuse_yaml(file: str, line: int | None, problem: str) -> NoReturn:
    """Raises RuleFileError in the words of B1 for text that cannot be decoded."""
    raise RuleFileError(file, line, f"error loading config file: yaml: {problem}") from None


def _line_and_problem(error: yaml.YAMLError, content: bytes) -> tuple[int, str]:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return error.problem_mark.line + 1, error.problem or "syntax error"
    assert isinstance(error, yaml.reader.ReaderError), "libyaml raises marked or reader errors"
    return content[: error.position].count(b"\n") + 1, error.reason


class _DocumentError(Exception):
    """A fault beyond syntax, and its line."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet. `height`: the levels inside it so far."""

    line: int
    is_map: bool
    anchor: str | None
    count_before: int
    height: int = 0
    nodes: list[YamlNode] = field(default_factory=list)


class _Composer:
    """Builds the tree of one document with a stack of its own."""

    def __init__(self, content: bytes) -> None:
        self._loader = yaml.CSafeLoader(content)
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[YamlNode, int, int]] = {}  # node, nodes in it, its height
        self._count = 0
        self._root: YamlNode | None = None

    def compose(self) -> YamlDocument:
        while True:
            event = self._loader.get_event()
            line = _line(event)
            if isinstance(event, yaml.ScalarEvent):
                self._account(line, 1, 0)
                self._finish(_scalar(event, line), event.anchor, 1, 0)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._account(line, 1, 0)
                is_map = isinstance(event, yaml.MappingStartEvent)
                self._open.append(_Open(line, is_map, event.anchor, self._count - 1))
            elif isinstance(event, yaml.CollectionEndEvent):
                done = self._open.pop()
                node = _mapping(done) if done.is_map else YamlList(done.line, tuple(done.nodes))
                self._finish(node, done.anchor, self._count - done.count_before, done.height)
            elif isinstance(event, yaml.AliasEvent):
                assert event.anchor is not None, "an alias names its anchor"
                self._alias(event.anchor, line)
            elif isinstance(event, yaml.DocumentEndEvent):
                return YamlDocument(self._root, self._line_of_next_document())
            elif isinstance(event, yaml.StreamEndEvent):
                return YamlDocument(None)

    def _account(self, line: int, count: int, height: int) -> None:
        self._count += count
        if self._count > NODES_MAX:
            raise _DocumentError(line, f"more than {NODES_MAX} nodes, with aliases expanded")
        if len(self._open) + 1 + height > NODE_DEPTH_MAX:
            raise _DocumentError(line, f"nested deeper than {NODE_DEPTH_MAX} levels")

    def _finish(self, node: YamlNode, anchor: str | None, count: int, height: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (node, count, height)
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        parent.nodes.append(node)
        parent.height = max(parent.height, height + 1)

    def _alias(self, anchor: str, line: int) -> None:
        if any(each.anchor == anchor for each in self._open):
            raise _DocumentError(line, f"anchor '{anchor}' value contains itself")
        if anchor not in self._anchors:
            raise _DocumentError(line, f"unknown anchor '{anchor}' referenced")
        node, count, height = self._anchors[anchor]
        self._account(line, count, height)
        self._finish(node, None, count, height)

    def _line_of_next_document(self) -> int | None:
        try:
            event = self._loader.get_event()
        except (yaml.YAMLError, UnicodeDecodeError):
            return None  # what follows the first document is not read, so it may be anything
        return _line(event) if isinstance(event, yaml.DocumentStartEvent) else None


def _line(event: yaml.Event | None) -> int:
    assert event is not None, "the loader is not asked for more after the end of the stream"
    assert event.start_mark is not None, "libyaml marks every event"
    return event.start_mark.line + 1


def _scalar(event: yaml.ScalarEvent, line: int) -> YamlScalar:
    if event.tag is None:
        is_plain = event.implicit[0]
        value = plain_value(event.value) if is_plain else event.value
        return YamlScalar(line, event.value, value, is_plain)
    try:
        return YamlScalar(line, event.value, tagged_value(event.value, event.tag), False)
    except ValueError as error:
        raise _DocumentError(line, str(error)) from None


def _mapping(done: _Open) -> YamlMap:
    pairs: dict[object, tuple[YamlNode, YamlNode]] = {}
    merged: list[YamlNode] = []
    repeated: list[YamlScalar] = []
    for key, value in zip(done.nodes[::2], done.nodes[1::2], strict=True):
        if isinstance(key, YamlScalar) and key.is_plain and key.text == "<<":
            merged.append(value)
            continue
        overridden = pairs.pop(_identity(key), None)
        if overridden is not None and isinstance(overridden[0], YamlScalar):
            repeated.append(overridden[0])
            value = _merged(overridden[1], value)
        pairs[_identity(key)] = (key, value)
    for source in merged:
        for key, value in _pairs_to_merge(source):
            pairs.setdefault(_identity(key), (key, value))
    return YamlMap(done.line, tuple(pairs.values()), tuple(repeated))


def _merged(earlier: YamlNode, later: YamlNode) -> YamlNode:
    """The value of a key that is written twice: two mappings are one, else the later counts."""
    if not isinstance(earlier, YamlMap) or not isinstance(later, YamlMap):
        return later
    pairs = {_identity(key): (key, value) for key, value in (*earlier.pairs, *later.pairs)}
    return YamlMap(later.line, tuple(pairs.values()), (*earlier.repeated, *later.repeated))


def _pairs_to_merge(source: YamlNode) -> list[tuple[YamlNode, YamlNode]]:
    pairs: list[tuple[YamlNode, YamlNode]] = []
    for each in source.items if isinstance(source, YamlList) else (source,):
        if not isinstance(each, YamlMap):
            raise _DocumentError(source.line, "map merge requires map or sequence of maps as value")
        pairs.extend(each.pairs)
    return pairs


def _identity(key: YamlNode) -> object:
    """A value that two keys share when they are equal; a collection as a key equals only itself."""
    return (type(key.value), key.value) if isinstance(key, YamlScalar) else id(key)
