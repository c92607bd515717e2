"""The way to a value while a document is walked: a path is made of it only when it is needed.

A path for every value of a document would take room and time by its depth squared.
"""

from tollgate.serve.catalog_auth.rules.findings import Path

# The last step first; None is the root.
ReversePath = tuple["ReversePath", str | int] | None


def forward_path(reverse_path: ReversePath) -> Path:
    """The steps from the root."""
    steps: list[str | int] = []
    while reverse_path is not None:
        reverse_path, step = reverse_path
        steps.append(step)
    return tuple(reversed(steps))
