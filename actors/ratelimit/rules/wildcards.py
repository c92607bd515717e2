"""Wildcard patterns of sibling rules, and the first of them that a text meets (B2).

A pattern is split at every `*`: its first literal is a prefix of the text, its last a suffix, the
others follow each other in what is left between. A `*` stands for any characters, none included.
Of several patterns that match, the one declared first wins; looking them up by prefix spares the
walk over all of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern with at least one `*`, split; `length_min`: of all its literals together."""

    prefix: str
    middles: tuple[str, ...]
    suffix: str
    length_min: int

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        assert "*" in text, "a pattern holds a wildcard"
        prefix, *middles, suffix = text.split("*")
        length_min = len(text) - text.count("*")
        return cls(prefix, tuple(each for each in middles if each), suffix, length_min)

    def matches(self, text: str) -> bool:
        if len(text) < self.length_min:
            return False
        if not (text.startswith(self.prefix) and text.endswith(self.suffix)):
            return False
        start, end = len(self.prefix), len(text) - len(self.suffix)
        for literal in self.middles:
            found = text.find(literal, start, end)
            if found < 0:
                return False
            start = found + len(literal)
        return True


@dataclass(frozen=True, slots=True)
class Wildcards:
    """Patterns in the order they were declared; `by_prefix` holds their positions, ascending."""

    patterns: tuple[Pattern, ...] = ()
    by_prefix: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    prefix_lengths: tuple[int, ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Wildcards":
        patterns = tuple(map(Pattern.parse, texts))
        positions: defaultdict[str, list[int]] = defaultdict(list)
        for position, pattern in enumerate(patterns):
            positions[pattern.prefix].append(position)
        by_prefix = {prefix: tuple(found) for prefix, found in positions.items()}
        return cls(patterns, by_prefix, tuple(sorted({len(each) for each in by_prefix})))

    def first_match(self, text: str) -> int | None:
        """The position of the first declared pattern that matches."""
        first: int | None = None
        for length in self.prefix_lengths:
            for position in self.by_prefix.get(text[:length], ()):
                if first is not None and position > first:
                    break
                if self.patterns[position].matches(text):
                    first = position
                    break
        return first
