"""Moving documents from version to version."""

from typing import Any

import jsonpatch
import pytest

from tollgate.serve.catalog_auth.document.document import REFS
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.repair.migration import Migrated, NotMigrated, migrate
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, collection
from tollgate.serve.catalog_auth.rules.examples.items import (
    client_credentials,
    oauth2,
    protected_item,
)
from tollgate.serve.catalog_auth.verdict.judgement import patch_of
from tollgate.serve.catalog_auth.verdict.report import validate

OLD, MIDDLE, NEW = Version
OTHER = "https://stac-extensions.github.io/file/v2.1.0/schema.json"
EXCHANGE = oauth2(tokenExchange={"tokenUrl": "https://login.example.com/t", "scopes": {}})


def of(version: Version, document: Any) -> Any:
    return {**document, "stac_extensions": [OTHER, version.identifier]}


def moved(document: Any, to: Version) -> Any:
    """The migrated document: well-formed in its new version, and what its patch makes."""
    answer = migrate(document, to)
    assert isinstance(answer, Migrated), answer
    assert answer.verdict == validate(answer.document)
    assert answer.verdict.declared_versions == (to,)
    assert jsonpatch.apply_patch(document, patch_of(answer.patch)) == answer.document
    return answer.document


def refused(document: Any, to: Version) -> dict[str, str]:
    """Where and why not."""
    answer = migrate(document, to)
    assert isinstance(answer, NotMigrated), answer
    assert answer.obstacles
    return {pointer(each.path): each.message for each in answer.obstacles}


@pytest.mark.parametrize("before", Version)
@pytest.mark.parametrize("after", Version)
def test_most_documents_only_change_their_identifier(before: Version, after: Version) -> None:
    document = of(before, protected_item(client_credentials()))
    assert moved(document, after) == of(after, document)


def test_a_document_that_is_there_already_stays() -> None:
    document = of(NEW, protected_item(client_credentials()))
    answer = migrate(document, NEW)
    assert isinstance(answer, Migrated)
    assert answer.patch == ()


def test_of_several_identifiers_one_is_left() -> None:
    document = protected_item(client_credentials())
    document["stac_extensions"] = [OLD.identifier, OTHER, MIDDLE.identifier, OLD.identifier]
    assert moved(document, NEW)["stac_extensions"] == [NEW.identifier, OTHER]


def test_empty_fields_that_v1_1_0_forbids_go() -> None:
    document = of(OLD, protected_item({"type": "http", "scheme": "basic", "flows": {}}))
    schemes = moved(document, MIDDLE)["properties"]["auth:schemes"]
    assert schemes == {"access": {"type": "http", "scheme": "basic"}}


def test_the_misspelled_field_of_v1_0_0_gets_its_name() -> None:
    url = LOGIN["openIdConnectUrl"]
    document = of(OLD, protected_item({"type": "openIdConnect", "openConnectUrl": url}))
    assert moved(document, NEW)["properties"]["auth:schemes"] == {"access": LOGIN}


def test_schemes_in_summaries_move_to_the_top() -> None:
    document = of(OLD, collection(summaries={"auth:schemes": {"login": LOGIN}, "gsd": [10]}))
    after = moved(document, MIDDLE)
    assert after["auth:schemes"] == {"login": LOGIN}
    assert after["summaries"] == {"gsd": [10]}


def test_schemes_in_assets_move_to_the_top() -> None:
    assets = {
        name: {"href": f"./{name}", "auth:schemes": {"login": LOGIN, name: {"type": "s3"}}}
        for name in ("a", "b")
    }
    document = of(OLD, collection(assets=assets))
    after = moved(document, MIDDLE)
    assert after["auth:schemes"] == {"login": LOGIN, "a": {"type": "s3"}, "b": {"type": "s3"}}
    assert after["assets"] == {name: {"href": f"./{name}"} for name in ("a", "b")}


def test_two_schemes_of_one_name_cannot_both_move() -> None:
    assets = {
        "a": {"href": "./a", "auth:schemes": {"login": LOGIN}},
        "b": {"href": "./b", "auth:schemes": {"login": {"type": "s3"}}},
    }
    reasons = refused(of(OLD, collection(assets=assets)), MIDDLE)
    assert "another scheme" in reasons["/assets/b/auth:schemes/login"]


def test_what_v1_1_0_makes_of_a_scheme_of_v1_0_0_is_said() -> None:
    document = of(OLD, protected_item({"type": "http"}))
    reasons = refused(document, MIDDLE)
    assert list(reasons) == ["/properties/auth:schemes/access/scheme"]


def test_a_token_exchange_needs_its_input_from_v1_2_0_on() -> None:
    reasons = refused(of(MIDDLE, protected_item(EXCHANGE)), NEW)
    assert "auth:refs" in reasons["/properties/auth:schemes/access"]
    chained = of(MIDDLE, protected_item({**EXCHANGE, REFS: ["login"]}, schemes={"login": LOGIN}))
    assert moved(chained, NEW) == of(NEW, chained)


@pytest.mark.parametrize("to", [OLD, MIDDLE])
def test_going_back_loses_no_chain(to: Version) -> None:
    document = of(NEW, protected_item({**EXCHANGE, REFS: ["login"]}, schemes={"login": LOGIN}))
    assert set(refused(document, to)) == {
        "/properties/auth:schemes/access/auth:refs",
        "/properties/auth:schemes/access/flows/tokenExchange",
    }
    named = of(NEW, protected_item(client_credentials(subjectTokenType="urn:example:token")))
    (place,) = refused(named, to)
    assert place.endswith("/subjectTokenType")


def test_v1_0_0_has_no_catalogs() -> None:
    document = of(MIDDLE, {"type": "Catalog", "links": [], "auth:schemes": {"login": LOGIN}})
    assert "rejects every one" in refused(document, OLD)["/type"]


def test_names_that_v1_0_0_trips_over_are_said() -> None:
    document = of(MIDDLE, protected_item({"type": "s3"}, "s3://b/k", schemes={"name": LOGIN}))
    assert "/properties/auth:schemes/name" in refused(document, OLD)
    lacking = {
        name: value for name, value in of(MIDDLE, protected_item(LOGIN)).items() if name != "links"
    }
    assert "links" in refused(lacking, OLD)[""]


@pytest.mark.parametrize(
    ("extensions", "says"),
    [
        ([], "declare one first"),
        ([OTHER], "declare one first"),
        (["authentication"], "repair it first"),
        (NEW.identifier, "repair it first"),
    ],
)
def test_a_document_without_a_version_is_refused(extensions: object, says: str) -> None:
    document = {**protected_item(client_credentials()), "stac_extensions": extensions}
    assert says in refused(document, NEW)["/stac_extensions"]


def test_all_features_move_or_none() -> None:
    good, bad = (
        of(MIDDLE, protected_item(client_credentials())),
        of(MIDDLE, protected_item(EXCHANGE)),
    )
    plain = {"type": "Feature", "properties": {}}
    document = {"type": "FeatureCollection", "features": [plain, good, good]}
    after = migrate(document, NEW)
    assert isinstance(after, Migrated)
    assert after.document == {**document, "features": [plain, of(NEW, good), of(NEW, good)]}
    reasons = refused({**document, "features": [good, bad]}, NEW)
    assert list(reasons) == ["/features/1/properties/auth:schemes/access"]
    assert "none" not in reasons
    assert "neither" in refused({"type": "FeatureCollection", "features": [plain]}, NEW)[""]


def test_a_document_that_is_wrong_already_moves_as_it_is() -> None:
    document = of(MIDDLE, protected_item({"type": "http"}))
    assert moved(document, NEW) == of(NEW, document)
