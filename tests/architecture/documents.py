"""Reads Markdown as far as the tests of documents need it: code, commands, tables, links."""

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`]+)`")
_COMMAND = re.compile(r"(?<![\w./:-])(?:\.venv/bin/)?tollgate +([^\n`|;&<>)#]+)")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)

Table = list[dict[str, str]]


def built(text: str) -> str:
    """The document without its sections on what is not built yet, which name what will be."""
    return re.sub(
        r"^(#{1,6}) Not built yet$.*?(?=^#{1,6} |\Z)", "", text, flags=re.DOTALL | re.MULTILINE
    )


def fences(text: str) -> list[tuple[str, str]]:
    """(language, content) of every fenced block."""
    return _FENCE.findall(text)


def code(text: str) -> Iterator[str]:
    """The code in a document: fenced blocks (of consoles what is typed), indented lines, spans."""
    for language, block in fences(text):
        joined = block.replace("\\\n", " ")
        if language == "console":
            yield from (line[2:] for line in joined.splitlines() if line.startswith("$ "))
        else:
            yield joined
    prose = _FENCE.sub("", text)
    yield from (line for line in prose.splitlines() if line.startswith("    "))
    yield from (" ".join(span.split()) for span in _SPAN.findall(prose))


def code_words(text: str) -> str:
    """All code of a document."""
    return "\n".join(code(text))


def commands(text: str) -> Iterator[list[str]]:
    """The words after `tollgate`, of every command in the code of a document."""
    for each in code(text):
        for found in _COMMAND.findall(each):
            # Two blanks and more divide a command from what is said about it.
            words = re.split(r" {2,}|…", found)[0].split()
            yield [word for word in words if word != "\\"]


def links(text: str) -> Iterator[str]:
    """The targets of links that stay within the checkout."""
    for target in _LINK.findall(_FENCE.sub("", text)):
        if not re.match(r"\w+:", target):
            yield target


def slugs(text: str) -> frozenset[str]:
    """The anchors of the headings."""
    titles = (_LINK.sub("]", title) for title in _HEADING.findall(_FENCE.sub("", text)))
    kept = (re.sub(r"[^\w\s-]", "", title.lower()) for title in titles)
    return frozenset(title.strip().replace(" ", "-") for title in kept)


def tables(text: str) -> Iterator[Table]:
    """Every table: a dictionary per row, by the heads of the columns."""
    rows: list[list[str]] = []
    for line in [*_FENCE.sub("", text).splitlines(), ""]:
        if line.strip().startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif rows:
            heads = rows[0]
            yield [dict(zip(heads, cells, strict=False)) for cells in rows[2:]]
            rows = []
