"""The shapes that the schemas of all versions ask for."""

from collections.abc import Mapping

from tollgate.serve.catalog_auth.document.document import PREFIX


def are_strings(value: Mapping[str, object], *names: str) -> bool:
    """Tells whether those of these members that are there are strings."""
    return all(isinstance(value[name], str) for name in names if name in value)


def has_no_other(value: Mapping[str, object], *allowed: str) -> bool:
    """Tells whether no other member than these has the extension's prefix."""
    return all(name in allowed for name in value if name.startswith(PREFIX))
