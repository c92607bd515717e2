"""Wildcard patterns: what they match, and which of several is met first (B2)."""

import pytest

from tollgate.actors.ratelimit.rules.wildcards import Pattern, Wildcards


@pytest.mark.parametrize(
    ("pattern", "text", "is_match"),
    [
        ("*", "", True),
        ("*", "anything/at.all_", True),
        ("a*", "a", True),
        ("a*", "ba", False),
        ("*a", "ba", True),
        ("*a", "ab", False),
        ("a*b", "ab", True),
        ("a*b", "a", False),
        ("a*b", "b", False),
        ("aa*aa", "aaa", False),
        ("aa*aa", "aaaa", True),
        ("a**b", "ab", True),
        ("a**b", "axb", True),
        ("a*b*c", "abc", True),
        ("a*b*c", "acb", False),
        ("a*b*c", "aXbYbZc", True),
        ("a*bb*b", "abbb", True),
        ("a*bb*b", "abb", False),
        ("*b*b*", "b", False),
        ("*b*b*", "xbxbx", True),
        ("*é*", "caféś", True),
        ("a*", "A", False),
        ("a*b", "a\nb", True),
        ("a?*", "ab", False),
        ("[a]*", "a", False),
    ],
)
def test_a_pattern_matches_these_texts_alone(pattern: str, text: str, is_match: bool) -> None:
    assert Pattern.parse(pattern).matches(text) is is_match


@pytest.mark.parametrize(
    ("patterns", "text", "position"),
    [
        ([], "a", None),
        (["a*", "ab*"], "abc", 0),
        (["ab*", "a*"], "abc", 0),
        (["ab*", "a*"], "acc", 1),
        (["abc*d", "ab*", "a*"], "abce", 1),
        (["x*", "*z", "*"], "xz", 0),
        (["y*", "*z", "*"], "xz", 1),
        (["long-prefix*", "l*"], "l", 1),
        (["a*1", "a*2", "a*3"], "a2", 1),
        (["a*1", "b*", "a*3"], "a3", 2),
        (["a*1", "b*"], "c", None),
    ],
)
def test_the_first_of_several(patterns: list[str], text: str, position: int | None) -> None:
    assert Wildcards.of(patterns).first_match(text) == position
