"""Paths to the values of a document, and JSON Pointers (RFC 6901).

While a document is walked, the way to a value is a chain of steps, of which a path is made only
when it is needed: a path for every value would take room and time by its depth squared.
"""

from collections.abc import Iterable

# Steps from the root of a document: names of members and indices of lists.
Path = tuple[str | int, ...]
# The last step first; None is the root.
ReversePath = tuple["ReversePath", str | int] | None


def forward_path(reverse_path: ReversePath) -> Path:
    """The steps from the root."""
    steps: list[str | int] = []
    while reverse_path is not None:
        reverse_path, step = reverse_path
        steps.append(step)
    return tuple(reversed(steps))


def pointer(path: Iterable[str | int]) -> str:
    """The JSON Pointer (RFC 6901) of a path; the root's is empty."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def length_of(path: Path) -> int:
    """The characters of a path's pointer, more or less."""
    return sum([len(step) + 1 if type(step) is str else 2 for step in path])
