"""Every case, every rule's example, every public document, and thousands of broken ones: all their
targets are resolved, and what comes out can be done, step by step, or says why not.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator
from random import Random

from tests.support.catalog_auth.data import own_cases, public_documents, specified_cases
from tests.support.catalog_auth.mutations import mutated
from tollgate.actors.kernel.json_value import Json
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.registries.secret_shapes import find_secrets
from tollgate.serve.catalog_auth.resolve.resolution import resolve
from tollgate.serve.catalog_auth.resolve.steps import Resolution
from tollgate.serve.catalog_auth.resolve.target import AccessTarget, By
from tollgate.serve.catalog_auth.resolve.wire import resolution_json
from tollgate.serve.catalog_auth.rules.catalogue import RULES

PLACE = re.compile(r"\$\{([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\}")
MUTATIONS = 2_000
MEMBERS = {"ref", "type", "flow", "storage", "chain", "executable", "missing", "steps", "findings"}


def documents() -> Iterator[Json]:
    cases = [case["doc"] for case in (*specified_cases(), *own_cases())]
    public = [json.loads(raw) for raw in public_documents().values()]
    examples = [dict(rule.example) for rule in RULES.values()]
    for root in [*cases, *public, *examples]:
        if isinstance(root, dict):
            yield root
            features = root.get("features")
            yield from (one for one in features or () if isinstance(one, dict))


def test_all_targets_are_resolved() -> None:
    targets = [problem for root in documents() for problem in problems(root)]
    assert not list(filter(None, targets))
    assert len(targets) >= len(RULES)


def test_no_broken_document_breaks_the_resolver(repetitions: Callable[[int], int]) -> None:
    small = [root for root in documents() if len(json.dumps(root)) < 4_000]
    for seed in range(repetitions(MUTATIONS)):
        random = Random(seed)
        root = mutated(copy.deepcopy(random.choice(small)), random)
        if isinstance(root, dict):
            found = list(filter(None, problems(root)))
            assert not found, f"seed {seed}: {found}"


def problems(root: Json) -> Iterator[str]:
    """One text per target: empty when all is well."""
    document = locate(root)
    # Of a public document's forty assets, most differ in a file's name only.
    kinds = {
        (holder.kind, repr(holder.refs), (holder.href or "")[:24], len(holder.value)): holder
        for holder in document.holders
    }
    for holder in kinds.values():
        found = resolve(document, AccessTarget(By.POINTER, pointer(holder.path)))
        assert isinstance(found, Resolution)
        answer = resolution_json(found, has_recipes=True)
        text = json.dumps(answer)
        assert json.loads(text) == answer
        assert not find_secrets(text), pointer(holder.path)
        yield "; ".join(
            f"{pointer(holder.path)}, {one['ref']}: {text}"
            for one in answer["alternatives"]
            for text in wrong(one)
        )


def wrong(one: Json) -> Iterator[str]:
    """What an alternative lacks that every alternative has."""
    if unknown := set(one) - MEMBERS - {"recipes"}:
        yield f"unknown members {sorted(unknown)}"
    kinds = [step["kind"] for step in one["steps"]]
    if one["executable"] is ("described" in kinds):
        yield f"executable is {one['executable']}, and its steps are {kinds}"
    if one["executable"] and kinds[-1] not in ("http", "object"):
        yield "nothing is fetched in the end"
    if bool(one["recipes"]) and not one["executable"]:
        yield "a recipe for what no program can do"
    ids = [step["id"] for step in all_steps(one["steps"])]
    if len(set(ids)) < len(ids):
        yield f"steps are called the same: {ids}"
    if one["executable"]:
        yield from unfilled(one["steps"])


def unfilled(steps: list[Json]) -> Iterator[str]:
    """Places that nothing has given a value when their step is done."""
    known: set[tuple[str, str]] = set()
    for step in all_steps(steps):
        own = (*step.get("needs", {}), *step.get("derives", {}))
        known |= {(step["id"], name) for name in own}
        if "refresh" in step:
            known.add((step["id"], "refresh_token"))
        told = {name: step.get(name) for name in ("request", "environment", "forms", "derives")}
        for found in PLACE.finditer(json.dumps(told)):
            if (found[1], found[2]) not in known:
                yield f"{step['id']} has {found[0]}, which is not known by then"
        for produced in (step.get("produces"), *step.get("alsoProduces", ())):
            if produced is not None:
                name = produced if isinstance(produced, str) else produced["as"]
                known.add((step["id"], name))


def all_steps(steps: list[Json]) -> Iterator[Json]:
    """In the order in which they are done: those inside of one come before it."""
    for step in steps:
        yield from all_steps(step.get("steps", []))
        yield step
