"""The cost of the catalog service's doors at their worst: time in proportion to the size, a free
event loop, no memory kept, and a reply in proportion to the body."""

import asyncio
import gzip
import json
from collections.abc import Callable
from functools import partial
from urllib.parse import quote_plus

import pytest

from tests.contract.catalog_auth.test_work_budget import SHAPES
from tests.support.call_costs import (
    Ask,
    asked,
    assert_linear,
    assert_loop_is_free,
    cost_of,
    growth_of,
    kept_bytes,
)
from tests.support.catalog_auth.api import PREFIX, CatalogApi
from tests.support.catalog_auth.hostile_documents import DOCUMENTS, many_repairs, nested, with_text
from tollgate.serve.catalog_auth.api.bodies import LARGE_BYTES
from tollgate.serve.catalog_auth.document.decoding import STRING_BYTES_MAX, VALUES_MAX
from tollgate.serve.catalog_auth.repair.fixes import PATCH_BYTES_MAX
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, item
from tollgate.serve.catalog_auth.verdict.report import REPAIR_BYTES_MAX

REPAIRING = "/, with all repairs"
DOORS = ("/validate", "/fix", "/migrate", "/resolve", "/validate/bulk", "/")
# Where a small document grows by what is said of it, and where a large one does.
REPLY_BYTES_FREE, REPLY_GROWTH_MAX = 1024 * 1024, 12
LARGE_SIZE = 256 * 1024
Document = Callable[[int], bytes]


def shaped(shape: Callable[[int], object], size: int) -> bytes:
    """A document of one of the shapes that has about this size."""
    each = len(json.dumps(shape(64))) // 64
    return json.dumps(shape(max(1, size // each))).encode()[: size + size // 2]


def long_places(size: int) -> bytes:
    """A place that is half as long as the document, and a finding for each step of the rest."""
    strays = ",".join(f'"auth:{number}":0' for number in range(size // 30))
    return with_text("x", nested(f"{{{strays}}}", 8, "n" * (size // 16)))


def long_references(size: int) -> bytes:
    refs = [f"r{number}" for number in range(size // 24)]
    asset = {"href": "https://data.example.com/a", "auth:refs": refs}
    return json.dumps(item({"login": LOGIN}, {"n" * (size // 2): asset})).encode()


SHAPED: dict[str, Document] = {
    **DOCUMENTS,
    **{shape.__name__: partial(shaped, shape) for shape in SHAPES},
    "long_places": long_places,
    "long_references": long_references,
    "blanks": lambda size: b" " * size,
    "lists": lambda size: b"[%b]" % b",".join([b"[]"] * (size // 3)),
    "no end": lambda size: b'{"type":"Catalog","x":[' + b"1," * (size // 2),
    "a form of nothing": lambda size: b"&" * size,
}
# As large as it is, whatever size is asked for.
SHAPED.pop("dense_chains")


def call(api: CatalogApi, door: str, document: bytes, *, is_compressed: bool = False) -> Ask:
    body, kind, query = document, "application/json", b""
    if door in ("/", REPAIRING):
        body, kind = b"document=" + quote_plus(document).encode(), FORM
        body, door = body + b"&repair=all" * (door == REPAIRING), "/"
    elif door == "/validate/bulk":
        body, kind = document.replace(b"\n", b" ") + b"\n", "application/x-ndjson"
    elif door == "/resolve":
        body = b'{"document":%b,"target":{"pointer":"/assets/a"}}' % document
    elif door == "/migrate":
        query = b"to=v1.2.0"
    headers = [("content-type", kind)]
    if is_compressed:
        body, headers = gzip.compress(body), [*headers, ("content-encoding", "gzip")]
    return partial(asked, api.app, "POST", door, body, headers, query, PREFIX)


FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def api() -> CatalogApi:
    return CatalogApi()


@pytest.mark.parametrize("name", SHAPED)
@pytest.mark.parametrize("door", DOORS)
def test_a_document_that_is_judged_on_the_loop_is_small(
    door: str, name: str, api: CatalogApi
) -> None:
    document = SHAPED[name](LARGE_BYTES * 9 // 10)
    cost = asyncio.run(cost_of(call(api, door, document)))
    assert_loop_is_free(cost)
    assert len(cost.answer.body) < REPLY_BYTES_FREE + REPLY_GROWTH_MAX * len(document)


@pytest.mark.parametrize(
    ("door", "name"),
    [
        *(("/validate", name) for name in ("many_holders", "many_flows", "long_places", "lists")),
        *(("/fix", name) for name in ("many_features", "long_references", "repeated_members")),
        *(("/resolve", name) for name in ("star", "many_references")),
        *(("/migrate", name) for name in ("many_flows",)),
        *(("/validate/bulk", name) for name in ("many_holders", "chain")),
        *(("/", name) for name in ("many_holders", "brackets", "lists", "blanks")),
    ],
)
def test_a_large_document_costs_its_share(door: str, name: str, api: CatalogApi) -> None:
    growth = asyncio.run(growth_of(lambda size: call(api, door, SHAPED[name](size)), LARGE_SIZE))
    assert_linear(growth)
    for cost, size in ((growth.small, LARGE_SIZE // growth.times), (growth.large, LARGE_SIZE)):
        assert_loop_is_free(cost)
        assert len(cost.answer.body) < REPLY_BYTES_FREE + REPLY_GROWTH_MAX * size


@pytest.mark.parametrize("door", ["/fix", REPAIRING])
def test_many_repairs_of_one_object_cost_their_share(door: str, api: CatalogApi) -> None:
    growth = asyncio.run(
        growth_of(lambda size: call(api, door, many_repairs(size)), 2 * LARGE_SIZE)
    )
    assert_linear(growth)
    assert_loop_is_free(growth.large)


@pytest.mark.parametrize("name", ["lists_in_the_deep", "deep_collections"])
def test_a_repaired_text_is_no_longer_than_its_share(name: str, api: CatalogApi) -> None:
    document = DOCUMENTS[name](LARGE_BYTES * 9 // 10)
    cost = asyncio.run(cost_of(call(api, REPAIRING, document)))
    assert_loop_is_free(cost)
    assert len(cost.answer.body) < REPLY_GROWTH_MAX * len(document)


def defined_above(features: int) -> bytes:
    """Items that define nothing themselves, and refer to all that their collection defines."""
    schemes = {f"k{number}": {**LOGIN, "description": "x" * 200} for number in range(60)}
    refs = [f"k{number}" for number in range(20)]
    feature = {
        "type": "Feature",
        "stac_extensions": item()["stac_extensions"],
        "properties": {},
        "assets": {"a": {"href": "https://data.example.com/a", "auth:refs": refs}},
    }
    collection = {"type": "Collection", "auth:schemes": schemes}
    document = {"type": "FeatureCollection", "features": [feature] * features}
    return json.dumps({"document": document, "context": {"collection": collection}}).encode()


@pytest.mark.parametrize("features", [50, 300])
def test_a_collection_of_items_gets_no_more_than_its_share(features: int, api: CatalogApi) -> None:
    body = defined_above(features)
    verdict_max = 2 * REPLY_BYTES_FREE + 16 * len(body)
    assert len(asyncio.run(call(api, "/validate", body)()).body) < verdict_max
    added_max = PATCH_BYTES_MAX + REPAIR_BYTES_MAX
    fixed = asyncio.run(call(api, "/fix", body)()).body
    assert len(fixed) < verdict_max + len(body) + 2 * added_max


def names(_: int) -> bytes:
    members = ",".join(f'"{number}{"x" * 25}":0' for number in range(VALUES_MAX - 1))
    return f"{{{members}}}".encode()


def markup(size: int) -> bytes:
    """Each search in one of these strings is one step."""
    text = "<a " * (STRING_BYTES_MAX // 3)
    schemes = {
        f"s{number}": {"type": "http", "scheme": "basic", "description": text}
        for number in range(size // STRING_BYTES_MAX)
    }
    return json.dumps(item(schemes, {})).encode()


@pytest.mark.parametrize("shape", [names, markup])
def test_a_document_at_its_bounds_holds_nobody_up(shape: Document, api: CatalogApi) -> None:
    cost = asyncio.run(cost_of(call(api, "/validate", shape(2 * STRING_BYTES_MAX))))
    assert cost.answer.status == 200
    assert_loop_is_free(cost)


@pytest.mark.parametrize("door", ["/validate", "/fix", "/"])
def test_a_document_leaves_nothing_behind(door: str, api: CatalogApi) -> None:
    document = SHAPED["many_holders"](2 * LARGE_BYTES)
    kept = asyncio.run(kept_bytes(call(api, door, document), len(document)))
    assert kept < len(document)


@pytest.mark.parametrize("door", ["/validate", "/validate/bulk", "/"])
def test_what_is_compressed_is_unpacked_by_and_by(door: str, api: CatalogApi) -> None:
    """Four megabytes of blanks, from four kilobytes."""
    cost = asyncio.run(cost_of(call(api, door, b" " * 4_000_000, is_compressed=True)))
    assert_loop_is_free(cost)
    assert len(cost.answer.body) < 5_000_000


def test_lines_of_nothing_are_answered_while_others_are(api: CatalogApi) -> None:
    headers = [("content-type", "application/x-ndjson")]
    body = b"\n" * 10_000
    ask = partial(asked, api.app, "POST", "/validate/bulk", body, headers, b"", PREFIX)
    cost = asyncio.run(cost_of(ask))
    assert_loop_is_free(cost)
    assert len(cost.answer.body) < 250 * len(body)


@pytest.mark.parametrize("path", ["/rules", "/scheme", "/validate", "/" + "x" * 60_000])
def test_heads_cost_little(path: str, api: CatalogApi) -> None:
    """As much as fits into HAProxy's 16 KiB."""
    query = b"&".join(b"%d=1" % number for number in range(1_200))
    headers = [("accept", "a/b;q=0.1," * 400), *(("cookie", "a=b") for _ in range(300))]
    ask = partial(asked, api.app, "GET", path, b"", headers, query, PREFIX)
    cost = asyncio.run(cost_of(ask))
    assert_loop_is_free(cost)
    assert len(cost.answer.body) < 100_000
