"""Pointers, severities, and how values and secrets appear in messages."""

import pytest

from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.shown_values import SHOWN_LENGTH_MAX, redacted, shown
from tollgate.serve.catalog_auth.rules.findings import Severity


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("assets", "a/b", "auth:refs", 0), "/assets/a~1b/auth:refs/0"),
        (("~1", ""), "/~01/"),
    ],
)
def test_a_pointer_is_escaped(path: tuple[str | int, ...], text: str) -> None:
    assert pointer(path) == text


def test_severities_have_an_order() -> None:
    assert sorted(Severity, key=lambda severity: severity.rank) == ["info", "warning", "error"]


def test_of_a_secret_four_characters_and_the_length_are_shown() -> None:
    assert redacted("AKIAIOSFODNN7EXAMPLE") == "AKIA… (20 characters)"
    assert redacted("a\nbcdefg") == "a\\u000abc… (8 characters)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", '"plain"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("line\nbreak", '"line\\nbreak"'),
        ("turn\u202eed", '"turn\\u202eed"'),
        ("delete\x7f", '"delete\\u007f"'),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ([], "[]"),
        ([1, 2], "a list of 2"),
        ({}, "{}"),
        ({"a": 1}, "an object of 1 member"),
        ({"a": 1, "b": 2}, "an object of 2 members"),
    ],
)
def test_a_value_is_shown(value: object, text: str) -> None:
    assert shown(value) == text


def test_a_long_value_is_cut() -> None:
    text = shown("x" * 1_000_000)
    assert len(text) == SHOWN_LENGTH_MAX + 1
    assert text.endswith("x…")
