"""Errors about rule files: exact for the wire, one readable line for operators."""

from tollgate.actors.ratelimit.rules.rule_file import (
    LOCATED_MAX,
    RuleFile,
    RuleFileError,
    located_text,
)


def test_an_error_is_exact_and_has_a_line_for_operators() -> None:
    error = RuleFileError("basic.yaml", 3, "descriptor has empty key")
    assert str(error) == "basic.yaml: descriptor has empty key"
    assert error.located == "basic.yaml:3: descriptor has empty key"
    assert RuleFileError("f", None, "x").located == "f: x"


def test_the_operators_line_is_one_line() -> None:
    assert located_text("f\n", 1, "a\tb\u2028\x1b[31m é") == "f\\n:1: a\\tb\\u2028\\x1b[31m é"
    assert str(RuleFileError("f", 1, "a\nb")) == "f: a\nb"
    long = located_text("f", None, "x" * 10 * LOCATED_MAX)
    assert len(long) == LOCATED_MAX + 1
    assert long.endswith("x…")


def test_a_file_s_content_is_its_bytes() -> None:
    assert RuleFile("f", b"\xff").content() == b"\xff"
    assert RuleFile("f", "é\udcff").content() == b"\xc3\xa9\xed\xb3\xbf"
