"""Patches of texts: the same as patches of values, and nothing else in the text is touched."""

import json
from copy import deepcopy
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.catalog_auth.spaced_texts import change, spaced
from tollgate.serve.catalog_auth.document.decoding import decode
from tollgate.serve.catalog_auth.repair.json_patch import patched
from tollgate.serve.catalog_auth.repair.text_patch import patched_text
from tollgate.serve.catalog_auth.rules.findings import Fix, Operation

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
NAMES = st.sampled_from(["a", "b", "c\n", "é", '"'])
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)


def steps_for(root: Any, random: Random, others: list[Any]) -> Fix:
    """Steps that fit the document, one after the other."""
    steps: list[Operation] = []
    for _ in range(random.randint(1, 8)):
        places = [path for path in paths(root) if path]
        owners = [path for path in paths(root) if isinstance(at(root, path), dict | list)]
        op = random.choice(["add", "remove", "replace", "move"])
        if op == "add" and owners:
            path = random.choice(owners)
            target = (*path, new_step(at(root, path), random))
            step = Operation("add", target, random.choice(others))
        elif op == "replace" and places:
            step = Operation("replace", random.choice(places), random.choice(others))
        elif op == "remove" and places:
            step = Operation("remove", random.choice(places))
        elif op == "move" and places:
            source = random.choice(places)
            rest = patched(root, (Operation("remove", source),))
            owners = [path for path in paths(rest) if isinstance(at(rest, path), dict | list)]
            path = random.choice(owners)
            step = Operation("move", (*path, new_step(at(rest, path), random)), source=source)
        else:
            continue
        steps.append(step)
        root = patched(root, (step,))
    return tuple(steps)


def new_step(owner: Any, random: Random) -> str | int:
    if isinstance(owner, dict):
        return random.choice(["a", "b", "new"])
    return random.choice([*range(len(owner) + 1), "-"])


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path]
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    for step, each in inner:
        found += paths(each, (*path, step))
    return found


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@given(VALUES, st.lists(VALUES, min_size=1, max_size=3), st.integers(0, 2**32))
def test_a_patched_text_is_the_text_of_the_patched_value(
    root: Any, others: list[Any], seed: int
) -> None:
    random = Random(seed)
    text = spaced(root, random)
    steps = steps_for(root, random, others)
    after = patched_text(text, steps)
    assert decode(after.encode()) == patched(root, steps)
    assert patched_text(text, ()) == text


@given(VALUES, st.lists(VALUES, min_size=1, max_size=3), st.integers(0, 2**32))
def test_steps_at_once_come_to_the_same_as_one_by_one(
    root: Any, others: list[Any], seed: int
) -> None:
    steps = steps_for(root, Random(seed), others)
    before, given_before = deepcopy(root), deepcopy(steps)
    one_by_one = root
    for step in steps:
        one_by_one = patched(one_by_one, (step,))
    assert encoded(patched(root, steps)) == encoded(one_by_one)
    assert encoded(root) == encoded(before)
    assert steps == given_before


def encoded(value: Any) -> str:
    """With the order of members, which comparing values leaves out."""
    return json.dumps(value)


@given(st.dictionaries(NAMES, VALUES, min_size=1), VALUES, st.integers(0, 2**32))
def test_what_is_replaced_is_all_that_changes(root: Any, value: Any, seed: int) -> None:
    random = Random(seed)
    name = random.choice(list(root))
    before, end = spaced({**root, name: "MARK"}, Random(seed)).split('"MARK"')
    after = patched_text(f'{before}"MARK"{end}', (Operation("replace", (name,), value),))
    assert after.startswith(before)
    assert after.endswith(end)
    assert decode(after[len(before) : len(after) - len(end)].encode()) == value


@given(st.lists(VALUES, max_size=4), VALUES, st.integers(0, 2**32))
def test_an_entry_that_comes_or_goes_is_all_that_changes(
    root: list[Any], value: Any, seed: int
) -> None:
    random = Random(seed)
    text = spaced(root, random)
    index = random.choice([*range(len(root) + 1), "-"])
    gone, _ = change(text, patched_text(text, (Operation("add", (index,), value),)))
    assert gone == "" or (not root and gone.isspace())
    if root:
        gone = random.randrange(len(root))
        assert change(text, patched_text(text, (Operation("remove", (gone,)),)))[1] == ""


@given(st.dictionaries(NAMES, VALUES, max_size=4), VALUES, st.integers(0, 2**32))
def test_a_member_that_comes_or_goes_is_all_that_changes(
    root: dict[str, Any], value: Any, seed: int
) -> None:
    random = Random(seed)
    text = spaced(root, random)
    gone, _ = change(text, patched_text(text, (Operation("add", ("new",), value),)))
    assert gone == "" or (not root and gone.isspace())
    if root:
        gone = random.choice(list(root))
        assert change(text, patched_text(text, (Operation("remove", (gone,)),)))[1] == ""
