"""The JSON of a resolution, with every member that it can have (part D, Resolving)."""

from tests.support.catalog_auth.documents import DATA, Json, item, resolved, ways
from tollgate.serve.catalog_auth.document.document import Ancestors
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.resolve.resolution import resolve
from tollgate.serve.catalog_auth.resolve.steps import Resolution
from tollgate.serve.catalog_auth.resolve.target import AccessTarget, By, NoTarget
from tollgate.serve.catalog_auth.resolve.wire import no_target_text, resolution_json
from tollgate.serve.catalog_auth.rules.findings import Finding, Severity

OIDC = {
    "type": "openIdConnect",
    "openIdConnectUrl": "https://idp.example.com/.well-known/openid-configuration",
    "client_id": "public-client",
}
SIGNED = {
    "type": "signedUrl",
    "auth:refs": ["idp"],
    "flows": {
        "sign": {
            "method": "POST",
            "authorizationApi": "http://sign.example.com/v1",
            "parameters": {
                "bucket": {"in": "body", "required": True, "schema": {"type": "string"}},
                "key": {"in": "body", "required": True, "schema": {"type": "string"}},
            },
            "responseField": "signed_url",
        }
    },
}
EXAMPLE = item({"idp": OIDC, "signed": SIGNED, "o": OIDC}, ["signed", "oo"], "s3://b/k")


def test_a_chain_is_answered_member_by_member() -> None:
    document = locate(EXAMPLE)
    path = ("properties", "auth:schemes", "signed", "flows", "sign", "authorizationApi")
    findings = [Finding("G06", Severity.WARNING, path, "it is not https")]
    resolution = resolve(document, DATA, findings=findings)
    assert isinstance(resolution, Resolution)
    answer = resolution_json(resolution)
    assert answer["target"] == {"pointer": "/assets/data", "href": "s3://b/k"}
    assert answer["public"] is False
    assert answer["unresolved"] == [{"ref": "oo", "rule": "R01", "suggest": "o"}]
    (way,) = answer["alternatives"]
    assert {name: way[name] for name in ("ref", "type", "executable", "missing", "findings")} == {
        "ref": "signed",
        "type": "signedUrl",
        "executable": True,
        "missing": [],
        "findings": ["G06"],
    }
    login, sign, fetch = way["steps"]
    assert {name: login[name] for name in ("id", "kind", "discovery", "grants", "produces")} == {
        "id": "login",
        "kind": "oidc",
        "discovery": OIDC["openIdConnectUrl"],
        "grants": ["authorization_code+pkce", "device_code"],
        "produces": "id_token",
    }
    assert (sign["id"], sign["kind"]) == ("sign", "http")
    assert sign["request"] == {
        "method": "POST",
        "url": "http://sign.example.com/v1",
        "headers": {
            "Content-Type": "application/json",
            "Authorization": "Bearer ${login.id_token}",
        },
        "body": {"bucket": "b", "key": "k"},
    }
    produced = {"pointer": "/signed_url", "as": "url", "responseFieldAssumed": False}
    assert sign["produces"] == produced
    assert (fetch["id"], fetch["kind"]) == ("fetch", "http")
    assert fetch["request"] == {"method": "GET", "url": "${sign.url}", "headers": {}}
    assert fetch["warnings"] == ["do not forward Authorization to the signed URL"]


def test_without_refs_a_target_is_public() -> None:
    (way,) = ways(item())
    assert (way["ref"], way["type"], way["executable"], way["missing"]) == (None, "none", True, [])
    (fetch,) = way["steps"]
    assert fetch["request"] == {
        "method": "GET",
        "url": "https://data.example.com/a.tif",
        "headers": {},
    }
    assert resolved(item()).is_public
    assert resolved(item({"o": OIDC}, [])).is_public
    assert not resolved(item({"o": OIDC}, ["o"])).is_public


def test_a_target_is_named_by_pointer_or_href() -> None:
    root = item({"o": OIDC}, ["o"], "./a.tif", {"alternate": {"s3": {"href": "s3://b/a.tif"}}})
    root["links"] = [{"rel": "self", "href": "https://data.example.com/items/i1.json"}]
    pointers = {
        AccessTarget(By.POINTER, "/assets/data"): "/assets/data",
        AccessTarget(By.HREF, "./a.tif"): "/assets/data",
        AccessTarget(By.HREF, "https://data.example.com/items/a.tif"): "/assets/data",
        AccessTarget(By.HREF, "s3://b/a.tif"): "/assets/data/alternate/s3",
        AccessTarget(By.POINTER, "/links/0"): "/links/0",
    }
    for target, pointer in pointers.items():
        assert resolved(root, target=target).pointer == pointer
    assert resolved(root).href == "https://data.example.com/items/a.tif"


def test_an_unknown_target_is_refused_with_what_there_is() -> None:
    refusal = resolve(locate(item()), AccessTarget(By.POINTER, "/assets/date"))
    assert isinstance(refusal, NoTarget)
    text = "the document has no asset, alternate or link with that pointer; there is /assets/data"
    assert no_target_text(refusal) == text
    by_href = resolve(locate(item()), AccessTarget(By.HREF, "s3://nowhere/else"))
    assert isinstance(by_href, NoTarget)
    assert no_target_text(by_href) == text.partition(";")[0].replace("pointer", "href")


def test_a_relative_href_needs_to_know_the_document() -> None:
    root = item({"o": OIDC}, ["o"], "./a.tif")
    (way,) = ways(root)
    assert not way["executable"]
    assert "the href is relative" in way["steps"][-1]["text"]
    found = resolved(root, base_url="https://data.example.com/items/i1.json")
    assert found.alternatives[0].is_executable
    assert found.href == "https://data.example.com/items/a.tif"


def test_an_item_asset_is_a_promise_and_not_executable() -> None:
    root: Json = {
        "type": "Collection",
        "id": "c1",
        "auth:schemes": {"o": OIDC},
        "item_assets": {"data": {"auth:refs": ["o"]}},
        "links": [],
    }
    (way,) = ways(root, target=AccessTarget(By.POINTER, "/item_assets/data"))
    assert not way["executable"]
    assert way["steps"][-2]["request"]["url"] == "${target.href}"
    assert "the items' own assets have it" in way["steps"][-1]["text"]
    root["auth:schemes"]["o"] = {"type": "s3"}
    (way,) = ways(root, target=AccessTarget(By.POINTER, "/item_assets/data"))
    assert way["findings"] == []
    assert "the items' own assets have it" in way["steps"][-1]["text"]


def test_findings_belong_to_the_alternatives_that_they_are_about() -> None:
    key = {"type": "apiKey", "in": "query", "name": "k"}
    root = item({"a": key, "b": key}, ["a", "b"], asset={"alternate": {"x": {"href": "s3://b/k"}}})
    schemes = ("properties", "auth:schemes")
    places = {
        "K04": (*schemes, "a", "in"),
        "T02": ("assets", "data", "alternate", "x"),
        "X05": ("assets", "data", "href"),
        "R05": ("assets", "data", "auth:refs", 1),
        "E05": ("stac_extensions", 0),
    }
    findings = [Finding(rule, Severity.WARNING, path, "") for rule, path in places.items()]
    found = resolve(locate(root), DATA, findings=findings)
    assert isinstance(found, Resolution)
    by_ref = {one.ref: one.findings for one in found.alternatives}
    assert by_ref == {"a": ("K04", "X05"), "b": ("R05", "X05")}


def test_schemes_of_the_ancestors_are_used_and_said_to_be() -> None:
    key = {"type": "apiKey", "in": "header", "name": "X-Key"}
    above = {"type": "Collection", "id": "c1", "auth:schemes": {"k": key}}
    catalog = {"type": "Catalog", "id": "r", "auth:schemes": {"k": {"type": "s3"}, "o": OIDC}}
    found = resolved(item({}, ["k", "o"]), ancestors=Ancestors(above, catalog))
    assert [(one.ref, one.type, one.findings) for one in found.alternatives] == [
        ("k", "apiKey", ("R03",)),
        ("o", "openIdConnect", ("R03",)),
    ]
    assert resolved(item({}, ["k"])).unresolved[0].rule == "R02"


def test_a_dangling_ref_names_its_rule_and_the_nearest_name() -> None:
    root = item({"oidc": OIDC}, ["OIDC ", "far"], asset={"alternate": {}})
    root["assets"]["data"]["alternate"] = {"s3": {"href": "s3://b/k", "auth:refs": ["oidcs"]}}
    unresolved = [(one.ref, one.rule, one.suggest) for one in resolved(root).unresolved]
    assert unresolved == [("OIDC ", "R01", "oidc"), ("far", "R01", None)]
    other = resolved(root, target=AccessTarget(By.POINTER, "/assets/data/alternate/s3"))
    assert [(one.rule, one.suggest) for one in other.unresolved] == [("R11", "oidc")]
    assert other.alternatives == ()


def test_malformed_refs_are_no_refs() -> None:
    for refs in ("o", {"o": 1}, [7, None]):
        root = item({"o": OIDC})
        root["assets"]["data"]["auth:refs"] = refs
        assert resolved(root).is_public
