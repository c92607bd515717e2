"""How big a file and a function may be, how wide a line, and what a file may not be called."""

import ast
import re

import pytest

from tests.architecture.trees import nodes

FILE_LINES_MAX = 400
# The thin shells around Ray: whoever needs more has put rules into them.
SHELL_LINES_MAX = 200
SHELLS = ("actor.py", "deployment.py")
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100
# Names that say nothing about what is inside.
BANNED_WORDS = frozenset(
    {"util", "utils", "helper", "helpers", "common", "manager", "base", "misc"}
)


def find_oversize(path: str, text: str) -> list[str]:
    """What is too long in a Python file: itself, or a function in it."""
    lines_max = SHELL_LINES_MAX if path.endswith(SHELLS) else FILE_LINES_MAX
    findings = []
    if (lines := len(text.splitlines())) > lines_max:
        findings.append(f"{path}: {lines} lines, the end is {lines_max}: split it by subject")
    for node in nodes(path, text):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                findings.append(
                    f"{path}:{node.lineno}: {node.name} has {lines} lines, "
                    f"the end is {FUNCTION_LINES_MAX}"
                )
    return findings


def find_wide_lines(path: str, text: str) -> list[str]:
    return [
        f"{path}:{number}: {len(line)} columns, the end is {COLUMNS_MAX}"
        for number, line in enumerate(text.splitlines(), start=1)
        if len(line) > COLUMNS_MAX
    ]


def find_banned_names(path: str) -> list[str]:
    words = set(re.split(r"[/_.]", path.lower()))
    return [
        f"{path}: '{word}' says nothing: name the file after what it holds"
        for word in sorted(words & BANNED_WORDS)
    ]


def test_files_and_functions_are_small(modules: dict[str, str]) -> None:
    findings = [
        line
        for path, text in modules.items()
        # A migration is one list of tables, kept as it once ran.
        if "/migrations/versions/" not in path
        for line in find_oversize(path, text)
    ]
    assert not findings, "\n".join(findings)


def test_lines_are_narrow(texts: dict[str, str]) -> None:
    code = {
        p: t for p, t in texts.items() if p.endswith(".py") or p.startswith(("scripts/", ".ci/"))
    }
    findings = [line for path, text in code.items() for line in find_wide_lines(path, text)]
    assert not findings, "\n".join(findings)


def test_files_are_named_after_what_they_hold(modules: dict[str, str]) -> None:
    findings = [finding for path in modules for finding in find_banned_names(path)]
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize(
    ("path", "lines", "is_found"),
    [
        ("actors/ratelimit/rules/rule_set.py", 401, True),
        ("actors/ratelimit/rules/rule_set.py", 400, False),
        ("actors/ratelimit/actor.py", 201, True),
        ("serve/ratelimit/deployment.py", 201, True),
        ("serve/ratelimit/deployment.py", 200, False),
    ],
)
def test_a_long_file_is_found(path: str, lines: int, is_found: bool) -> None:
    assert bool(find_oversize(path, "x = 1\n" * lines)) is is_found


@pytest.mark.parametrize("head", ["def f():", "async def f():", "class A:\n  def f(self):"])
@pytest.mark.parametrize(("lines", "is_found"), [(71, True), (70, False)])
def test_a_long_function_is_found(head: str, lines: int, is_found: bool) -> None:
    text = head + "\n    x = 1" * (lines - 1)
    findings = find_oversize("actors/ratelimit/rules/rule_set.py", text)
    assert bool(findings) is is_found
    assert all(f"f has {lines} lines" in finding for finding in findings)


def test_a_wide_line_is_found() -> None:
    assert find_wide_lines("a.py", "x" * 100) == []
    assert find_wide_lines("a.py", "\n" + "x" * 101) == ["a.py:2: 101 columns, the end is 100"]


@pytest.mark.parametrize(
    "path",
    [
        "actors/kernel/utils.py",
        "actors/ledger/helpers.py",
        "serve/common/money.py",
        "serve/ratelimit/front_base.py",
        "serve/payments/session_manager.py",
        "tests/unit/test_misc.py",
    ],
)
def test_a_name_that_says_nothing_is_found(path: str) -> None:
    assert find_banned_names(path)


def test_a_name_that_says_something_passes() -> None:
    assert find_banned_names("serve/ratelimit/database_basement.py") == []
