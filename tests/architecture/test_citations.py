"""Every section that the code cites exists: `(B7)`, `F6`, `part G` in comments and docstrings.

They are headings of the law books in `docs/`: `# A. …`, `## B7. …`, and `#### R04. …` for the rules
of catalog auth. A service cites its own book. Conformance cases of the rate limit (D22, F05) look
alike and are no headings: they are the ids in the files below tests/conformance/ratelimit, and its
book may name no others.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from tests.architecture.trees import nodes

RATE_LIMIT = "docs/ratelimit.md"
PAYMENTS = "docs/payments.md"
CATALOG_AUTH = "docs/catalog-auth.md"
# The first that matches a path says which book it cites.
BOOKS = (
    (r"(.*/)?(ledger|payments)(/.*|\.py)", PAYMENTS),
    (r"(.*/)?catalog(_auth)?(/.*|\.py)", CATALOG_AUTH),
    (r"(.*/)?ratelimit(/.*|\.py)|serve/settings/.*|actors/operations/.*", RATE_LIMIT),
)
# What looks like a label and is none: an object store.
WORDS = {"S3"}
LABEL = re.compile(r"(?<![\w.:/#@=%-])(?:[A-Z]\d{1,2}|\d[A-Z])(?![\w-])")
PARTS = re.compile(r"\b[Pp]arts? ([A-Z](?:(?:, | and | or | to )[A-Z])*)\b")
HEADING = re.compile(r"^#+ ([A-Z]|[A-Z]\d{1,2}|\d[A-Z])\. ", re.M)
CASE_FILE = re.compile(r"tests/conformance/ratelimit/.*\.yaml")
CASE = re.compile(r"\b[A-Z]\d\d\b")
CASE_IDS = re.compile(r"^[ -]*\{?id: (.*)$", re.M)


def prose_of(path: str, text: str) -> Iterator[tuple[int, str]]:
    """(first line, text) of each docstring and comment."""
    for node in nodes(path, text):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str(docstring))) as first, *_]:
                    yield first.lineno, docstring
    if "#" in text:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


@cache
def citations(path: str, text: str) -> tuple[tuple[int, str], ...]:
    """(line, label) of everything that is cited."""
    return tuple(find_citations(path, text))


def find_citations(path: str, text: str) -> Iterator[tuple[int, str]]:
    if not (LABEL.search(text) or PARTS.search(text)):
        return  # (to look for comments takes a hundred times as long)
    for first, prose in prose_of(path, text):
        for number, line in enumerate(prose.splitlines(), start=first):
            for label in LABEL.findall(line):
                yield number, label
            for parts in PARTS.findall(line):
                yield from ((number, label) for label in re.findall(r"[A-Z]", parts))


def book_of(path: str) -> str | None:
    return next((book for pattern, book in BOOKS if re.fullmatch(pattern, path)), None)


@cache
def labels_of(book: str, text: str) -> frozenset[str]:
    """What may be cited of a book: its headings, and what else looks like them and is none."""
    return frozenset({*HEADING.findall(text), *WORDS})


def case_ids(texts: Mapping[str, str]) -> frozenset[str]:
    """The conformance cases of the rate limit that there are: `id: D24`, `id: D24, months`."""
    ids = (
        line
        for path, text in texts.items()
        if CASE_FILE.fullmatch(path)
        for line in CASE_IDS.findall(text)
    )
    return frozenset(label for line in ids for label in CASE.findall(line))


def find_dangling(
    path: str, text: str, books: Mapping[str, str], cases: frozenset[str]
) -> list[str]:
    book = book_of(path)
    if book is None:
        return []
    known = labels_of(book, books[book])
    if book == RATE_LIMIT:
        known |= cases
    return [
        f"{path}:{line}: {label} is no section of {book}"
        for line, label in citations(path, text)
        if label not in known
    ]


@pytest.fixture(scope="session")
def books(texts: dict[str, str]) -> dict[str, str]:
    return {book: texts[book] for _, book in BOOKS}


@pytest.fixture(scope="session")
def cases(texts: dict[str, str]) -> frozenset[str]:
    return case_ids(texts)


def test_what_is_cited_exists(
    modules: dict[str, str], books: dict[str, str], cases: frozenset[str]
) -> None:
    findings = [
        line for path, text in modules.items() for line in find_dangling(path, text, books, cases)
    ]
    assert not findings, "\n".join(findings)


def test_the_book_names_only_cases_that_exist(books: dict[str, str], cases: frozenset[str]) -> None:
    book = books[RATE_LIMIT]
    named = set(CASE.findall(book)) - labels_of(RATE_LIMIT, book)
    assert named, "the book shows how a case is called"
    assert named <= cases


def test_all_services_cite_their_books(modules: dict[str, str]) -> None:
    citing = {book_of(path) for path, text in modules.items() if any(citations(path, text))}
    assert citing >= {RATE_LIMIT, PAYMENTS, CATALOG_AUTH}


LAW = {
    RATE_LIMIT: "# B. Behaviour\n## B7. Counts\n## 3D. Cases",
    PAYMENTS: "# G. Security\n### M5. Integers",
    CATALOG_AUTH: "# B. Checks\n#### S01. one\n#### R04. two",
}
LAW_CASES = case_ids(
    {
        "tests/conformance/ratelimit/decisions/counting.yaml": "- id: D02\n  a: D04\n- id: D01, x",
        "tests/conformance/ratelimit/rules/matching.yaml": "- id: A23-negative\n  - {id: F06}",
        "tests/conformance/settings/settings_table.yaml": "- id: D05",
    }
)


def test_cases_are_the_ids_of_the_files() -> None:
    assert sorted(LAW_CASES) == ["A23", "D01", "D02", "F06"]


@pytest.mark.parametrize(
    ("path", "text", "label"),
    [
        ("actors/ratelimit/rules/reading.py", '"""Reads (B8)."""', "B8"),
        ("serve/settings/service.py", "x = 1  # as C says (part C)", "C"),
        ("tests/unit/ratelimit/test_a.py", "def f():\n    'The cases D04.'", "D04"),
        ("actors/ledger/law/money.py", "# in one place (M5, M6)", "M6"),
        ("serve/payments/api/keys.py", '"""Keys (parts G and H)."""', "H"),
        ("serve/settings/payments.py", "# part B", "B"),
        ("serve/catalog_auth/repair/plan.py", "class A:\n    '''As S99 does.'''", "S99"),
    ],
)
def test_a_dangling_citation_is_found(path: str, text: str, label: str) -> None:
    (finding,) = find_dangling(path, text, LAW, LAW_CASES)
    assert f": {label} is no section of" in finding


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("actors/ratelimit/rules/reading.py", '"""Reads (B7; D02, F06, 3D; part B)."""'),
        ("actors/ledger/law/money.py", "# M5, part G; UTF-8, v1.M7, SHA-256, A4-paper, #C3, %2F"),
        ("actors/ledger/law/money.py", "x = 'M99'"),
        ("serve/catalog_auth/rules/a.py", "# S01 and R04, for S3 (part B)"),
        ("actors/kernel/clock.py", "# Z9"),
    ],
)
def test_citations_that_hold_pass(path: str, text: str) -> None:
    assert find_dangling(path, text, LAW, LAW_CASES) == []
