"""Judging over HTTP: envelopes, options, formats, and what is wrong with a call."""

import gzip
import json
from typing import Any

import jsonschema_rs
import pytest

from tests.support.catalog_auth.api import DANGLING, IDENTIFIER, CatalogApi, item, problem
from tollgate.serve.catalog_auth.api.problems import KINDS

api = CatalogApi(CATALOG_DOCUMENT_BYTES_MAX="200000")


def rules_of(reply: Any) -> list[str]:
    return [finding["rule"] for finding in reply["findings"]]


def test_a_good_document_has_no_findings() -> None:
    reply = api.post("/validate", item())
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.json() == {
        "valid": True,
        "schema_valid": True,
        "type": "Feature",
        "declared_versions": ["v1.1.0"],
        "counts": {"info": 0, "warning": 0, "error": 0},
        "findings": [],
    }


def test_a_bad_document_is_answered_with_200_and_findings_at_their_lines() -> None:
    text = json.dumps(DANGLING, indent=2)
    headers = {"content-type": "application/geo+json; charset=utf-8"}
    reply = api.call("POST", "/validate", content=text, headers=headers).json()
    assert (reply["valid"], reply["schema_valid"]) == (False, True)
    (dangling,) = (finding for finding in reply["findings"] if finding["rule"] == "R01")
    assert dangling["pointer"] == "/assets/data/auth:refs/0"
    assert dangling["severity"] == "error"
    line = text.splitlines()[dangling["line"] - 1]
    assert line[dangling["column"] - 1 :].startswith('"Login"')
    assert dangling["why"]
    places = [(finding["line"], finding["column"]) for finding in reply["findings"]]
    assert places == sorted(places)


def test_both_verdicts_stand_alone() -> None:
    bad_schema = item(schemes={"login": {"type": "http"}})
    reply = api.post("/validate", bad_schema).json()
    assert (reply["valid"], reply["schema_valid"]) == (False, False)
    reply = api.post("/validate", item(["Login"]) | {"stac_extensions": []}).json()
    assert reply["schema_valid"] is None


def test_an_envelope_has_context_and_options() -> None:
    alone = item(schemes={}) | {"collection": "c"}
    collection = {
        "type": "Collection",
        "stac_version": "1.1.0",
        "id": "c",
        "stac_extensions": [IDENTIFIER],
        "auth:schemes": item()["properties"]["auth:schemes"],
        "links": [],
    }
    without = api.post("/validate", {"document": alone}).json()
    assert "R03" not in rules_of(without)
    context = {"collection": collection, "catalog": None}
    inherited = api.post("/validate", {"document": alone, "context": context}).json()
    assert "R03" in rules_of(inherited)
    options = {"rules": {"R03": "off"}}
    body = {"document": alone, "context": context, "options": options}
    assert "R03" not in rules_of(api.post("/validate", body).json())


def test_places_in_an_envelope_are_those_of_the_body() -> None:
    text = '{"options": {},\n "document":\n' + json.dumps(DANGLING) + "}"
    reply = api.call(
        "POST", "/validate", content=text, headers={"content-type": "application/json"}
    ).json()
    assert {finding["line"] for finding in reply["findings"]} == {3}


@pytest.mark.parametrize(
    ("query", "is_valid"),
    [
        ("", True),
        ("?fail_on=warning", False),
        ("?fail_on=info", False),
        ("?rules=R04%3Derror", False),
        ("?rules=R04%3Doff&fail_on=info", True),
    ],
)
def test_options_in_the_query(query: str, is_valid: bool) -> None:
    unused = {"login": item()["properties"]["auth:schemes"]["login"], "spare": {"type": "s3"}}
    reply = api.post(f"/validate{query}", item(schemes=unused)).json()
    assert reply["valid"] is is_valid, reply


def test_the_query_goes_before_the_envelope() -> None:
    body = {"document": DANGLING, "options": {"rules": {"R01": "off"}, "profile": "strict"}}
    assert api.post("/validate", body).json()["valid"]
    assert not api.post("/validate?rules=R01%3Derror", body).json()["valid"]


def test_the_version_may_be_the_callers() -> None:
    reply = api.post("/validate?version=v1.0.0", item()).json()
    assert reply["declared_versions"] == ["v1.1.0"]
    assert api.post("/validate?version=1.2.0", item()).json()["valid"]


def test_settings_are_where_a_call_says_nothing() -> None:
    lenient = CatalogApi(CATALOG_RULES="R01=off", CATALOG_PROFILE="strict")
    assert lenient.post("/validate", DANGLING).json()["valid"]
    assert not lenient.post("/validate?rules=R01%3Derror", DANGLING).json()["valid"]


def test_a_feature_collection_is_judged_per_feature() -> None:
    reply = api.post("/validate", {"type": "FeatureCollection", "features": [item(), DANGLING]})
    pointers = [f["pointer"] for f in reply.json()["findings"] if f["rule"] == "R01"]
    assert pointers == ["/features/1/assets/data/auth:refs/0"]


def test_a_compressed_body() -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    body = gzip.compress(json.dumps(item()).encode())
    assert api.call("POST", "/validate", content=body, headers=headers).json()["valid"]


def test_text_for_people() -> None:
    reply = api.post("/validate", DANGLING, headers={"accept": "text/plain"})
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert "document:1:" in reply.text
    assert ": error: R01 dangling-ref\n" in reply.text
    assert reply.text.endswith("1 error, 1 warning, 1 note)\n")


def test_sarif_is_given_to_those_who_accept_it() -> None:
    reply = api.post("/validate", DANGLING, headers={"accept": "application/sarif+json"})
    assert reply.headers["content-type"] == "application/sarif+json"
    (run,) = reply.json()["runs"]
    assert {result["ruleId"] for result in run["results"]} == {"R01", "R04", "R07"}


@pytest.mark.parametrize(
    ("body", "line", "column"), [('{"a":}', 1, 6), ("{\n\n  x}", 3, 3), ("", 1, 1), ("[1,]", 1, 4)]
)
def test_what_is_not_json_is_placed(body: str, line: int, column: int) -> None:
    headers = {"content-type": "application/json"}
    for path in ("/validate", "/fix", "/resolve", "/migrate?to=v1.1.0"):
        reply = api.call("POST", path, content=body, headers=headers)
        told = problem(reply, 400, "not-json")
        assert (told["line"], told["column"]) == (line, column)


def test_a_body_that_is_too_large() -> None:
    big = {"type": "Feature", "pad": "x" * 200_000}
    problem(api.post("/validate", big), 413, "too-large")
    swelling = gzip.compress(json.dumps(big).encode())
    assert len(swelling) < 1_000
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    reply = api.call("POST", "/validate", content=swelling, headers=headers)
    problem(reply, 413, "too-large")


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        ({"content-type": "text/plain"}, 415, "wrong-media-type"),
        ({"content-type": ""}, 415, "wrong-media-type"),
        ({"content-encoding": "br"}, 415, "wrong-media-type"),
        ({"content-encoding": "gzip"}, 400, "bad-body"),
    ],
)
def test_a_body_of_another_kind(headers: dict[str, str], status: int, kind: str) -> None:
    problem(api.post("/validate", item(), headers=headers), status, kind)


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/validate?profile=harsh", "profile"),
        ("/validate?profil=strict", "profil"),
        ("/validate?version=v9.9.9", "version"),
        ("/validate?version=latest", "version"),
        ("/validate?rules=R99%3Doff", "rules"),
        ("/validate?rules=R01%3Dloud", "rules"),
        ("/validate?rules=R01", "rules"),
        ("/fix?only=R99", "only"),
    ],
)
def test_a_parameter_that_makes_no_sense(path: str, where: str) -> None:
    told = problem(api.post(path, item()), 422, "unprocessable")
    assert [cause["where"] for cause in told["errors"]] == [where]


@pytest.mark.parametrize(
    ("envelope", "where"),
    [
        ({"context": {"parent": {}}}, "/context"),
        ({"context": {"collection": []}}, "/context/collection"),
        ({"options": {"profile": "harsh"}}, "/options/profile"),
        ({"options": {"rules": {"R01": "loud"}}}, "/options/rules"),
        ({"option": {}}, "/option"),
    ],
)
def test_an_envelope_that_is_not_as_it_should_be(envelope: dict[str, Any], where: str) -> None:
    told = problem(api.post("/validate", {"document": item()} | envelope), 422, "unprocessable")
    assert [cause["where"] for cause in told["errors"]] == [where]


def test_paths_and_methods_that_are_not_there() -> None:
    problem(api.call("GET", "/nowhere"), 404, "not-found")
    problem(api.call("GET", "/rules/R99"), 404, "not-found")
    refused = api.call("DELETE", "/rules")
    problem(refused, 405, "wrong-method")
    assert refused.headers["allow"] == "GET"


def test_head_is_get() -> None:
    reply = api.call("HEAD", "/versions")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"


def test_the_prefix_alone_leads_to_the_page() -> None:
    reply = api.call("GET", "")
    assert (reply.status_code, reply.headers["location"]) == (308, "/catalog-auth/")


def test_the_kinds_of_problems_are_told_apart() -> None:
    assert len({kind.kind for kind in KINDS}) == len(KINDS)


def test_rules_and_versions() -> None:
    listed = api.call("GET", "/rules").json()
    assert [rule["id"] for rule in listed] == sorted(rule["id"] for rule in listed)
    assert len(listed) > 90
    versions = api.call("GET", "/versions").json()
    assert [version["version"] for version in versions] == ["v1.0.0", "v1.1.0", "v1.2.0"]
    assert [version["is_latest"] for version in versions] == [False, False, True]


def test_every_rule_finds_its_example_and_repairs_it() -> None:
    for rule in api.call("GET", "/rules").json():
        told = api.call("GET", f"/rules/{rule['id']}").json()
        assert rule["id"] in {finding["rule"] for finding in told["findings"]}
        has_fix = any(
            "fix" in finding for finding in told["findings"] if finding["rule"] == rule["id"]
        )
        assert (told["repaired"] is not None) == has_fix, rule["id"]


def test_a_fix_returns_patch_document_and_repairs() -> None:
    assert api.post("/fix", DANGLING).json()["patch"] == []
    chosen = {"rule": "R07", "pointer": "/assets/data/auth:refs/0", "number": 0}
    reply = api.post("/fix", {"document": DANGLING, "choices": [chosen]}).json()
    assert reply["patch"] == [
        {"op": "replace", "path": "/assets/data/auth:refs/0", "value": "login"}
    ]
    assert reply["document"] == item()
    assert reply["repairs"] == [{"rule": "R07", "pointer": "/assets/data/auth:refs/0"}]
    assert reply["complete"]
    assert reply["verdict"]["valid"]
    twice = item(["login", "login"])
    assert api.post("/fix", twice).json()["repairs"][0]["rule"] == "R05"
    assert api.post("/fix?only=E01", twice).json()["patch"] == []


@pytest.mark.parametrize(
    "choice", [{"number": 1}, {"number": -1}, {"rule": "R01"}, {"pointer": "/assets/data"}]
)
def test_a_choice_that_no_finding_offers_is_refused(choice: dict[str, Any]) -> None:
    chosen = {"rule": "R07", "pointer": "/assets/data/auth:refs/0", "number": 0} | choice
    reply = api.post("/fix", {"document": DANGLING, "choices": [chosen]})
    told = problem(reply, 422, "unprocessable")
    assert told["errors"][0]["where"] == "/choices"


def test_a_migration_declares_the_other_version() -> None:
    reply = api.post("/migrate?to=v1.2.0", item()).json()
    assert reply["version"] == "v1.2.0"
    (declared,) = reply["document"]["stac_extensions"]
    assert declared == IDENTIFIER.replace("1.1.0", "1.2.0")
    assert reply["verdict"]["schema_valid"]
    assert reply["patch"]


def test_another_version_that_cannot_be() -> None:
    undeclared = item() | {"stac_extensions": []}
    told = problem(api.post("/migrate?to=1.2.0", undeclared), 422, "unprocessable")
    assert told["errors"]
    problem(api.post("/migrate?to=9.9.9", item()), 422, "unprocessable")
    problem(api.post("/migrate", item()), 422, "unprocessable")


def test_resolving_says_the_way_and_what_is_missing() -> None:
    body = {"document": item(), "target": {"pointer": "/assets/data"}, "recipes": True}
    reply = api.post("/resolve", body).json()
    (way,) = reply["alternatives"]
    assert way["ref"] == "login"
    assert way["missing"]
    assert "curl" in way["recipes"]
    held = [*way["missing"], {"name": "login", "domains": ["data.example.com"]}]
    reply = api.post("/resolve", body | {"available": held}).json()
    assert reply["alternatives"][0]["missing"] == []


@pytest.mark.parametrize(
    ("members", "where"),
    [
        ({}, ""),
        ({"target": {}}, "/target"),
        ({"target": {"pointer": "/assets/data", "href": "x"}}, "/target"),
        ({"target": {"pointer": "/assets/other"}}, "/target/pointer"),
        ({"target": {"href": "https://example.com/other"}}, "/target/href"),
        ({"target": {"pointer": "/assets/data"}, "available": [1]}, "/available/0"),
    ],
)
def test_a_target_that_is_not_there(members: dict[str, Any], where: str) -> None:
    told = problem(api.post("/resolve", {"document": item()} | members), 422, "unprocessable")
    assert [cause["where"] for cause in told["errors"]] == [where]


def test_the_document_of_the_api_is_a_valid_one() -> None:
    document = api.call("GET", "/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert document["servers"] == [{"url": "/catalog-auth"}]
    for schema in document["components"]["schemas"].values():
        assert jsonschema_rs.meta.is_valid(schema)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            statuses = set(operation["responses"])
            if method == "post" and path != "/sign":
                assert statuses >= {"400", "413", "415", "422"}, path
            assert "HTTPValidationError" not in json.dumps(operation)
