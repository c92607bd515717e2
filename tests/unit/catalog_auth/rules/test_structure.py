"""Rules of structure, declaration and references: where each finding stands, and what repairs it.

A case is a document, the rule, and the pointers of its findings with the document's value there
after the fix (NO_FIX where a person has to decide).
"""

from typing import Any

import pytest

from tests.support.catalog_auth.findings import repair_of
from tollgate.serve.catalog_auth.document.document import Ancestors
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.repair.json_patch import patched
from tollgate.serve.catalog_auth.rules.examples.documents import KEY, LOGIN, collection, item, scene
from tollgate.serve.catalog_auth.verdict.report import validate

NO_FIX = object()
GONE = object()
V1_1 = Version.V1_1_0.identifier
V1_2 = Version.V1_2_0.identifier
S3 = {"type": "s3"}
TOKEN_URL = "https://login.example.com/token"
SCHEMES = "/properties/auth:schemes"


def oauth2(**flows: Any) -> Any:
    return {"login": {"type": "oauth2", "flows": flows}}


def signed(**members: Any) -> Any:
    flow = {"method": "GET", "authorizationApi": "https://sign.example.com/", **members}
    return {"s": {"type": "signedUrl", "flows": {"a": {**flow, "responseField": "href"}}}}


def value_at(document: Any, path: str) -> Any:
    for step in path.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        try:
            document = document[int(name)] if isinstance(document, list) else document[name]
        except (KeyError, IndexError):
            return GONE
    return document


CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("S04", item({"a": {"name": "X", "in": "header"}}), {f"{SCHEMES}/a/type": "apiKey"}),
    ("S04", item({"a": {"scheme": "basic"}}), {f"{SCHEMES}/a/type": "http"}),
    ("S04", item({"a": {"flows": {"x": {"scopes": {}}}}}), {f"{SCHEMES}/a/type": "oauth2"}),
    (
        "S04",
        item({"a": {"flows": {"x": {"authorizationApi": "x"}}}}),
        {f"{SCHEMES}/a/type": "signedUrl"},
    ),
    ("S04", item({"a": {"flows": {}}}), {f"{SCHEMES}/a/type": NO_FIX}),
    ("S04", item({"a": {}}), {f"{SCHEMES}/a/type": NO_FIX}),
    (
        "S06",
        item({"k": {"type": "apiKey"}}),
        {f"{SCHEMES}/k/name": NO_FIX, f"{SCHEMES}/k/in": NO_FIX},
    ),
    ("S07", item({"a": {**S3, "scheme": "basic"}}), {f"{SCHEMES}/a/scheme": GONE}),
    ("S08", item({"a": {**LOGIN, "description": 5}}), {f"{SCHEMES}/a/description": NO_FIX}),
    ("S08", item({"a": S3}, links={}), {"/links": NO_FIX}),
    ("S09", item(oauth2(x=None)), {f"{SCHEMES}/login/flows/x": NO_FIX}),
    ("S11", item(oauth2(x={})), {f"{SCHEMES}/login/flows/x/scopes": {}}),
    (
        "S11",
        item(oauth2(x={"scopes": ["read", "write"]})),
        {f"{SCHEMES}/login/flows/x/scopes": {"read": "", "write": ""}},
    ),
    ("S11", item(oauth2(x={"scopes": [5]})), {f"{SCHEMES}/login/flows/x/scopes": NO_FIX}),
    ("S11", item(oauth2(x={"scopes": {"a": 1}})), {f"{SCHEMES}/login/flows/x/scopes/a": NO_FIX}),
    (
        "S13",
        item(signed(parameters={"x": {"in": "query", "required": "TRUE"}})),
        {f"{SCHEMES}/s/flows/a/parameters/x/required": True},
    ),
    (
        "S13",
        item(signed(parameters={"x": {"in": "query", "required": "yes", "description": 1}})),
        {
            f"{SCHEMES}/s/flows/a/parameters/x/description": NO_FIX,
            f"{SCHEMES}/s/flows/a/parameters/x/required": NO_FIX,
        },
    ),
    (
        "S14",
        item(signed(parameters={"x": {"in": "query", "required": True, "schema": True}})),
        {f"{SCHEMES}/s/flows/a/parameters/x/schema": {}},
    ),
    (
        "S14",
        item(
            signed(
                parameters={
                    "x": {
                        "in": "query",
                        "required": True,
                        "schema": {
                            "items": [{"pattern": "("}],
                            "patternProperties": {"[": {"example": 1}},
                        },
                    }
                }
            )
        ),
        {
            f"{SCHEMES}/s/flows/a/parameters/x/schema/items/0/pattern": NO_FIX,
            f"{SCHEMES}/s/flows/a/parameters/x/schema/patternProperties/[": NO_FIX,
            f"{SCHEMES}/s/flows/a/parameters/x/schema/patternProperties/[/example": NO_FIX,
        },
    ),
    (
        "S15",
        item({"a": S3}, {"x": {"auth:refs": "a"}, "y": {"auth:refs": [1]}}),
        {"/assets/x/auth:refs": ["a"], "/assets/y/auth:refs": NO_FIX},
    ),
    (
        "S16",
        {**item(assets={"x": scene("a")}), "auth:schemes": {"a": S3}},
        {"/auth:schemes": GONE},
    ),
    ("S16", {**item({"a": S3}), "auth:schemes": {"a": S3}}, {"/auth:schemes": GONE}),
    ("S16", {**item({"a": S3}), "auth:schemes": {"b": S3}}, {"/auth:schemes": NO_FIX}),
    ("S16", collection({"a": S3}, **{"auth:refs": ["a"]}), {"/auth:refs": NO_FIX}),
    ("S17", item({"a": S3}, {"x": {"auth:ref": ["a"]}}), {"/assets/x/auth:ref": GONE}),
    ("S17", collection(**{"auth:schemas": {"a": S3}}), {"/auth:schemas": GONE}),
    ("S17", collection({}, **{"auth:schemas": {"a": S3}}), {"/auth:schemas": NO_FIX}),
    ("S17", collection({}, **{"auth:x": 1}), {"/auth:x": NO_FIX}),
    ("S17", item({"a": {**S3, "title": 1, "x": 1}}), {f"{SCHEMES}/a": NO_FIX}),
    ("E01", {**item({"a": S3}), "stac_extensions": ["x"]}, {"/stac_extensions": ["x", V1_1]}),
    ("E01", {**item({"a": S3}), "stac_extensions": None}, {"/stac_extensions": [V1_1]}),
    ("E01", {**item({"a": S3}), "stac_extensions": V1_2}, {"/stac_extensions": [V1_2]}),
    ("E01", {**item({"a": S3}), "stac_extensions": {}}, {"/stac_extensions": NO_FIX}),
    (
        "E01",
        {**item({"a": S3, "b": {**S3, "auth:refs": ["a"]}}), "stac_extensions": []},
        {"/stac_extensions": [V1_2]},
    ),
    ("E03", {**item({"a": S3}), "stac_extensions": [f"{V1_2}#"]}, {"/stac_extensions/0": V1_2}),
    (
        "E03",
        {**item({"a": S3}), "stac_extensions": ["authentication", V1_2]},
        {"/stac_extensions/0": V1_2},
    ),
    ("E04", item({"a": S3}, version=Version.V1_0_0), {"/stac_extensions/0": V1_1}),
    ("E04", item({"a": {}}, version=Version.V1_0_0), {"/stac_extensions/0": NO_FIX}),
    (
        "E05",
        {**item({"a": S3}), "stac_extensions": [V1_2, V1_1, V1_2]},
        {"/stac_extensions/1": GONE},
    ),
    (
        "E08",
        item(
            oauth2(clientCredentials={"tokenUrl": TOKEN_URL, "scopes": {}, "subjectTokenType": "x"})
        ),
        {f"{SCHEMES}/login/flows/clientCredentials/subjectTokenType": "x"},
    ),
    ("R01", item({"a": S3}, {"x": scene("a", "b", "b")}), {"/assets/x/auth:refs/1": NO_FIX}),
    ("R05", item({"a": S3}, {"x": scene("a", "a")}), {"/assets/x/auth:refs": ["a"]}),
    ("R05", item({"a": {**S3, "auth:refs": ["a", 5, "a"]}}), {f"{SCHEMES}/a/auth:refs": ["a", 5]}),
    ("R06", item({"a": S3}, {"x": scene()}), {"/assets/x/auth:refs": GONE}),
    ("R07", item({"apikey": KEY}, {"x": scene("API-Key")}), {"/assets/x/auth:refs/0": "apikey"}),
    (
        "R14",
        item({"a": {**KEY, "auth:refs": ["b"]}, "b": {**KEY, "auth:refs": ["a"]}}),
        {f"{SCHEMES}/b/auth:refs": NO_FIX},
    ),
]


@pytest.mark.parametrize(("rule", "document", "places"), CASES)
def test_a_finding_has_its_place_and_its_repair(
    rule: str, document: Any, places: dict[str, Any]
) -> None:
    found = [finding for finding in validate(document).findings if finding.rule == rule]
    assert sorted(pointer(finding.path) for finding in found) == sorted(places)
    for finding in found:
        wanted = places[pointer(finding.path)]
        steps = repair_of(finding)
        if steps is None:
            assert wanted is NO_FIX
        else:
            assert value_at(patched(document, steps), pointer(finding.path)) == wanted


def test_what_is_moved_arrives() -> None:
    moved = {"S16": {**item(assets={"x": scene("a")}), "auth:schemes": {"a": S3}}}
    moved["S17"] = item(assets={"x": scene("a")})
    moved["S17"]["properties"] = {"auth:scheme": {"a": S3}}
    for rule, document in moved.items():
        (finding,) = [finding for finding in validate(document).findings if finding.rule == rule]
        steps = repair_of(finding)
        assert steps is not None
        assert validate(patched(document, steps)).valid, rule


def test_schemes_of_the_collection_can_be_copied() -> None:
    document = item(assets={"x": scene("a")})
    above = Ancestors({"type": "Collection", "auth:schemes": {"a": S3}})
    (finding,) = [f for f in validate(document, ancestors=above).findings if f.rule == "S01"]
    assert finding.fix is not None
    after = validate(patched(document, finding.fix))
    assert after.valid
    assert after.schema_valid
