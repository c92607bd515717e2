"""Applies the steps of a fix to a document: JSON Patch (RFC 6902), on paths instead of pointers.

The document is left as it is. The result shares with it everything the steps do not lead through,
and copies the rest once: steps cost the members on their ways, not the document each.
"""

from collections.abc import Iterable

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.document.paths import Path, pointer
from tollgate.serve.catalog_auth.rules.findings import Operation

# The index of RFC 6902 for "behind the last one".
END = "-"


class PatchError(ValueError):
    """A step does not fit the document: it leads to what is not there."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"there is nothing at {pointer(path) or 'the root'!r}")


def patched(root: JsonValue, steps: Iterable[Operation]) -> JsonValue:
    """The document after all steps, in order.

    Raises:
        PatchError: a step leads to what is not there.
    """
    copies = _Copies()
    for step in steps:
        value = step.value
        if step.op == "move":
            assert step.source is not None, "a move has a source"
            value = value_at(root, step.source)
            root = _changed(root, step.source, "remove", None, copies)
        root = _changed(root, step.path, step.op, value, copies)
    return root


class _Copies:
    """The objects and lists that were copied for the steps so far: nobody else has them, so the
    next step changes them where they are. However many steps lead through one, it is copied once.
    """

    def __init__(self) -> None:
        # (held, or another object might get the same id)
        self._made: dict[int, JsonValue] = {}

    def own(self, value: JsonValue) -> JsonValue:
        """The value, if it is one of the copies, or a new copy of it."""
        if id(value) in self._made or not isinstance(value, dict | list):
            return value
        copy: JsonValue = value.copy()
        self._made[id(copy)] = copy
        return copy


def value_at(root: JsonValue, path: Path) -> JsonValue:
    """The value at a path.

    Raises:
        PatchError: nothing is.
    """
    value = root
    for number, step in enumerate(path, start=1):
        value = _inner(value, step, path[:number])
    return value


def _inner(owner: JsonValue, step: str | int, path: Path) -> JsonValue:
    if isinstance(owner, dict) and isinstance(step, str) and step in owner:
        return owner[step]
    if isinstance(owner, list) and isinstance(step, int) and 0 <= step < len(owner):
        return owner[step]
    raise PatchError(path)


def _changed(root: JsonValue, path: Path, op: str, value: JsonValue, copies: _Copies) -> JsonValue:
    """The document with one place changed; owners on the way to it become copies."""
    if not path:
        if op == "remove":
            raise PatchError(path)
        return value
    owner = root = copies.own(root)
    for number, step in enumerate(path[:-1], start=1):
        inner = copies.own(_inner(owner, step, path[:number]))
        owner[step] = inner  # type: ignore[index]
        owner = inner
    _edit(owner, path, op, value)
    return root


def _edit(owner: JsonValue, path: Path, op: str, value: JsonValue) -> None:
    """Adds, replaces or removes what is at `path` in its owner."""
    step = path[-1]
    is_new = op in ("add", "move")
    if not is_new:
        _inner(owner, step, path)
    if isinstance(owner, dict) and isinstance(step, str):
        if op == "remove":
            del owner[step]
        else:
            owner[step] = value
    elif isinstance(owner, list) and (isinstance(step, int) or step == END):
        index = len(owner) if isinstance(step, str) else step
        if not 0 <= index <= len(owner):
            raise PatchError(path)
        owner[index : index if is_new else index + 1] = [] if op == "remove" else [value]
    else:
        raise PatchError(path)


class Places:
    """Places of a document that steps change or count on, and whether others come near them."""

    def __init__(self) -> None:
        self._touched: set[Path] = set()
        self._around: set[Path] = set()

    def add(self, steps: Iterable[Operation]) -> None:
        for place in _touched(steps):
            self._touched.add(place)
            self._around.update(place[:length] for length in range(len(place) + 1))

    def are_near(self, steps: Iterable[Operation]) -> bool:
        """Tells whether one of the steps is in, at, or around one of these places."""
        return any(
            place in self._around
            or any(place[:length] in self._touched for length in range(len(place)))
            for place in _touched(steps)
        )


def _touched(steps: Iterable[Operation]) -> set[Path]:
    """The places that steps change: a list, when an entry of it comes or goes and others move."""
    places = set()
    for step in steps:
        for path in (step.path, step.source):
            if path is not None:
                is_entry = bool(path) and (isinstance(path[-1], int) or path[-1] == END)
                places.add(path[:-1] if is_entry and step.op != "replace" else path)
    return places
