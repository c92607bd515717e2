"""Regular expressions in the language of the reference (B19)."""

import pytest

from tollgate.serve.settings.outside.expressions import BadExpressionError, compiled


@pytest.mark.parametrize(
    ("expression", "text", "found"),
    [
        ("[[:alnum:]_-]+", "..a_1-é", "a_1-"),
        (r"\w+", "é_a", "_a"),
        ("a$", "a\n", None),
        ("(a|ab)(c|bcd)", "abcd", "abcd"),
        ("(?i)SHOP", "a shop", "shop"),
        (r"b.\z", "ünï bü", "bü"),
        # What UTF-8 has no bytes for is no reason to fail.
        ("a(.)", "\ud800a\udfff", "a?"),
    ],
)
def test_what_is_found(expression: str, text: str, found: str | None) -> None:
    match = compiled(expression).search(text)
    assert (match and match[0]) == found


def test_groups_by_number_and_name() -> None:
    match = compiled("(?P<first>é)(?<second>b)?(c)").search("aécd")
    assert match is not None
    assert [match[number] for number in range(4)] == ["éc", "é", None, "c"]
    assert (match["first"], match["second"]) == ("é", None)
    assert (match.re.groups, dict(match.re.groupindex)) == (3, {"first": 1, "second": 2})


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("(", "missing )"),
        ("a(?!b)", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        ("[[:letter:]]", "invalid character class range"),
        ("\ud800", "it is not UTF-8"),
    ],
)
def test_what_is_no_expression(expression: str, reason: str) -> None:
    with pytest.raises(BadExpressionError, match="^" + reason.replace(")", r"\)")):
        compiled(expression)
