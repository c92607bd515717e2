"""What is near enough to be meant."""

import pytest

from tollgate.serve.catalog_auth.document.near_misses import CANDIDATES_MAX, LENGTH_MAX, nearest

NAMES = ["login", "api-key", "s3", "o"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Login", "login"),
        (" login ", "login"),
        ("api_key", "api-key"),
        ("APIKEY", "api-key"),
        ("logn", "login"),
        ("loginn", "login"),
        ("lagin", "login"),
        ("lgoin", "login"),
        ("oo", "o"),
        ("s4", "s3"),
        ("logan1", None),
        ("", None),
        ("lo", "o"),
        ("staff", None),
        ("--", None),
    ],
)
def test_what_is_meant(text: str, meant: str | None) -> None:
    assert nearest(text, NAMES) == meant


def test_the_same_name_is_not_meant() -> None:
    assert nearest("login", ["login"]) is None


def test_case_and_punctuation_come_before_a_changed_letter() -> None:
    assert nearest("Login", ["Logins", "login"]) == "login"


def test_long_texts_and_many_candidates_are_left_alone() -> None:
    long = "x" * (LENGTH_MAX + 1)
    assert nearest(long, [long.upper()]) is None
    assert nearest("x", [long, *("other" for _ in range(CANDIDATES_MAX)), "X"]) is None
