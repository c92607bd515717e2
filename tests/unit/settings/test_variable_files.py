"""Files of environment variables, as shells and docker read them."""

import pytest

from tollgate.serve.commands.environment.variable_file import (
    LINES_MAX,
    OddLine,
    Variable,
    read_variables,
)


def of_shell(text: str) -> list[Variable | OddLine]:
    return list(read_variables(text, is_docker=False))


def of_docker(text: str) -> list[Variable | OddLine]:
    return list(read_variables(text, is_docker=True))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("  A=b  ", "b"),
        ("export A=b", "b"),
        ("export   A=b", "b"),
        ("A=", ""),
        ("A=''", ""),
        ("A=b c", "b c"),
        ("A=b=c", "b=c"),
        ("A='b c'", "b c"),
        ('A="b c"', "b c"),
        ('A="b" # why', "b"),
        ("A=b # why", "b"),
        ("A=b#c", "b#c"),
        ("A='b # c'", "b # c"),
        ("A= # nothing", ""),
        (r'A="say \"hi\" \\ \$x \n"', r'say "hi" \ $x \n'),
        (r"A='a\b'", r"a\b"),
        ('A="it\'s"', "it's"),
        ("A='a'b\"c\"", "abc"),
        ("A=' b '", " b "),
        ("A=b\r", "b"),
        ("A=^a\\.(.*)$", "^a\\.(.*)$"),
    ],
)
def test_a_line_as_a_shell_reads_it(line: str, value: str) -> None:
    assert of_shell(line) == [Variable(1, "A", value)]


@pytest.mark.parametrize(
    ("line", "value", "note"),
    [
        ("A=b", "b", ""),
        ("  A=b ", "b ", ""),
        ("A=b # c", "b # c", ""),
        ("A=", "", ""),
        ("A='b'", "'b'", "the quotes are part of the value"),
        ('A="b"', '"b"', "the quotes are part of the value"),
        ("A=b=c", "b=c", ""),
        ("A=$B", "$B", ""),
    ],
)
def test_a_line_as_docker_reads_it(line: str, value: str, note: str) -> None:
    assert of_docker(line) == [Variable(1, "A", value, note)]


@pytest.mark.parametrize(
    ("line", "told"), [("A=$B", "$B"), ("A=x${B}", "${B}"), ('A="$(date)"', "$")]
)
def test_what_a_shell_would_expand_is_told(line: str, told: str) -> None:
    (found,) = of_shell(line)
    assert isinstance(found, Variable)
    assert found.note == f"{told} in it is taken as it stands"


@pytest.mark.parametrize("line", ["A='$B'", r'A="\$B"', "A=5$", "A=a$ b"])
def test_what_no_shell_would_expand_is_not(line: str) -> None:
    (found,) = of_shell(line)
    assert isinstance(found, Variable)
    assert found.note == ""


@pytest.mark.parametrize("read", [of_shell, of_docker])
def test_lines_are_numbered_and_comments_are_none(read: object) -> None:
    assert callable(read)
    text = "\ufeff# first\n\nA=1\n   \n  # more\nB\nA=2\n"
    assert read(text) == [Variable(3, "A", "1"), Variable(6, "B", None), Variable(7, "A", "2")]


def test_an_exported_name_alone_has_no_value() -> None:
    assert of_shell("export A") == [Variable(1, "A", None)]
    assert of_shell("A # from the machine") == [Variable(1, "A", None)]


@pytest.mark.parametrize("line", ["=b", "A B=c", "1A=b", "A-B=c", "set -a; . ./x", "[section]"])
@pytest.mark.parametrize("read", [of_shell, of_docker])
def test_a_line_that_sets_nothing_is_told_and_not_quoted(line: str, read: object) -> None:
    assert callable(read)
    assert read(line) == [OddLine(1, "is not written NAME=VALUE")]


@pytest.mark.parametrize("line", ["A='b", 'A="b', 'A="b\\"', "A='it's'"])
def test_a_quote_that_does_not_end_is_told(line: str) -> None:
    assert of_shell(line) == [OddLine(1, "has a quote that does not end on this line")]


def test_a_file_without_end_is_read_so_far() -> None:
    *_, last, odd = of_shell("A=1\n" * (LINES_MAX + 5))
    assert last == Variable(LINES_MAX, "A", "1")
    assert isinstance(odd, OddLine)
