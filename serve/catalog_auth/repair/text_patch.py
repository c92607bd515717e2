"""Applies a patch to a JSON text: what no step changes stays byte for byte.

The text is read into a tree that keeps every blank, comma and number as it was written; steps
change the tree; the tree is written out. What is new takes the indentation of its neighbours.
A member that stands twice counts with its last value, as everywhere: a step changes that one, and
a removal removes all of them, or an earlier one would come back.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.repair.json_patch import END
from tollgate.serve.catalog_auth.rules.findings import Fix, Operation

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++')
_INDENT = re.compile(r"\n([ \t]*)\Z")
_UNIT = re.compile(r"[{\[]\s*?\n([ \t]+)\S")


@dataclass(slots=True)
class _Entry:
    """A member or an entry with the blanks around it: `before` its name or value, `colon` between
    the two, `after` the value."""

    node: "_Node"
    before: str = ""
    name: str | None = None
    name_text: str = ""
    colon: str = ""
    after: str = ""


@dataclass(slots=True)
class _Node:
    """A value: its text, or the entries between its brackets. `blank`: what an empty one holds.
    `places`: of each member, the last place among the entries, once somebody has asked."""

    text: str = ""
    brackets: str = ""
    entries: list[_Entry] = field(default_factory=list)
    blank: str = ""
    places: dict[str | None, int] | None = None


def patched_text(text: str, steps: Fix) -> str:
    """The text after all steps, in order. `text` is known to be well-formed, and the steps to fit
    it."""
    start, root, end = _read(text)
    style = _Style(text)
    top = _Entry(root)
    for step in steps:
        if step.op == "move":
            assert step.source is not None, "a move has a source"
            style.move(top, step.source, step.path)
        elif step.op == "remove":
            _remove(top, step.path)
        else:
            style.put(top, step)
    return start + "".join(_written(top.node)) + end


class _Style:
    """The ways in which a text is indented and spaced."""

    def __init__(self, text: str) -> None:
        unit = _UNIT.search(text)
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._unit = unit[1] if unit else None
        is_compact = unit is None and '": ' not in text
        self._separators = (",", ":") if is_compact else (", ", ": ")

    def put(self, top: _Entry, step: Operation) -> None:
        """An `add` or a `replace`."""
        if not step.path:
            top.node = self._node(step.value, "")
            return
        owner = _at(top, step.path[:-1])
        found = _index(owner.node, step.path[-1])
        is_replaced = found is not None and (step.op == "replace" or owner.node.brackets == "{}")
        if is_replaced and found is not None:
            entry = owner.node.entries[found]
            entry.node = self._node(step.value, _indent_of(entry))
            return
        entry = self._new(owner, step.path[-1])
        entry.node = self._node(step.value, _indent_of(entry))

    def move(self, top: _Entry, source: Path, target: Path) -> None:
        if source == target:
            return
        owner = _at(top, source[:-1])
        index = _index(owner.node, source[-1])
        assert index is not None, "the step fits"
        entry = owner.node.entries[index]
        if source[:-1] == target[:-1] and owner.node.brackets == "{}":
            name = str(target[-1])
            _remove(top, target, is_required=False)
            entry.name, entry.name_text = name, json.dumps(name, ensure_ascii=False)
            owner.node.places = None
            return
        _remove(top, source)
        there = _at(top, target[:-1])
        index = _index(there.node, target[-1])
        if index is not None and there.node.brackets == "{}":
            there.node.entries[index].node = entry.node
        else:
            self._new(there, target[-1]).node = entry.node

    def _new(self, owner: _Entry, step: str | int) -> _Entry:
        """A new entry, without its value, beside those that are there."""
        entries = owner.node.entries
        index = step if isinstance(step, int) else len(entries)
        entry = _Entry(_Node())
        if not entries:
            entry.before, entry.after = self._around_the_first(owner)
        else:
            # (the first one's blank follows a bracket, all others' follow a comma)
            neighbour = entries[-1] if index > 0 or len(entries) == 1 else entries[1]
            is_on_lines = "\n" in entries[0].before
            comma_blank = self._separators[0][1:]
            entry.colon = neighbour.colon
            if index == 0:
                entry.before = entries[0].before
                if not is_on_lines:
                    entries[0].before = comma_blank if len(entries) == 1 else entries[1].before
            else:
                entry.before = neighbour.before
                if len(entries) == 1 and not is_on_lines:
                    entry.before = comma_blank
            if index == len(entries):
                entry.after, entries[-1].after = entries[-1].after, ""
        if owner.node.brackets == "{}":
            entry.name = str(step)
            entry.name_text = json.dumps(entry.name, ensure_ascii=False)
            entry.colon = entry.colon or self._separators[1]
        entries.insert(index, entry)
        if owner.node.places is not None:
            owner.node.places[entry.name] = index
        owner.node.blank = ""
        return entry

    def _around_the_first(self, owner: _Entry) -> tuple[str, str]:
        """The blanks before and after the only entry."""
        found = _INDENT.search(owner.before)
        if self._unit is None or found is None:
            return "", ""
        outer = f"{self._newline}{found[1]}"
        return f"{outer}{self._unit}", outer

    def _node(self, value: JsonValue, indent: str | None) -> _Node:
        """A value as it would be written at that indentation; None: on one line."""
        is_on_lines = indent is not None and self._unit is not None
        if not is_on_lines:
            return _read(json.dumps(value, ensure_ascii=False, separators=self._separators))[1]
        text = json.dumps(value, ensure_ascii=False, indent=self._unit)
        return _read(text.replace("\n", f"{self._newline}{indent}"))[1]


def _indent_of(entry: _Entry) -> str | None:
    """The indentation of an entry that begins a line; None for one that does not."""
    found = _INDENT.search(entry.before)
    return found[1] if found else None


def _at(top: _Entry, path: Path) -> _Entry:
    entry = top
    for step in path:
        index = _index(entry.node, step)
        assert index is not None, "the step fits"
        entry = entry.node.entries[index]
    return entry


def _index(node: _Node, step: str | int) -> int | None:
    """The place of an entry; of a member that is repeated, the last."""
    if node.brackets == "{}":
        if node.places is None:
            node.places = {entry.name: index for index, entry in enumerate(node.entries)}
        return node.places.get(str(step))
    if step == END or not isinstance(step, int) or step >= len(node.entries):
        return None
    return step


def _remove(top: _Entry, path: Path, *, is_required: bool = True) -> None:
    owner = _at(top, path[:-1])
    index = _index(owner.node, path[-1])
    assert index is not None or not is_required, "the step fits"
    while index is not None:
        entries = owner.node.entries
        gone = entries.pop(index)
        owner.node.places = None
        if entries and index == 0:
            entries[0].before = gone.before
        elif entries and index == len(entries):
            entries[-1].after = gone.after
        index = _index(owner.node, path[-1]) if owner.node.brackets == "{}" else None


def _read(text: str) -> tuple[str, _Node, str]:
    """The text before the value, the value, the text after it. Takes no stack for deep texts."""
    top = _Entry(_Node())
    open_entries: list[_Entry] = []
    here = top  # the entry whose value or name comes next
    end = 0  # of the token before
    for match in _TOKEN.finditer(text):
        token, blank = match[0], text[end : match.start()]
        end = match.end()
        owner = open_entries[-1].node if open_entries else None
        if token in ("}", "]"):
            assert owner is not None, "it is well-formed"
            if owner.entries:
                owner.entries[-1].after = blank
            else:
                owner.blank = blank
            open_entries.pop()
        elif token == ",":
            assert owner is not None, "it is well-formed"
            owner.entries[-1].after = blank
        elif token == ":":
            here.colon = f"{blank}:"
        elif owner is not None and owner.brackets == "{}" and not here.colon:
            here = _Entry(_Node(), blank, json.loads(token), token)
            owner.entries.append(here)
            continue
        else:
            if owner is not None and owner.brackets == "[]":
                here = _Entry(_Node(), blank)
                owner.entries.append(here)
            elif owner is not None:
                here.colon += blank
            else:
                here.before = blank
            if token in ("{", "["):
                here.node.brackets = "{}" if token == "{" else "[]"
                open_entries.append(here)
            else:
                here.node.text = token
        if token != ":":
            here = _Entry(_Node())
    return top.before, top.node, text[end:]


def _written(root: _Node) -> Iterator[str]:
    rest: list[_Node | str] = [root]
    while rest:
        node = rest.pop()
        if isinstance(node, str):
            yield node
        elif not node.brackets:
            yield node.text
        else:
            yield node.brackets[0]
            parts: list[_Node | str] = [node.blank]
            for number, entry in enumerate(node.entries):
                comma = "," if number else ""
                parts.append(f"{comma}{entry.before}{entry.name_text}{entry.colon}")
                parts += [entry.node, entry.after]
            rest.append(node.brackets[1])
            rest += reversed(parts)
