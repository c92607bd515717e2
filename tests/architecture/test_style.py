"""Habits of this code that no linter knows."""

import ast
import re
from collections.abc import Callable

import pytest

from tests.architecture.trees import nodes

# Here an unforeseen failure becomes an error status and a counter, or the refusal of the one order
# that it is about; everywhere else it is seen.
CATCHES_ALL = r"serve/ratelimit/fronts/\w+\.py|actors/ledger/shard/pipeline\.py"
PRINTS = r"serve/commands/.+|serve/cli\.py|scripts/.+"
SKIPS = r"pytest\.(skip|importorskip|xfail|mark\.(skip|skipif|xfail))|unittest\.skip\w*"
# (to write out every attribute of every file takes seconds)
SKIPS_END = r"skip|importorskip|xfail"
# Put together here, so that this file does not hold what it looks for.
LEFT_OVER = "|".join(["TO" + "DO", "FIX" + "ME"])
REGISTRY_HOSTS = tuple(
    f"{name}.{top}"
    for name, top in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("debian", "org"),
        ("ubuntu", "com"),
        ("crates", "io"),
        ("golang", "org"),
    )
)
MACHINE_PATH = r"(?<![\w.~$}-])/(?:root|home|work|Users)/\w"

# (path, text) -> one line per finding
Finder = Callable[[str, str], list[str]]


def find_catch_alls(path: str, text: str) -> list[str]:
    if re.fullmatch(CATCHES_ALL, path):
        return []
    findings = []
    for node in nodes(path, text):
        match node:
            case ast.ExceptHandler(type=None):
                caught = {"everything"}
            case ast.ExceptHandler(type=ast.expr() as kind):
                caught = {part.id for part in ast.walk(kind) if isinstance(part, ast.Name)}
            case ast.Call(
                args=args,
                func=ast.Name("suppress") | ast.Attribute(ast.Name("contextlib"), "suppress"),
            ):
                caught = {part.id for part in args if isinstance(part, ast.Name)}
            case _:
                continue
        if caught & {"Exception", "BaseException", "everything"}:
            findings.append(f"{path}:{node.lineno}: catches all: name what can be handled here")
    return findings


def find_prints(path: str, text: str) -> list[str]:
    if re.fullmatch(PRINTS, path):
        return []
    return [
        f"{path}:{node.lineno}: prints: log it, or return it to whoever prints"
        for node in nodes(path, text)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]


def find_skips(path: str, text: str) -> list[str]:
    return [
        f"{path}:{node.lineno}: {ast.unparse(node)}: a test runs, or it is deleted"
        for node in nodes(path, text)
        if isinstance(node, ast.Attribute)
        and re.match(SKIPS_END, node.attr)
        and re.fullmatch(SKIPS, ast.unparse(node))
    ]


def find_in_lines(path: str, text: str, pattern: str, what_to_do: str) -> list[str]:
    return [
        f"{path}:{number}: {found.group()}: {what_to_do}"
        for number, line in enumerate(text.splitlines(), start=1)
        for found in re.finditer(pattern, line)
    ]


def find_bare_ignores(path: str, text: str) -> list[str]:
    return find_in_lines(path, text, r"#\s*type:\s*ignore(?!\[)", "say which error, in brackets")


def find_left_overs(path: str, text: str) -> list[str]:
    return find_in_lines(path, text, rf"\b({LEFT_OVER})\b", "do it, or let it go")


def find_machine_words(path: str, text: str) -> list[str]:
    hosts = "|".join(map(re.escape, REGISTRY_HOSTS))
    return find_in_lines(path, text, hosts, "no registry is named: any will do") + find_in_lines(
        path, text, MACHINE_PATH, "this path is only on one machine"
    )


def find_loose_tests(paths: list[str]) -> list[str]:
    """A test stands in the folder of its service, inside its tier; the rules of the tree itself
    and the two tests of a tier's price do not belong to any."""
    return [
        f"{path}: move it to tests/<tier>/<service>/"
        for path in paths
        if re.fullmatch(r"tests/(?!architecture/)(\w+/)?test_\w+\.py", path)
        and not re.fullmatch(r"tests/(\w+)/test_price_of_\1\.py", path)
    ]


IN_MODULES: list[Finder] = [find_catch_alls, find_prints, find_skips, find_bare_ignores]
IN_ALL_FILES: list[Finder] = [find_left_overs, find_machine_words]


@pytest.mark.parametrize("find", IN_MODULES)
def test_modules_keep_the_habits(find: Finder, modules: dict[str, str]) -> None:
    findings = [line for path, text in modules.items() for line in find(path, text)]
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize("find", IN_ALL_FILES)
def test_all_files_keep_the_habits(find: Finder, texts: dict[str, str]) -> None:
    findings = [line for path, text in texts.items() for line in find(path, text)]
    assert not findings, "\n".join(findings)


def test_tests_stand_in_folders_of_services(modules: dict[str, str]) -> None:
    assert not find_loose_tests(list(modules))
    # (pytest imports tests by their path: files of one name in several folders are well)
    assert not [path for path in modules if re.fullmatch(r"tests/(.*/)?__init__\.py", path)]


TRY = "try:\n    f()\nexcept"
BAD: list[tuple[Finder, str, str]] = [
    (find_catch_alls, "actors/ratelimit/actor.py", f"{TRY} Exception:\n    pass"),
    (find_catch_alls, "serve/ratelimit/codec/requests.py", f"{TRY}:\n    pass"),
    (
        find_catch_alls,
        "serve/ratelimit/codec/requests.py",
        f"{TRY} (ValueError, Exception) as e:\n    pass",
    ),
    (find_catch_alls, "serve/payments/front_door.py", f"{TRY} BaseException:\n    raise"),
    (find_catch_alls, "serve/cli.py", "with contextlib.suppress(Exception):\n    f()"),
    (find_prints, "actors/ratelimit/actor.py", "def f():\n    print('here')"),
    (find_prints, "tests/unit/ratelimit/counting/test_windows.py", "print('here')"),
    (find_skips, "tests/unit/test_a.py", "@pytest.mark.skip\ndef test_a(): ..."),
    (find_skips, "tests/unit/test_a.py", "@pytest.mark.skipif(True, reason='')\ndef test_a(): ..."),
    (find_skips, "tests/unit/test_a.py", "@pytest.mark.xfail\ndef test_a(): ..."),
    (find_skips, "tests/unit/test_a.py", "redis = pytest.importorskip('redis')"),
    (find_bare_ignores, "serve/cli.py", "x: int = ''  # type" + ": ignore"),
    (find_bare_ignores, "serve/cli.py", "x: int = ''  #type" + ":ignore  # because"),
    (find_left_overs, "README.md", "TO" + "DO: write this"),
    (find_left_overs, "serve/cli.py", "x = 1  # FIX" + "ME(later)"),
    (find_machine_words, "requirements.lock", f"--index-url https://{REGISTRY_HOSTS[0]}/simple"),
    (find_machine_words, "cluster.yaml", f"  - curl https://files.{REGISTRY_HOSTS[1]}/x"),
    (find_machine_words, "cluster.yaml", "path: " + "/".join(["", "home", "ray", "tollgate"])),
    (find_machine_words, "README.md", "cd " + "/".join(["", "root", "tollgate"])),
    (find_machine_words, "serve/cli.py", "ROOT = '" + "/".join(["", "work", "main"]) + "'"),
]


@pytest.mark.parametrize(("find", "path", "text"), BAD)
def test_a_bad_habit_is_found(find: Finder, path: str, text: str) -> None:
    findings = find(path, text)
    assert findings
    assert all(finding.startswith(f"{path}:") for finding in findings)


def test_every_habit_bites() -> None:
    assert {find for find, _, _ in BAD} == {*IN_MODULES, *IN_ALL_FILES}


GOOD: list[tuple[Finder, str, str]] = [
    (find_catch_alls, "serve/ratelimit/fronts/native.py", f"{TRY} Exception:\n    pass"),
    (find_catch_alls, "serve/cli.py", f"{TRY} (OSError, ValueError):\n    pass"),
    (find_prints, "serve/commands/settings.py", "print(table)"),
    (find_prints, "serve/cli.py", "print(table)"),
    (find_prints, "actors/ratelimit/actor.py", "pprint(x)\nself.print(x)"),
    (find_skips, "tests/unit/test_a.py", "@pytest.mark.parametrize('a', [1])\ndef test_a(a): ..."),
    (find_bare_ignores, "serve/cli.py", "x = y  # type: ignore[attr-defined]"),
    (find_left_overs, "README.md", "methodology, todos"),
    (find_machine_words, "cluster.yaml", "- cd ~/tollgate && ls $HOME/work/ ./root/x"),
    (find_machine_words, "README.md", "https://example.com/home/page and /srv/runtime_data"),
]


@pytest.mark.parametrize(("find", "path", "text"), GOOD)
def test_a_good_habit_passes(find: Finder, path: str, text: str) -> None:
    assert find(path, text) == []


def test_a_loose_test_is_found() -> None:
    loose = ["tests/test_a.py", "tests/unit/test_a.py", "tests/e2e/test_price_of_unit.py"]
    good = ["tests/unit/ledger/law/test_a.py", "tests/unit/test_price_of_unit.py"]
    assert [line.partition(":")[0] for line in find_loose_tests([*loose, *good])] == loose
    assert find_loose_tests(["tests/architecture/test_style.py"]) == []
