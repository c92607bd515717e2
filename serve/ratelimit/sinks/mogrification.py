"""Rewrites statistics' names, and finds tags in them (B19): the first mogrifier that matches wins.

`$1` is what the pattern's first group matched, `$0` all that it matched; the number of a group that
does not exist stays as it is written. A tag without a value is left out.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tollgate.actors.kernel.bounded_cache import LruCache
from tollgate.serve.settings.outside.expressions import Expression, ExpressionMatch

Tags = tuple[tuple[str, str], ...]

NAMES_MAX = 16_384
"""Names whose outcome is remembered, for a pattern costs more than all else about a line."""
_GROUP = re.compile(r"\$([0-9]+)")


@dataclass(frozen=True, slots=True)
class Rewriting:
    """One mogrifier: `pattern` may match anywhere in a name; `name` takes its place as a whole."""

    pattern: Expression
    name: str
    tags: Tags = ()


class Mogrification:
    """All mogrifiers, in their order."""

    def __init__(self, rewritings: Iterable[Rewriting] = ()) -> None:
        self._rewritings = tuple(rewritings)
        self._known: LruCache[str, tuple[str, Tags]] = LruCache(NAMES_MAX)

    def apply(self, name: str) -> tuple[str, Tags]:
        """The name to send, and the tags to add."""
        if not self._rewritings:
            return name, ()
        known = self._known.get(name)
        if known is None:
            known = self._rewritten(name)
            self._known.put(name, known)
        return known

    def _rewritten(self, name: str) -> tuple[str, Tags]:
        for rewriting in self._rewritings:
            found = rewriting.pattern.search(name)
            if found is not None:
                tags = ((key, _filled(value, found)) for key, value in rewriting.tags)
                return _filled(rewriting.name, found), tuple((k, v) for k, v in tags if v)
        return name, ()


def _filled(template: str, found: ExpressionMatch) -> str:
    def group(reference: re.Match[str]) -> str:
        # (compared as numbers with few digits: a template may hold any)
        number = int(reference[1]) if len(reference[1]) < 4 else 1_000
        return reference[0] if number > found.re.groups else found[number] or ""

    return _GROUP.sub(group, template)
