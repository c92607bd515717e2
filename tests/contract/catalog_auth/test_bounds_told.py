"""No bound on work cuts anything in silence: the reply says which one was met."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.catalog_auth.api import CatalogApi, problem
from tollgate.serve.catalog_auth.api.problems import CAUSES_MAX
from tollgate.serve.catalog_auth.api.routes.resolve import DOMAINS_MAX
from tollgate.serve.catalog_auth.document.decoding import STRING_BYTES_MAX, VALUES_MAX
from tollgate.serve.catalog_auth.document.misplaced_fields import MISPLACED_MAX
from tollgate.serve.catalog_auth.document.positions import REPEATED_MAX
from tollgate.serve.catalog_auth.document.urls import PARAMETERS_MAX
from tollgate.serve.catalog_auth.page.targets import WAYS_MAX
from tollgate.serve.catalog_auth.page.view import FINDINGS_MAX as SHOWN_MAX
from tollgate.serve.catalog_auth.registries.secret_shapes import TEXT_LENGTH_MAX
from tollgate.serve.catalog_auth.resolve.chains import CHAINS_MAX, REFS_MAX
from tollgate.serve.catalog_auth.resolve.resolution import ALTERNATIVES_MAX
from tollgate.serve.catalog_auth.rules.examples.documents import KEY, LOGIN, item, scene
from tollgate.serve.catalog_auth.rules.examples.items import query_parameter, signed
from tollgate.serve.catalog_auth.rules.exposure.secrets import DEPTH_MAX, TEXTS_MAX
from tollgate.serve.catalog_auth.rules.references.dangling_references import NAMES_EXPLAINED_MAX
from tollgate.serve.catalog_auth.rules.references.reference_lists import NAMES_SUGGESTED_MAX
from tollgate.serve.catalog_auth.rules.rule import FINDINGS_MAX
from tollgate.serve.catalog_auth.rules.structure.descriptions import PARSED_LENGTH_MAX
from tollgate.serve.catalog_auth.rules.structure.flow_fields import OFFENCES_MAX

Document = Mapping[str, Any]
api = CatalogApi()


def of_scheme(**members: object) -> Document:
    return item({"a": {**KEY, **members}}, {"data": scene("a")})


def of_assets(count: int, **asset: object) -> Document:
    return item({"a": KEY}, {f"asset{n}": {**scene("a"), **asset} for n in range(count)})


def nested(depth: int) -> object:
    value: object = ["x"]
    for _ in range(depth):
        value = {"inner": value}
    return value


def with_schema(schema: object) -> Document:
    return item({"a": signed({"href": query_parameter(schema=schema)})}, {"data": scene("a")})


def features_that_rely_on_large_schemes() -> Document:
    scheme = {**LOGIN, "description": "x" * 15_000}
    feature = {**item(assets={"data": scene("login")})}
    return {
        "document": {"type": "FeatureCollection", "features": [feature] * 80},
        "context": {"collection": {"type": "Collection", "auth:schemes": {"login": scheme}}},
    }


PATTERNS = {"properties": {f"p{n}": {"pattern": "("} for n in range(OFFENCES_MAX)}}
CUTS = {
    f"of {FINDINGS_MAX + 2:,} findings": of_assets(FINDINGS_MAX + 1, **{"auth:refs": ["other"]}),
    "the features' repairs": features_that_rely_on_large_schemes(),
    f"{MISPLACED_MAX:,} are told": {
        **item({"a": KEY}, {"data": scene("a")}),
        "more": [{"auth:refs": ["a"]}] * (MISPLACED_MAX + 1),
    },
    f"first {NAMES_EXPLAINED_MAX} are compared": item(
        {"a": KEY}, {"data": scene("a", *(f"name{n}" for n in range(NAMES_EXPLAINED_MAX + 1)))}
    ),
    f"first {NAMES_SUGGESTED_MAX} schemes are suggested": item(
        {f"a{n}": KEY for n in range(NAMES_SUGGESTED_MAX + 1)}, {"data": scene()}
    ),
    f"first {PARAMETERS_MAX} parameters": of_assets(
        1, href="https://e.org/a?" + "&".join("a" * (PARAMETERS_MAX + 1))
    ),
    f"{TEXTS_MAX:,} values": of_scheme(more=["x"] * TEXTS_MAX + ["AKIA"]),
    f"{DEPTH_MAX} levels deep": of_scheme(more=nested(DEPTH_MAX)),
    f"{TEXT_LENGTH_MAX:,} characters of each": of_scheme(more="x" * (TEXT_LENGTH_MAX + 1)),
    f"more than {PARSED_LENGTH_MAX:,} characters": of_scheme(description="<" * 5_000),
    f"no more than {OFFENCES_MAX} are told": with_schema(PATTERNS),
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_verdict_says_what_is_left_out(cut: str) -> None:
    reply = api.post("/validate", CUTS[cut])
    assert reply.status_code == 200, reply.text
    assert any(cut in told for told in reply.json()["left_out"]), reply.json()["left_out"]


def test_repeated_members_are_told_up_to_a_bound() -> None:
    twice = ",".join(f'"{n}":0,"{n}":1' for n in range(REPEATED_MAX + 1))
    text = f'{{"type":"Catalog","links":[],"auth:schemes":{{}},{twice}}}'
    headers = {"content-type": "application/json"}
    reply = api.call("POST", "/validate", content=text.encode(), headers=headers).json()
    assert any(f"{REPEATED_MAX} are told" in told for told in reply["left_out"])


def test_mostly_nothing_is_left_out() -> None:
    assert "left_out" not in api.post("/validate", of_assets(3)).json()
    resolved = api.post(
        "/resolve", {"document": of_assets(1), "target": {"pointer": "/assets/asset0"}}
    )
    assert "left_out" not in resolved.json()


def test_every_form_of_a_verdict_says_it() -> None:
    document = CUTS[f"{DEPTH_MAX} levels deep"]
    text = api.post("/validate", document, headers={"accept": "text/plain"}).text
    assert "document: left out: of a scheme, " in text
    sarif = api.post("/validate", document, headers={"accept": "application/sarif+json"}).json()
    (told,) = sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert (told["level"], told["message"]["text"][:10]) == ("note", "left out: ")
    (line, _) = api.bulk([json.dumps(document).encode()])
    assert line["left_out"]
    assert "Left out: of a scheme, " in page(document)


def page(document: Document) -> str:
    form = {"document": json.dumps(document)}
    return api.call("POST", "/", data=form).text


def resolution(schemes: Document, *refs: str) -> list[str]:
    document = item(dict(schemes), {"data": scene(*refs)})
    reply = api.post("/resolve", {"document": document, "target": {"pointer": "/assets/data"}})
    assert reply.status_code == 200, reply.text
    told: list[str] = reply.json()["left_out"]
    return told


def test_a_resolution_says_what_is_left_out() -> None:
    refs = [f"key{n}" for n in range(REFS_MAX + 1)]
    assert f"of a list of references, the first {REFS_MAX} are read" in resolution(
        dict.fromkeys(refs, KEY), *refs
    )
    flow = {"tokenUrl": "https://login.example.com/t", "scopes": {}}
    flows = {"type": "oauth2", "flows": {f"f{n}": flow for n in range(CHAINS_MAX + 1)}}
    assert any(
        f"no more than {CHAINS_MAX} are planned" in told for told in resolution({"a": flows}, "a")
    )
    names = ("a", "b", "c")
    assert f"the first {ALTERNATIVES_MAX} alternatives are told" in resolution(
        dict.fromkeys(names, flows), *names
    )


def test_the_page_says_how_many_ways_it_shows() -> None:
    names = [f"key{n}" for n in range(WAYS_MAX + 1)]
    shown = page(item(dict.fromkeys(names, KEY), {"data": scene(*names)}))
    assert f"Left out: the first {WAYS_MAX} alternatives are told." in shown


def test_the_page_counts_the_findings_that_it_does_not_show() -> None:
    shown = page(of_assets(FINDINGS_MAX + 1, **{"auth:refs": ["other"]}))
    assert f"{FINDINGS_MAX + 2 - SHOWN_MAX:,} more (finding) are not shown here" in shown


def test_a_problem_counts_the_causes_that_it_does_not_name() -> None:
    choices = [{"rule": "R07", "pointer": f"/{n}", "number": 0} for n in range(CAUSES_MAX + 5)]
    reply = api.post("/fix", {"document": of_assets(1), "choices": choices})
    *named, last = problem(reply, 422, "unprocessable")["errors"]
    assert len(named) == CAUSES_MAX
    assert last["detail"] == "and 5 more"


def test_more_domains_than_are_read_are_refused() -> None:
    domains = [f"{n}.example.com" for n in range(DOMAINS_MAX + 1)]
    body = {
        "document": of_assets(1),
        "target": {"pointer": "/assets/asset0"},
        "available": ["b", {"name": "a", "domains": domains}],
    }
    errors = problem(api.post("/resolve", body), 422, "unprocessable")["errors"]
    assert errors == [{"where": "/available/1/domains", "detail": "there are more than 100"}]


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"x": [0] * VALUES_MAX}, f"it holds more than {VALUES_MAX:,} values"),
        (
            {"x": "x" * (STRING_BYTES_MAX + 1)},
            f"it holds a string of more than {STRING_BYTES_MAX:,} bytes",
        ),
    ],
)
def test_a_document_that_would_hold_others_up_is_refused(
    members: Mapping[str, Any], told: str
) -> None:
    document = {"type": "Catalog", **members}
    for path in ("/validate", "/fix", "/migrate?to=v1.2.0"):
        assert told in problem(api.post(path, document), 413, "too-large")["detail"]
    line, last = api.bulk([json.dumps(document).encode()])
    assert told in line["error"]["detail"]
    assert last["summary"]["unusable"] == 1
    page = api.call("POST", "/", data={"document": json.dumps(document)})
    assert f"The document is too large: {told}." in page.text
