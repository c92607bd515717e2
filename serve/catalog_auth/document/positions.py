"""Lines and columns of values in a JSON text, and its repeated members: what decoding forgets.

Reads a text that was decoded before, so it is known to be well-formed. Slower than decoding by far,
which is why nobody asks before there is a finding, or a reason to suspect a repetition.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec.json import encode

from tollgate.serve.catalog_auth.document.paths import Path

# What is quoted by a backslash, and so is no end of a text.
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],]|[^\s{}\[\],:"]++')

# So many repeated members are told apart; whoever has more is told of these.
REPEATED_MAX = 100


@dataclass(frozen=True, slots=True)
class TextPosition:
    """Both count from 1; columns are characters."""

    line: int
    column: int


@dataclass(slots=True)
class _Node:
    """A wanted place, with what is wanted below it."""

    offset: int | None = None
    inner: dict[str | int, "_Node"] = field(default_factory=dict)


def positions(raw: bytes, paths: Iterable[Path]) -> dict[Path, TextPosition]:
    """The place of each path: the name of a member, the beginning of anything else. What does not
    exist stands where the nearest thing above it does."""
    wanted = list(paths)
    root = _Node(0)
    for path in wanted:
        node = root
        for step in path:
            node = node.inner.setdefault(step, _Node())
    text = raw.decode()
    _find(text, root)
    line_ends = [match.start() for match in re.finditer("\n", text)]
    return {path: _place(_nearest(root, path), line_ends) for path in wanted}


def _nearest(root: _Node, path: Path) -> int:
    offset, node = 0, root
    for step in path:
        node = node.inner[step]
        if node.offset is None:
            break
        offset = node.offset
    return offset


def _place(offset: int, line_ends: list[int]) -> TextPosition:
    line = bisect_left(line_ends, offset)
    before = line_ends[line - 1] if line else -1
    return TextPosition(line + 1, offset - before)


def _find(text: str, root: _Node) -> None:
    """Notes the offset of every wanted value. A repeated member counts where it is last."""
    open_nodes: list[_Node | None] = []  # of the containers that are open: what is wanted in each
    here: _Node | None = root  # what is wanted of the value to come
    for step, offset, token in _steps(text):
        if token in ("}", "]"):
            open_nodes.pop()
            continue
        if step is not None:
            within = open_nodes[-1]
            here = None if within is None else within.inner.get(step)
            if here is not None:
                here.offset = offset
        if token in ("{", "["):
            open_nodes.append(here)


def _steps(text: str) -> Iterator[tuple[str | int | None, int, str]]:
    """(step, offset, token) of all that begins or ends a value: the step that leads to it from its
    container, where there is one, and where that step stands."""
    indices: list[int] = []  # of the containers that are open: the index to come, -1 in an object
    name: str | None = None
    name_offset = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == ",":
            continue
        if token in ("}", "]"):
            indices.pop()
            yield None, match.start(), token
            continue
        if not indices:
            yield None, match.start(), token[0]
        elif indices[-1] >= 0:
            yield indices[-1], match.start(), token[0]
            indices[-1] += 1
        elif name is None:
            name = json.loads(token) if "\\" in token else token[1:-1]
            name_offset = match.start()
            continue
        else:
            yield name, name_offset, token[0]
            name = None
        if token in ("{", "["):
            indices.append(-1 if token == "{" else 0)


def repeats_members(raw: bytes, root: object) -> bool:
    """Tells whether an object in the text that `root` was decoded from has a member twice.

    Decoding keeps the last of them. So what was decoded, written anew, has fewer strings than there
    were; and a string is two quotation marks, however it is written.
    """
    try:
        return _quotation_marks(raw) != _quotation_marks(encode(root))
    except RecursionError:  # (it could be read, and is too deep to be written)
        return True


def _quotation_marks(text: bytes) -> int:
    return (_ESCAPE.sub(b"", text) if b"\\" in text else text).count(b'"')


def repeated_members(raw: bytes) -> list[Path]:
    """The path of each member that its object has more than once, each once, in the order of their
    second appearances."""
    found: dict[Path, None] = {}
    path: list[str | int] = []
    names: list[set[str | int]] = []  # of the containers that are open: the members so far
    for step, _, token in _steps(raw.decode()):
        if token in ("}", "]"):
            names.pop()
            continue
        if step is not None:
            del path[len(names) - 1 :]
            path.append(step)
            if step in names[-1]:
                found[tuple(path)] = None
                if len(found) == REPEATED_MAX:
                    break
            names[-1].add(step)
        if token in ("{", "["):
            names.append(set())
    return list(found)
