"""Steps of a JSON Patch, applied."""

import copy
from typing import Any

import jsonpatch
import pytest

from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.repair.json_patch import PatchError, Places, patched, value_at
from tollgate.serve.catalog_auth.rules.findings import Operation
from tollgate.serve.catalog_auth.verdict.judgement import patch_of

DOCUMENT: dict[str, Any] = {"a": {"b~/": [1, {"c": 2}, 3]}, "d": None, "e": {"f": [[0]]}}


@pytest.mark.parametrize(
    "steps",
    [
        (Operation("add", ("a", "x"), {"y": 1}),),
        (Operation("add", ("d",), 5),),
        (Operation("add", ("a", "b~/", 0), 0),),
        (Operation("add", ("a", "b~/", 3), 4),),
        (Operation("add", ("a", "b~/", "-"), 4),),
        (Operation("replace", ("a", "b~/", 1, "c"), [3]),),
        (Operation("replace", (), {"whole": "new"}),),
        (Operation("remove", ("a", "b~/", 1)),),
        (Operation("remove", ("e",)),),
        (Operation("move", ("d",), source=("a", "b~/", 1, "c")),),
        (Operation("move", ("a", "b~/", 2), source=("a", "b~/", 0)),),
        (Operation("add", ("n",), {}), Operation("move", ("n", "f"), source=("e", "f"))),
        (Operation("remove", ("a", "b~/", 2)), Operation("remove", ("a", "b~/", 0))),
    ],
)
def test_others_come_to_the_same(steps: tuple[Operation, ...]) -> None:
    before = copy.deepcopy(DOCUMENT)
    assert patched(DOCUMENT, steps) == jsonpatch.apply_patch(DOCUMENT, patch_of(steps))
    assert before == DOCUMENT


@pytest.mark.parametrize(
    "step",
    [
        Operation("remove", ()),
        Operation("remove", ("x",)),
        Operation("remove", ("a", "b~/", 3)),
        Operation("remove", ("a", "b~/", "-")),
        Operation("replace", ("x",), 1),
        Operation("replace", ("a", "b~/", 3), 1),
        Operation("add", ("x", "y"), 1),
        Operation("add", ("d", "y"), 1),
        Operation("add", ("a", "b~/", 4), 1),
        Operation("add", ("a", "b~/", "c"), 1),
        Operation("add", ("a", 0), 1),
        Operation("move", ("x",), source=("y",)),
    ],
)
def test_a_step_into_nothing_is_refused(step: Operation) -> None:
    with pytest.raises(PatchError, match="there is nothing at"):
        patched(DOCUMENT, (step,))


def test_what_a_step_does_not_lead_through_is_shared() -> None:
    after = patched(DOCUMENT, (Operation("replace", ("a", "b~/", 0), 9),))
    assert value_at(after, ("e",)) is DOCUMENT["e"]
    assert value_at(after, ("a", "b~/", 1)) is DOCUMENT["a"]["b~/"][1]


@pytest.mark.parametrize(
    ("one", "other", "are_near"),
    [
        (("a",), ("a",), True),
        (("a",), ("a", "b"), True),
        (("a", "b"), ("a",), True),
        (("a", "b"), ("a", "c"), False),
        (("a",), ("ab",), False),
        ((), ("a",), True),
    ],
)
def test_places_are_near_when_one_is_within_the_other(
    one: Path, other: Path, are_near: bool
) -> None:
    places = Places()
    places.add((Operation("replace", one, 1),))
    assert places.are_near((Operation("replace", other, 1),)) is are_near


def test_an_entry_that_goes_moves_all_others() -> None:
    places = Places()
    places.add((Operation("remove", ("a", 1)),))
    assert places.are_near((Operation("replace", ("a", 5), 1),))
    assert not places.are_near((Operation("replace", ("b", 1), 1),))


def test_entries_that_are_replaced_leave_their_neighbours_alone() -> None:
    places = Places()
    places.add((Operation("replace", ("a", 1), 1),))
    assert not places.are_near((Operation("replace", ("a", 2), 1),))


def test_where_something_moves_from_is_a_place_too() -> None:
    places = Places()
    places.add((Operation("move", ("a",), source=("b", "c")),))
    assert places.are_near((Operation("replace", ("b", "c", "d"), 1),))
