"""Names that are nearly another name: case, blanks, punctuation, or one letter."""

import re
from collections.abc import Iterable

# Longer texts are not compared; nor with more candidates than these.
LENGTH_MAX = 100
CANDIDATES_MAX = 500

_NOT_A_LETTER = re.compile(r"[\W_]+")


def nearest(text: str, candidates: Iterable[str]) -> str | None:
    """The candidate that differs from the text in nothing but case, blanks and punctuation, or
    else the first that is one change of a letter away; None when there is none."""
    if not text or len(text) > LENGTH_MAX:
        return None
    others = [
        other
        for other, _ in zip(candidates, range(CANDIDATES_MAX), strict=False)
        if other and other != text and len(other) <= LENGTH_MAX
    ]
    plain = _plain(text)
    for other in others:
        if plain and _plain(other) == plain:
            return other
    for other in others:
        if abs(len(other) - len(text)) <= 1 and _is_one_change(text, other):
            return other
    return None


def _plain(text: str) -> str:
    return _NOT_A_LETTER.sub("", text).casefold()


def _is_one_change(one: str, other: str) -> bool:
    """One letter is another, is too many, is missing, or two neighbours are swapped."""
    if len(one) > len(other):
        one, other = other, one
    start = 0
    while start < len(one) and one[start] == other[start]:
        start += 1
    if len(one) < len(other):
        return one[start:] == other[start + 1 :]
    if one[start + 1 :] == other[start + 1 :]:
        return True
    pair = one[start : start + 2]
    return pair[::-1] == other[start : start + 2] and one[start + 2 :] == other[start + 2 :]
