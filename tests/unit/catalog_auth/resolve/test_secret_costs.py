"""Secrets are looked for and taken out in one reading of a text, whatever it is made of."""

from collections.abc import Callable
from time import process_time

import pytest

from tollgate.serve.catalog_auth.registries.secret_shapes import TEXT_LENGTH_MAX, find_secrets
from tollgate.serve.catalog_auth.resolve.secret_removal import WITHHELD, without_secrets

# Some hundred times what one reading takes, a tenth of what a reading for each word takes.
READING_S_MAX = 0.3
HOSTILE = (
    "-eyJ",
    "eyJ",
    "eyJ-",
    "a.",
    "a-",
    "x://a.",
    "glpat-0123456789abcdefghijk ",
    ".eyJaaaaaa",
)


@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize("read", [find_secrets, without_secrets])
def test_a_text_of_one_word_over_and_over_is_read_once(
    unit: str, read: Callable[[str], object]
) -> None:
    text = unit * (TEXT_LENGTH_MAX // len(unit) - 1) + " ://"
    begun_s = process_time()
    read(text)
    assert process_time() - begun_s < READING_S_MAX


def test_secrets_that_differ_are_all_taken_out() -> None:
    text = " ".join(f"glpat-{number:021}" for number in range(1000))
    assert without_secrets(text) == " ".join([WITHHELD] * 1000)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("eyJaaaaa.eyJbbbbb.c", ["eyJaaaaa.eyJbbbbb.c"]),
        ("x-eyJaaaaa.eyJbbbbb.", ["eyJaaaaa.eyJbbbbb."]),
        ("xeyJ-eyJaaaaa.eyJbbbbb.c", ["eyJaaaaa.eyJbbbbb.c"]),
        ("eyJ.eyJaaaaa.eyJbbbbb.c.d", ["eyJaaaaa.eyJbbbbb.c"]),
        (
            "eyJaaaaaeyJ.eyJbbbbb.c eyJaaaaa.eyJddddd.",
            ["eyJaaaaaeyJ.eyJbbbbb.c", "eyJaaaaa.eyJddddd."],
        ),
        ("eyJaaaa.eyJbbbbb.c", []),
        ("eyJ-glpat-0123456789abcdefghijk", ["glpat-0123456789abcdefghijk"]),
    ],
)
def test_a_token_is_found_from_its_first_mark_on(text: str, found: list[str]) -> None:
    assert [secret.value for secret in find_secrets(text)] == found


@pytest.mark.parametrize(
    ("url", "left"),
    [
        ("https://u:p@host/a", "https://host/a"),
        ("see x+https://u@host/a", "see x+https://host/a"),
        ("abfss://c:p@host/k", "abfss://c@host/k"),
        ("abfs://c@host/k", "abfs://c@host/k"),
        ("myabfs://c:p@host/k", "myabfs://host/k"),
    ],
)
def test_the_user_in_an_address_is_found_by_the_mark_behind_its_scheme(url: str, left: str) -> None:
    assert without_secrets(url) == left
