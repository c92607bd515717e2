"""Applies the steps of a fix to a document: JSON Patch (RFC 6902), on paths instead of pointers.

The document is left as it is. The result shares with it everything the steps do not lead through,
so that a step costs the members on its way, not the document.
"""

from collections.abc import Iterable

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.document.paths import Path, pointer
from tollgate.serve.catalog_auth.rules.findings import Fix, Operation

# The index of RFC 6902 for "behind the last one".
END = "-"


class PatchError(ValueError):
    """A step does not fit the document: it leads to what is not there."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"there is nothing at {pointer(path) or 'the root'!r}")


def patched(root: JsonValue, steps: Fix) -> JsonValue:
    """The document after all steps, in order.

    Raises:
        PatchError: a step leads to what is not there.
    """
    for step in steps:
        value = step.value
        if step.op == "move":
            assert step.source is not None, "a move has a source"
            value = value_at(root, step.source)
            root = _changed(root, step.source, "remove", None)
        root = _changed(root, step.path, step.op, value)
    return root


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


def _changed(root: JsonValue, path: Path, op: str, value: JsonValue) -> JsonValue:
    """The document with one place changed; owners on the way to it are copied."""
    if not path:
        if op == "remove":
            raise PatchError(path)
        return value
    owners = [root]
    for number, step in enumerate(path[:-1], start=1):
        owners.append(_inner(owners[-1], step, path[:number]))
    changed = _edited(owners.pop(), path, op, value)
    for owner, step in zip(reversed(owners), reversed(path[:-1]), strict=True):
        copy = owner.copy()  # type: ignore[union-attr]
        copy[step] = changed  # type: ignore[index]
        changed = copy
    return changed


def _edited(owner: JsonValue, path: Path, op: str, value: JsonValue) -> JsonValue:
    """A copy of the owner of what is at `path`, with that added, replaced or removed."""
    step = path[-1]
    is_new = op in ("add", "move")
    if not is_new:
        _inner(owner, step, path)
    if isinstance(owner, dict) and isinstance(step, str):
        members = owner.copy()
        if op == "remove":
            del members[step]
        else:
            members[step] = value
        return members
    if isinstance(owner, list) and (isinstance(step, int) or step == END):
        index = len(owner) if isinstance(step, str) else step
        if not 0 <= index <= len(owner):
            raise PatchError(path)
        entries = owner.copy()
        entries[index : index if is_new else index + 1] = [] if op == "remove" else [value]
        return entries
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
