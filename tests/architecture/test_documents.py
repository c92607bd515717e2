"""What the documents say of the tree: the folders and files that they name exist."""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch

import pytest

DOCUMENT = r"README\.md|ARCHITECTURE\.md|CONTRIBUTING\.md|docs/[\w-]+\.md"
# Paths from the root, as documents name them between backticks or as the target of a link.
NAMED = re.compile(
    r"(?:`|\]\()((?:actors|serve|tests|configs|scripts|docs|src|\.ci)/[\w./*{},-]*)[`)# ]"
)


def find_lost_paths(path: str, text: str, paths: list[str]) -> Iterator[str]:
    """Paths that a document names and that are not there."""
    folder = path.rpartition("/")[0]
    for number, line in enumerate(text.splitlines(), start=1):
        for named in NAMED.findall(line):
            places = [named, f"{folder}/{named}"]
            if not any(exists(one, paths) for place in places for one in alternatives(place)):
                yield f"{path}:{number}: {named} does not exist"


def alternatives(named: str) -> list[str]:
    """`a/{b,c}/d` is `a/b/d` and `a/c/d`."""
    before, brace, rest = named.partition("{")
    inside, _, after = rest.partition("}")
    return [f"{before}{each}{after}" for each in inside.split(",")] if brace else [named]


def exists(named: str, paths: list[str]) -> bool:
    named = named.rstrip("/.")
    return any(
        path == named or path.startswith(f"{named}/") or fnmatch(path, named) for path in paths
    )


def tree_of(text: str) -> Iterator[str]:
    """The paths that ARCHITECTURE.md draws under "Where things are": two blanks a level."""
    block = text.partition("## Where things are")[2].split("```")[1]
    above: list[str] = []
    for line in block.strip("\n").splitlines():
        indent = len(line) - len(line.lstrip())
        names = re.split(r" {2,}", line.strip())[0]
        if indent > 20:
            continue  # (the rest of a sentence)
        assert indent % 2 == 0, line
        del above[indent // 2 :]
        for name in names.split(", "):
            yield "".join(above) + name
        above.append(names)


def find_unnamed(drawn: set[str], paths: list[str]) -> Iterator[str]:
    """Folders beside those that are drawn: where the tree enters a folder, it names all of them."""
    entered = {folder.rstrip("/").rpartition("/")[0] for folder in drawn} - {""}
    for folder in sorted(folders_of(paths)):
        if folder.rpartition("/")[0] in entered and f"{folder}/" not in drawn:
            yield f"ARCHITECTURE.md does not draw {folder}/"


def folders_of(paths: list[str]) -> set[str]:
    folders = set()
    for path in paths:
        while "/" in path:
            path = path.rpartition("/")[0]
            folders.add(path)
    return folders


@pytest.fixture(scope="session")
def paths(texts: Mapping[str, str]) -> list[str]:
    # (links are no text of their own, but documents name them)
    return [*texts, "src/tollgate/actors", "src/tollgate/serve", "src/tollgate/configs"]


def test_documents_name_what_exists(texts: dict[str, str], paths: list[str]) -> None:
    documents = {path: text for path, text in texts.items() if re.fullmatch(DOCUMENT, path)}
    assert len(documents) > 3
    lost = [line for path, text in documents.items() for line in find_lost_paths(path, text, paths)]
    assert not lost, "\n".join(lost)


def test_the_tree_is_drawn_as_it_is(texts: dict[str, str], paths: list[str]) -> None:
    drawn = set(tree_of(texts["ARCHITECTURE.md"]))
    assert len(drawn) > 40
    lost = [path for path in sorted(drawn) if not exists(path, paths)]
    assert not lost, lost
    code = [path for path in paths if path.startswith(("actors/", "serve/"))]
    unnamed = list(find_unnamed(drawn, code))
    assert not unnamed, "\n".join(unnamed)


def test_lost_paths_are_found() -> None:
    text = (
        "see `tests/unit/test_a.py`, [that](configs/x.yaml#top), `serve/{node,net}/`, `docs/*.md`"
    )
    there = ["tests/unit/test_a.py", "serve/node/process.py", "docs/ratelimit.md"]
    assert list(find_lost_paths("README.md", text, there)) == [
        "README.md:1: configs/x.yaml does not exist"
    ]
    assert len(list(find_lost_paths("README.md", text, []))) == 4


def test_trees_are_read() -> None:
    text = """## Where things are

```
actors/       state
  kernel/     small
                        and shared
serve/
  ratelimit/
    codec/, fronts/   wire
  cli.py
```
"""
    drawn = set(tree_of(text))
    assert drawn == {
        "actors/",
        "actors/kernel/",
        "serve/",
        "serve/ratelimit/",
        "serve/ratelimit/codec/",
        "serve/ratelimit/fronts/",
        "serve/cli.py",
    }
    paths = ["serve/ratelimit/sinks/a.py", "serve/ratelimit/codec/b/c.py", "actors/kernel/d.py"]
    assert list(find_unnamed(drawn, paths)) == [
        "ARCHITECTURE.md does not draw serve/ratelimit/sinks/"
    ]
