"""The way to a value while a document is walked: a path is made of it only when it is needed.

A path for every value of a document would take room and time by its depth squared.
"""

from tollgate.serve.catalog_auth.rules.findings import Path

# The last step first; None is the root.
Trail = tuple["Trail", str | int] | None


def path_of(trail: Trail) -> Path:
    """The steps from the root."""
    steps: list[str | int] = []
    while trail is not None:
        trail, step = trail
        steps.append(step)
    return tuple(reversed(steps))
