"""Repairs: the fixes of findings, applied."""

from typing import Any

import jsonpatch
import pytest

from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.repair.fixes import Repair, SuggestionChoice, fix
from tollgate.serve.catalog_auth.rules.examples.items import (
    client_credentials,
    oauth2,
    protected_item,
    query_parameter,
    signed,
)
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.verdict.judgement import patch_of
from tollgate.serve.catalog_auth.verdict.report import Options, validate

SCHEMES = ("properties", "auth:schemes")
HREF = "https://data.example.com/scene.tif"
TOKEN = ".".join(["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxIn0", "c2lnbmF0dXJlLW9mLWl0"])
TOKEN_URL = "https://login.example.com/token"


def access(document: Any) -> Any:
    return document["properties"]["auth:schemes"]["access"]


def test_a_document_without_findings_stays_as_it_is() -> None:
    document = protected_item(client_credentials())
    fixed = fix(document)
    assert fixed.document is document
    assert fixed.patch == fixed.repairs == ()
    assert fixed.is_complete


def test_everything_mechanical_is_repaired_and_the_result_is_judged_again() -> None:
    flow = {"tokenUrl": TOKEN_URL, "scopes": ["read"]}
    scheme = {"type": "oauth2", "flows": {"clientCredentials": flow}}
    document: Any = protected_item(scheme)
    document["assets"]["data"]["auth:refs"] = "access"
    fixed = fix(document)
    assert access(fixed.document) == {
        "type": "oauth2",
        "flows": {"clientCredentials": {"tokenUrl": TOKEN_URL, "scopes": {"read": ""}}},
    }
    assert fixed.verdict == validate(fixed.document)
    assert fixed.verdict.valid
    assert fixed.verdict.schema_valid
    assert {repair.rule for repair in fixed.repairs} == {"S11", "S15"}


def test_the_patch_makes_the_result_of_what_came_in() -> None:
    flow = {"tokenUrl": "a", "scopes": ["read"]}
    document = protected_item({"type": "oauth2", "flows": {"clientCredentials": flow}})
    fixed = fix(document)
    assert fixed.patch
    assert jsonpatch.apply_patch(document, patch_of(fixed.patch)) == fixed.document


def test_that_clients_need_no_scopes_is_for_a_person_to_say() -> None:
    flow = {"tokenUrl": TOKEN_URL}
    document = protected_item({"type": "oauth2", "flows": {"clientCredentials": flow}})
    fixed = fix(document)
    assert fixed.patch == ()
    assert not fixed.verdict.valid
    where = pointer((*SCHEMES, "access", "flows", "clientCredentials", "scopes"))
    chosen = fix(document, choices=frozenset({SuggestionChoice("S11", where, 0)}))
    assert access(chosen.document)["flows"]["clientCredentials"] == {**flow, "scopes": {}}
    assert chosen.verdict.valid
    assert [each.severity for each in chosen.verdict.findings if each.rule == "O06"] == [
        Severity.INFO
    ]


def test_nothing_else_is_touched() -> None:
    document: Any = protected_item(
        oauth2(
            clientCredentials={"tokenUrl": TOKEN_URL, "scopes": ["read"]},
            own={"note": [1, None], "scopes": {}},
        )
    )
    fixed = fix(document)
    assert access(fixed.document)["flows"] == {
        "clientCredentials": {"tokenUrl": TOKEN_URL, "scopes": {"read": ""}},
        "own": {"note": [1, None], "scopes": {}},
    }
    for name in ("id", "geometry", "links", "assets", "stac_extensions"):
        assert fixed.document[name] is document[name]  # type: ignore[index, call-overload]


def test_only_the_rules_that_are_asked_for_repair() -> None:
    document = protected_item({"type": "http", "scheme": "Bearer", "flows": {}})
    fixed = fix(document, rules=frozenset({"H02"}))
    assert fixed.repairs == (Repair("H02", (*SCHEMES, "access", "scheme")),)
    assert "S07" in {finding.rule for finding in fixed.verdict.findings}


def test_a_rule_that_is_off_repairs_nothing() -> None:
    document = protected_item({"type": "http", "scheme": "Bearer"})
    assert fix(document, Options(severities={"H02": None})).patch == ()
    assert fix(document, Options(severities={"H02": Severity.ERROR})).patch != ()


def test_entries_of_one_list_go_one_after_the_other() -> None:
    document: Any = protected_item(client_credentials())
    good = Version.V1_2_0.identifier
    document["stac_extensions"] = ["authentication", f"{good}#", "https://e.org/x.json", good, good]
    fixed: Any = fix(document)
    assert fixed.document["stac_extensions"] == ["authentication", "https://e.org/x.json", good]
    assert fixed.is_complete


def test_features_are_repaired_in_their_collection() -> None:
    feature = protected_item({"type": "http", "scheme": "Bearer"})
    document = {
        "type": "FeatureCollection",
        "features": [protected_item(client_credentials()), feature],
    }
    fixed: Any = fix(document)
    assert access(fixed.document["features"][1])["scheme"] == "bearer"
    assert fixed.document["features"][0] is document["features"][0]


@pytest.mark.parametrize(
    ("rule", "document"),
    [
        ("H02", protected_item({"type": "http", "scheme": "Basic"})),
        ("K01", protected_item({"type": "apiKey", "in": "Header", "name": "k"})),
        ("G01", protected_item(signed(method="post"))),
        ("G03", protected_item(signed({"href": query_parameter(**{"in": "QUERY"})}))),
    ],
)
def test_what_a_rule_finds_it_can_repair(rule: str, document: Any) -> None:
    fixed = fix(document, rules=frozenset({rule}))
    assert [repair.rule for repair in fixed.repairs] == [rule]
    assert rule not in {finding.rule for finding in fixed.verdict.findings}


@pytest.mark.parametrize(
    ("rule", "document"),
    [
        (
            "K05",
            protected_item({"type": "apiKey", "in": "query", "name": "k"}, f"{HREF}?k=pk.abcdef"),
        ),
        ("O13", protected_item(client_credentials(refreshUrl=TOKEN_URL))),
        ("O05", protected_item(client_credentials(authorizationUrl=TOKEN_URL))),
        ("O09", protected_item(client_credentials(tokenUrl=f"{TOKEN_URL}#x"))),
        ("O10", protected_item(oauth2(tokenUrl=TOKEN_URL, scopes={}))),
        ("O11", protected_item(oauth2(client_credentials={"tokenUrl": TOKEN_URL, "scopes": {}}))),
        (
            "S11",
            protected_item(oauth2(clientCredentials={"tokenUrl": TOKEN_URL})),
        ),
        ("C01", protected_item({"type": "HTTP", "scheme": "basic"})),
        ("X01", protected_item({"type": "s3"}, f"{HREF}?X-Amz-Signature=0123456789")),
        ("X02", protected_item({"type": "s3"}, "https://u:correct-horse@e.org/a")),
        ("X04", protected_item(signed({"token": query_parameter(schema={"default": TOKEN})}))),
    ],
)
def test_what_a_repair_would_lose_or_guess_is_only_suggested(rule: str, document: Any) -> None:
    assert fix(document, rules=frozenset({rule})).patch == ()
    (finding,) = [each for each in validate(document).findings if each.rule == rule]
    choice = SuggestionChoice(rule, pointer(finding.path), len(finding.suggestions) - 1)
    fixed = fix(document, rules=frozenset(), choices=frozenset({choice}))
    assert [repair.rule for repair in fixed.repairs] == [rule]
    assert rule not in {each.rule for each in fixed.verdict.findings}
    assert fixed.unmet == ()


def test_what_only_its_author_knows_is_left() -> None:
    document = protected_item({"type": "oauth2", "flows": {}})
    fixed = fix(document)
    assert fixed.patch == ()
    assert not fixed.verdict.valid
