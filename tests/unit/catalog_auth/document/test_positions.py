"""Where values stand in a text, and which members are repeated."""

import pytest

from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.positions import (
    REPEATED_MAX,
    TextPosition,
    positions,
    repeated_members,
)

TEXT = """{
  "assets": {
    "é\\"\\u0041": {"href": "a,b:c{}[]", "auth:refs": ["x", "y"]},
    "b": {}
  },
  "links": [ {"rel": "self"},
             [1, [2, 3]] ],
  "end": null
}"""


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ((), 1, 1),
        (("assets",), 2, 3),
        (("assets", 'é"A'), 3, 5),
        (("assets", 'é"A', "auth:refs"), 3, 40),
        (("assets", 'é"A', "auth:refs", 1), 3, 59),
        (("assets", "b"), 4, 5),
        (("links", 0), 6, 14),
        (("links", 0, "rel"), 6, 15),
        (("links", 1, 1, 0), 7, 19),
        (("end",), 8, 3),
        # What is not there stands where the nearest thing above it does.
        (("assets", "b", "auth:refs"), 4, 5),
        (("stac_extensions", 3), 1, 1),
        (("links", 7), 6, 3),
    ],
)
def test_a_path_has_a_place(path: Path, line: int, column: int) -> None:
    assert positions(TEXT.encode(), [path]) == {path: TextPosition(line, column)}


def test_many_paths_are_found_at_once() -> None:
    paths: list[Path] = [("end",), ("links", 0), (), ("links",)]
    found = positions(TEXT.encode(), paths)
    assert [found[path].line for path in paths] == [8, 6, 1, 6]


def test_a_repeated_member_stands_where_it_is_last() -> None:
    assert positions(b'{"a": 1,\n"a": 2}', [("a",)]) == {("a",): TextPosition(2, 1)}


def test_the_text_may_be_no_object_and_begin_late() -> None:
    assert positions(b"  \n 5", [()]) == {(): TextPosition(1, 1)}
    assert positions(b"[7]", [(0,)]) == {(0,): TextPosition(1, 2)}


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        (b'{"a": {"b": 1}, "b": 1}', []),
        (b'{"a": 1, "a": 1}', [("a",)]),
        (b'{"a": 1, "\\u0061": 1, "a": 3}', [("a",)]),
        (b'[{"a": 1}, {"a": {"x": 0, "y": 1, "x": 2}}]', [(1, "a", "x")]),
        (b'{"a": ["a", "a", {"a": "a"}]}', []),
        (b"[[], [], 5]", []),
    ],
)
def test_repeated_members_are_found(raw: bytes, paths: list[Path]) -> None:
    assert repeated_members(raw) == paths


def test_so_many_repeated_members_are_told() -> None:
    members = ",".join(f'"{n}": 0, "{n}": 1' for n in range(2 * REPEATED_MAX))
    assert len(repeated_members(f"{{{members}}}".encode())) == REPEATED_MAX
