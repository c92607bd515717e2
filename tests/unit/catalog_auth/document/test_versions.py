"""Identifiers: the ones there are, and what is taken for an attempt at one."""

from typing import Any

import pytest

from tollgate.serve.catalog_auth.document.versions import (
    IDENTIFIER_LENGTH_MAX,
    VERSIONS_BY_IDENTIFIER,
    WELL_FORMED,
    Version,
    is_meant,
    is_nearly_meant,
    same_identifier,
    suggested_version,
)
from tollgate.serve.catalog_auth.repair.fixes import fix
from tollgate.serve.catalog_auth.repair.json_patch import patched
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, item
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity
from tollgate.serve.catalog_auth.verdict.report import validate

GOOD = "https://stac-extensions.github.io/authentication/v1.1.0/schema.json"


def test_a_version_has_an_identifier() -> None:
    assert Version.V1_1_0.identifier == GOOD
    assert VERSIONS_BY_IDENTIFIER[GOOD] is Version.V1_1_0
    assert [version.rank for version in Version] == [0, 1, 2]


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"{GOOD}#",
        GOOD.replace("https:", "http:"),
        GOOD.replace("1.1.0", "9.0.0"),
        "https://raw.githubusercontent.com/stac-extensions/authentication/main/schema.json",
        "https://github.com/stac-extensions/authentication",
        "authentication",
        "Authentication v1.1.0",
        " authentication ",
    ],
)
def test_an_attempt_is_recognised(text: str) -> None:
    assert is_meant(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://stac-extensions.github.io/file/v2.1.0/schema.json",
        "https://example.com/authentication/v1.0.0/schema.json",
        "https://stac-extensions.github.io/my-authentication/v1.0.0/schema.json",
        "authentication-of-mine",
        "",
        GOOD + "x" * IDENTIFIER_LENGTH_MAX,
    ],
)
def test_other_extensions_are_let_alone(text: str) -> None:
    assert not is_meant(text)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (f"{GOOD}#", Version.V1_1_0),
        ("http://stac-extensions.github.io/authentication/v1.2.0/schema.json", Version.V1_2_0),
        ("authentication", Version.V1_1_0),
        ("authentication v7.0.0", Version.V1_1_0),
    ],
)
def test_a_version_is_suggested(text: str, version: Version) -> None:
    assert suggested_version(text) is version


def test_well_formed_is_to_the_letter() -> None:
    assert WELL_FORMED.fullmatch(GOOD)
    for text in (f"{GOOD}#", f"{GOOD}\n", GOOD.replace(".json", "xjson"), GOOD.upper()):
        assert not WELL_FORMED.fullmatch(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.github.io/authentication/v1.0.0/schema.json",
        "https://stac-extensions.github.io/authentication-extra/v1.0.0/schema.json",
        "https://raw.githubusercontent.com/acme/authentication/v1.0.0/schema.json",
        "https://schemas.example.com/stac-extensions/authentication/v1.0.0/schema.json",
        "https://example.com/github/authentication/v1.1.0/schema.json",
    ],
)
def test_an_extension_of_somebody_else_is_left_alone(text: str) -> None:
    assert not is_meant(text)
    document: Any = {**item({"login": LOGIN}), "stac_extensions": [text, GOOD]}
    assert {finding.rule for finding in validate(document).findings} == set()
    alone = {**document, "stac_extensions": [text]}
    (missing,) = [each for each in validate(alone).findings if each.rule == "E01"]
    last = Operation("add", ("stac_extensions", "-"), GOOD)
    assert (last,) in (missing.fix, *(each.steps for each in missing.suggestions))


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("authentication", "authentification"),
        GOOD.replace("authentication", "autentication"),
        GOOD.replace("stac-extensions", "stac-extension"),
        "https://example.github.io/authentication/v1.0.0/schema.json",
    ],
)
def test_a_near_miss_is_mentioned_where_nothing_is_declared(text: str) -> None:
    assert is_nearly_meant(text)
    assert not is_meant(text)
    document: Any = {**item({"login": LOGIN}), "stac_extensions": ["x", text]}
    (told,) = [each for each in validate(document).findings if each.rule == "E03"]
    assert (told.severity, told.path) == (Severity.INFO, ("stac_extensions", 1))
    assert told.fix is None
    assert told.suggestions == ()
    # Whether it was meant is a person's to say: what is missing is not put beside it.
    assert fix(document).document == document
    (missing,) = [each for each in validate(document).findings if each.rule == "E01"]
    assert missing.fix is None
    one, other = missing.suggestions
    assert patched(document, one.steps)["stac_extensions"] == ["x", GOOD]
    assert patched(document, other.steps)["stac_extensions"] == ["x", text, GOOD]
    document["stac_extensions"].append(GOOD)
    assert not validate(document).findings


def test_a_near_miss_is_corrected_to_a_version_that_knows_what_is_used() -> None:
    near = GOOD.replace("authentication", "authentification")
    document: Any = {**item({"a": LOGIN, "b": {**LOGIN, "auth:refs": ["a"]}})}
    document["stac_extensions"] = [near]
    (missing,) = [each for each in validate(document).findings if each.rule == "E01"]
    one, other = missing.suggestions
    for each in (one, other):
        assert Version.V1_2_0.identifier in patched(document, each.steps)["stac_extensions"]


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"{GOOD}#",
        "https://example.com/authors/v1.0.0/schema.json",
        "https://example.com/oauth/v1.0.0/schema.json",
        "https://stac-extensions.github.io/file/v2.1.0/schema.json",
        "authentication/" + "x" * IDENTIFIER_LENGTH_MAX,
    ],
)
def test_what_is_no_near_miss_is_not_mentioned(text: str) -> None:
    assert not is_nearly_meant(text)


@pytest.mark.parametrize(
    "text", [f"{GOOD}#", f" {GOOD} ", f"{GOOD}/", GOOD.replace("https", "http"), GOOD.upper()]
)
def test_the_same_address_in_another_spelling(text: str) -> None:
    assert same_identifier(text) is Version.V1_1_0
    document: Any = {**item({"login": LOGIN}), "stac_extensions": [text]}
    assert fix(document).document == {**document, "stac_extensions": [GOOD]}
