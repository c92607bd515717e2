"""Secrets stay out of messages and fixes."""

from tollgate.serve.catalog_auth.document.redaction import ALIKE_MAX, Redaction
from tollgate.serve.catalog_auth.document.shown_values import redacted, shown

SECRET = "correct-horse-battery"


def of(*secrets: str) -> Redaction:
    redaction = Redaction()
    for secret in secrets:
        redaction.add(secret)
    return redaction


def test_of_a_secret_four_characters_and_the_length_are_said() -> None:
    assert redacted(SECRET) == "corr… (21 characters)"


def test_of_a_short_one_only_the_length() -> None:
    assert redacted("hunter2") == "… (7 characters)"


def test_a_secret_is_covered_wherever_it_stands() -> None:
    told = f"{SECRET}: {SECRET}x and {SECRET}"
    here = redacted(SECRET)
    assert of(SECRET).covered(told) == f"{here}: {here}x and {here}"


def test_what_a_cut_has_left_is_covered() -> None:
    told = f"{shown('x' * 65 + SECRET)} is long"
    assert "corr" in told
    assert "correct" not in of(SECRET).covered(told)


def test_a_secret_is_covered_as_json_writes_it() -> None:
    secret = 'first "line"\nsecond\\line'
    assert "line" not in of(secret).covered(shown(secret))


def test_the_longer_of_two_is_covered_whole() -> None:
    longer = f"{SECRET}-staple"
    assert of(SECRET, longer).covered(longer) == redacted(longer)
    assert of(longer, SECRET).covered(f"{SECRET} and") == f"{redacted(SECRET)} and"


def test_other_text_stays_as_it_is() -> None:
    for told in ("", "corre", "correct-house", "nothing", 'shown "corral…" elsewhere, correct'):
        assert of("correct!").covered(told) == told


def test_of_many_that_begin_alike_none_is_shown() -> None:
    secrets = [f"token-{number:05}" for number in range(3 * ALIKE_MAX)]
    redaction = of(*secrets)
    for secret in secrets:
        assert secret not in redaction.covered(f'the value "{secret}" is wrong')


def test_a_fix_is_searched_through_and_through() -> None:
    redaction = of(SECRET)
    assert redaction.is_in({"a": [{"b": f"x{SECRET}"}]})
    assert redaction.is_in(SECRET)
    assert not redaction.is_in({"a": ["correct"]})
    assert not redaction.is_in(None)
