"""Rooms of the house: not so small that a door is all there is, not so large that things lie about.

A room is a folder of `actors/` or `serve/`. It has 3 to 15 files (those that hold only data do not
count), and its `__init__.py` opens with a sentence on what lives there. A folder inside counts as a
file does.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tests.architecture.trees import tree

FILES_MIN = 3
FILES_MAX = 15
# Loose in `serve/`: the command, and what composes the system for it.
LOOSE_IN_SERVE = {"__init__.py", "cli.py", "wiring.py"}
# Rooms with fewer files, and why.
SMALL = {
    # One function, around a page and its script that are data: two services show it.
    "serve/api_page",
}


def rooms_of(paths: list[str]) -> dict[str, tuple[set[str], set[str]]]:
    """(Python files, folders) directly in each folder, by its path."""
    rooms: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for path in paths:
        folder, _, file = path.rpartition("/")
        rooms[folder][0].add(file)
        while "/" in folder:
            inner = folder
            folder, _, name = inner.rpartition("/")
            rooms[folder][1].add(name)
    return dict(rooms)


def find_ill_sized(paths: list[str]) -> Iterator[str]:
    for room, (files, folders) in sorted(rooms_of(paths).items()):
        if len(files) + len(folders) < FILES_MIN and room not in SMALL:
            yield f"{room}: {len(files)} files; fewer than {FILES_MIN} belong to whom they serve"
        if len(files) > FILES_MAX:
            yield f"{room}: {len(files)} files, the end is {FILES_MAX}: find the seam"


def find_untitled(path: str, text: str) -> list[str]:
    """A package whose `__init__.py` does not open with a sentence."""
    title = (ast.get_docstring(tree(path, text)) or "").partition("\n\n")[0]
    if re.fullmatch(r"[A-Z`(].{15,}\.", title, re.S):
        return []
    return [f"{path}: begins with no sentence on what lives here"]


def test_rooms_are_neither_closets_nor_halls(modules: dict[str, str]) -> None:
    findings = list(find_ill_sized([p for p in modules if p.startswith(("actors/", "serve/"))]))
    assert not findings, "\n".join(findings)


def test_small_rooms_are_still_there_and_small(modules: dict[str, str]) -> None:
    rooms = rooms_of(list(modules))
    assert all(room in rooms and len(rooms[room][0]) < FILES_MIN for room in SMALL)


def test_nothing_stands_loose_in_serve(modules: dict[str, str]) -> None:
    assert rooms_of(list(modules))["serve"][0] == LOOSE_IN_SERVE


def test_every_room_says_what_lives_there(modules: dict[str, str]) -> None:
    rooms = [room for room in rooms_of(list(modules)) if re.match(r"(actors|serve)\b", room)]
    findings = [
        line
        for room in rooms
        for line in find_untitled(f"{room}/__init__.py", modules.get(f"{room}/__init__.py", ""))
    ]
    assert not findings, "\n".join(findings)


def test_ill_sized_rooms_are_found() -> None:
    closet = ["serve/mail/__init__.py", "serve/mail/outbox.py"]
    hall = [f"actors/kernel/part_{number}.py" for number in range(16)]
    found = list(find_ill_sized([*closet, *hall, "serve/cli.py", "serve/wiring.py"]))
    assert [line.partition(":")[0] for line in found] == ["actors", "actors/kernel", "serve/mail"]
    assert list(find_ill_sized([*closet, "serve/mail/smtp.py", *hall[:15], "actors/x.py"])) == [
        "actors: 1 files; fewer than 3 belong to whom they serve",
        "serve: 0 files; fewer than 3 belong to whom they serve",
    ]


def test_a_folder_of_folders_is_a_room() -> None:
    parts = [f"actors/ledger/{part}/{file}.py" for part in "ab" for file in "xyz"]
    assert list(find_ill_sized([*parts, "actors/ledger/__init__.py", "actors/a/b/c.py"]))[1:] == [
        "actors/a: 0 files; fewer than 3 belong to whom they serve",
        "actors/a/b: 1 files; fewer than 3 belong to whom they serve",
    ]


def test_a_room_without_a_sentence_is_found() -> None:
    path = "serve/mail/__init__.py"
    assert find_untitled(path, "")
    assert find_untitled(path, '"""Mail."""')
    assert find_untitled(path, '"""mail to people, and the folder where it waits"""')
    assert find_untitled(path, '"""Mail to people: letters and the mail server."""') == []
