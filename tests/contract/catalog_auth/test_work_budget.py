"""One document costs work in proportion to its size, a bounded reply, and no other's time."""

import json
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.support.catalog_auth.api import CatalogApi
from tollgate.serve.catalog_auth.api.bodies import LARGE_BYTES
from tollgate.serve.catalog_auth.document.document import Ancestors
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.repair.fixes import PATCH_BYTES_MAX, fix
from tollgate.serve.catalog_auth.resolve.resolution import ALTERNATIVES_MAX, resolve
from tollgate.serve.catalog_auth.resolve.steps import Resolution
from tollgate.serve.catalog_auth.resolve.target import AccessTarget, By
from tollgate.serve.catalog_auth.rules.examples.documents import KEY, LOGIN, item, scene
from tollgate.serve.catalog_auth.verdict.judgement import judge, judgement_reply
from tollgate.serve.catalog_auth.verdict.report import REPAIR_BYTES_MAX, validate
from tollgate.serve.net.work_threads import WorkThreads

Document = Mapping[str, Any]


def exchange(*refs: str) -> Document:
    flows = {"tokenExchange": {"tokenUrl": "https://login.example.com/t", "scopes": {}}}
    return {"type": "oauth2", "flows": flows, "auth:refs": list(refs)}


def described(text: str, count: int) -> Document:
    return item({f"k{n}": {**KEY, "description": text} for n in range(count)}, {"a": scene("k0")})


def keys_and_hosts(n: int) -> Document:
    hosts = {f"a{i}": scene(f"k{i}", href=f"https://h{i}.example.com/a") for i in range(n)}
    return item({f"k{i}": KEY for i in range(n)}, {"a": scene("k0"), **hosts})


def chain(n: int) -> Document:
    return item({f"k{i}": exchange(f"k{i + 1}") for i in range(n)}, {"a": scene("k0")})


def star(n: int) -> Document:
    ends = {f"k{i}": LOGIN for i in range(n)}
    return item({"x": exchange(*ends), **ends}, {"a": scene("x")})


def many_flows(n: int) -> Document:
    flows = {f"f{i}": {"scopes": {}, "tokenUrl": "https://login.example.com/t"} for i in range(n)}
    return item({"x": {"type": "oauth2", "flows": flows}}, {"a": scene("x")})


def many_references(n: int) -> Document:
    names = [f"key{i}" for i in range(n)]
    return item(dict.fromkeys(names, KEY), {"a": scene(*names)})


def brackets(n: int) -> Document:
    return described("[" * 4_000 + "<b", n // 20)


def links_in_text(n: int) -> Document:
    return described("[a](b " * 300 + "<b", n // 20)


SHAPES: list[Callable[[int], Document]] = [
    *(keys_and_hosts, chain, star, many_flows, many_references, brackets, links_in_text)
]


def work(document: Document) -> int:
    """Calls of functions, Python's own included, to judge a document and to resolve its asset."""
    raw = json.dumps(document).encode()
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        judged = judge(raw, "document")
        judgement_reply(judged)
        located = locate(json.loads(raw), raw=raw)
        target = AccessTarget(By.POINTER, "/assets/a")
        resolve(located, target, findings=judged.verdict.findings)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_size_is_twice_the_work(shape: Callable[[int], Document]) -> None:
    work(shape(100))  # (what is remembered is there from now on)
    once, twice = work(shape(200)), work(shape(400))
    assert twice < 2.3 * once, f"{once:,} calls, then {twice:,}"


def test_alternatives_are_planned_up_to_their_maximum() -> None:
    schemes = {f"x{n}": many_flows(100)["properties"]["auth:schemes"]["x"] for n in range(60)}
    document = locate(dict(item(schemes, {"a": scene(*schemes)})))
    found = resolve(document, AccessTarget(By.POINTER, "/assets/a"))
    assert isinstance(found, Resolution)
    assert len(found.alternatives) == ALTERNATIVES_MAX


def test_only_the_schemes_in_use_are_copied_and_only_so_many() -> None:
    used, large = {**KEY, "note": "x" * 10_000}, {**KEY, "note": "x" * 20_000}
    above = Ancestors({"type": "Collection", "auth:schemes": {"u": used, "l": large, "o": LOGIN}})
    features = [item(assets={"a": scene("u")}) for _ in range(1_000)]
    fixed: Any = fix({"type": "FeatureCollection", "features": features}, ancestors=above)
    assert fixed.document["features"][0]["properties"]["auth:schemes"] == {"u": used}
    verdict = validate({"type": "FeatureCollection", "features": features}, ancestors=above)
    fixes = [finding.fix for finding in verdict.findings if finding.fix]
    added = json.dumps([step.value for steps in fixes for step in steps])
    assert REPAIR_BYTES_MAX // 2 < len(added) < 2 * REPAIR_BYTES_MAX
    assert len(json.dumps(fixed.document)) < PATCH_BYTES_MAX + 2 * REPAIR_BYTES_MAX
    alone = validate(item(assets={"a": scene("l")}), ancestors=above)
    assert not any(finding.fix for finding in alone.findings)


@pytest.mark.parametrize(
    ("path", "around"),
    [
        ("/validate", None),
        ("/fix", None),
        ("/migrate?to=v1.2.0", None),
        ("/resolve", {"target": {"pointer": "/assets/a"}}),
        ("/validate/bulk", None),
        ("/", None),
    ],
)
def test_a_large_document_is_judged_in_a_thread(
    path: str, around: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a small one is not: it takes less time than to begin another thread's turn."""
    seen: list[str] = []
    run = WorkThreads.run

    async def watched(self: Any, size: int, job: Callable[[], Any]) -> Any:
        def watched_job() -> Any:
            seen.append(threading.current_thread().name)
            return job()

        return await run(self, size, watched_job)

    monkeypatch.setattr(WorkThreads, "run", watched)
    api = CatalogApi()
    for padding in ("x", "x" * LARGE_BYTES):
        document = item({"login": LOGIN}, {"a": scene("login")}, title=padding)
        if path == "/":
            assert (
                api.call("POST", path, data={"document": json.dumps(document)}).status_code == 200
            )
        elif path.endswith("bulk"):
            body = json.dumps(document).encode()
            headers = {"content-type": "application/x-ndjson"}
            assert api.call("POST", path, headers=headers, content=body).status_code == 200
        else:
            body_value = document if around is None else {"document": document, **around}
            assert api.post(path, body_value).status_code == 200
    small, large = seen
    assert not small.startswith("catalog-work")
    assert large.startswith("catalog-work")
