"""Where authentication is told in a document, and what is set apart on the way."""

from typing import Any

import msgspec
import pytest

from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    Ancestors,
    Document,
    FieldPlace,
    HolderKind,
    Kind,
    flows_of,
    inputs_of,
    parameters_of,
)
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.document.misplaced_fields import MISPLACED_MAX
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, collection, item, scene


def located(document: Any, **options: Any) -> Document:
    """The same, with the text and without."""
    raw = msgspec.json.encode(document)
    exact = locate(document, raw=raw, **options)
    plain = locate(document, **options)
    assert sorted(map(str, exact.misplaced)) == sorted(map(str, plain.misplaced))
    return exact


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("Feature", Kind.ITEM),
        ("Collection", Kind.COLLECTION),
        ("Catalog", Kind.CATALOG),
        ("FeatureCollection", Kind.ITEM_COLLECTION),
        ("feature", Kind.OTHER),
        ("other", Kind.OTHER),
        (None, Kind.OTHER),
        (["Feature"], Kind.OTHER),
    ],
)
def test_the_type_tells_the_kind(type_: object, kind: Kind) -> None:
    assert locate({"type": type_}).kind is kind


def test_what_is_no_object_is_misshapen_at_its_root() -> None:
    for root in ([], "x", None, 5, True):
        document = locate(root)
        assert document.kind is Kind.OTHER
        assert [(place.path, place.value) for place in document.misshapen] == [((), root)]


def test_everything_that_can_have_references_is_found() -> None:
    document = located(
        collection(
            {"login": LOGIN},
            assets={"a": scene("login", alternate={"x": scene("login"), "y": "no object"})},
            item_assets={"b": {"auth:refs": ["login"]}},
            links=[{"rel": "self", "href": "./c.json"}, scene("login")],
        )
    )
    found = [(holder.kind, pointer(holder.path), holder.name) for holder in document.holders]
    assert found == [
        (HolderKind.ASSET, "/assets/a", "a"),
        (HolderKind.ALTERNATE, "/assets/a/alternate/x", "x"),
        (HolderKind.ITEM_ASSET, "/item_assets/b", "b"),
        (HolderKind.LINK, "/links/0", "0"),
        (HolderKind.LINK, "/links/1", "1"),
    ]
    assert document.holders[3].refs is MISSING
    assert document.holders[2].href is None
    assert all(holder.is_official for holder in document.holders)
    assert document.is_exact


def test_assets_of_a_catalog_are_not_official() -> None:
    document = located({"type": "Catalog", "assets": {"a": scene("x")}, "links": [scene("x")]})
    assert [holder.is_official for holder in document.holders] == [False, True]


def test_holders_with_the_same_references_share_them() -> None:
    assets = {name: scene("login") for name in "abc"} | {"d": scene("login", "key"), "e": scene()}
    document = located(item({"login": LOGIN, "key": {"type": "s3"}}, assets))
    groups = {
        references.names: [h.name for h in references.holders] for references in document.references
    }
    assert groups == {("login",): ["a", "b", "c"], ("login", "key"): ["d"], (): ["e"]}


def test_references_are_resolved_here_then_above() -> None:
    above = Ancestors(
        {"auth:schemes": {"key": {"type": "s3", "description": "nearer"}, "login": {"type": "x"}}},
        {"auth:schemes": {"key": {"type": "s3"}, "far": {"type": "s3"}}},
    )
    refs = ("login", "key", "far", "nobody", "odd", "key")
    schemes = {"login": LOGIN, "odd": "no object"}
    document = locate(item(schemes, {"a": scene(*refs)}), above)
    (references,) = document.references
    assert [scheme.name for scheme in references.schemes] == ["login", "key", "far"]
    assert references.schemes[1].value["description"] == "nearer"
    assert references.inherited == ("key", "far")
    assert references.missing == ("nobody",)
    login, far = document.scheme("login"), document.scheme("far")
    assert login is not None
    assert login.value == LOGIN
    assert far is not None
    assert document.scheme("nobody") is None


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        ("https://a.example.com/x", "https://a.example.com/y/z", True),
        ("https://a.example.com/x", "https://b.example.com/x", False),
        ("https://a.example.com/x", "http://a.example.com/x", False),
        ("https://a.example.com/x", "https://u@a.example.com/x", False),
        ("https://a.example.com/x", "https://a.example.com:444/x", False),
        ("https://a.example.com/x", "https://a.example.com", False),
        ("https://a.example.com/x", "https://a.example.com/x?y", False),
        ("https://a.example.com/x?y", "https://a.example.com/x?z", False),
        ("https://a.example.com/x#y", "https://a.example.com/x#z", False),
        ("s3://bucket/x", "s3://bucket/y", True),
        ("s3://bucket/x", "s3://other/x", False),
        ("./x.tif", "../y.tif", True),
        ("./x.tif", "./x.tif?y", False),
        ("./x.tif", "//a.example.com/x", False),
        ("urn:x", "urn:y", False),
        ("./x.tif", "urn:y", False),
    ],
)
def test_hrefs_that_are_equal_up_to_the_path_share_an_access(
    one: str, other: str, is_shared: bool
) -> None:
    assets = {"a": scene("login", href=one), "b": scene("login", href=other)}
    document = located(item({"login": LOGIN}, assets))
    assert (len(document.accesses) == 1) is is_shared
    assert document.accesses[0].href == one
    assert sum(len(access.holders) for access in document.accesses) == 2


def test_an_access_belongs_to_its_references() -> None:
    assets = {"a": scene("login"), "b": {"href": "https://data.example.com/b"}, "c": scene("x")}
    assets["d"] = {"href": "https://data.example.com/b", "auth:refs": "malformed"}
    document = located(item({"login": LOGIN}, assets))
    names = [access.references and access.references.names for access in document.accesses]
    assert names == [("login",), None, ("x",)]
    assert [holder.name for holder in document.accesses[1].holders] == ["b", "d"]


@pytest.mark.parametrize("refs", ["login", None, {}, 5, [5], ["login", None], [["login"]], [{}]])
def test_references_that_are_no_list_of_texts_are_malformed(refs: object) -> None:
    document = located(item({"login": LOGIN}, {"a": {"auth:refs": refs}, "b": scene("login")}))
    assert [holder.name for holder in document.malformed] == ["a"]
    assert [references.names for references in document.references] == [("login",)]


def test_shapes_that_are_wrong_are_set_apart() -> None:
    document = located(
        {
            "type": "Feature",
            "properties": [],
            "assets": {"a": None, "b": {"alternate": []}},
            "links": [5],
        }
    )
    assert [pointer(place.path) for place in document.misshapen] == [
        "/properties",
        "/assets/a",
        "/assets/b/alternate",
        "/links/0",
    ]
    wrong = locate({"type": "Collection", "assets": [], "item_assets": 0, "links": {}})
    assert [place.expected for place in wrong.misshapen] == ["object", "object", "array"]
    features = locate({"type": "FeatureCollection", "features": {}})
    assert [pointer(place.path) for place in features.misshapen] == ["/features"]


FLOWS = {"a": {"auth:refs": ["x"], "scopes": {"auth:read": ""}}}


@pytest.mark.parametrize(
    ("document", "strays"),
    [
        ({"type": "Feature", "auth:schemes": {}}, {"/auth:schemes": FieldPlace.ITEM_TOP}),
        ({"type": "Collection", "auth:refs": []}, {"/auth:refs": FieldPlace.TOP}),
        (
            {"type": "Feature", "properties": {"auth:refs": [], "x": [{"auth:y": 1}]}},
            {
                "/properties/auth:refs": FieldPlace.PROPERTIES,
                "/properties/x/0/auth:y": FieldPlace.ELSEWHERE,
            },
        ),
        (
            {"type": "Collection", "properties": {"auth:schemes": {}}},
            {"/properties/auth:schemes": FieldPlace.ELSEWHERE},
        ),
        (
            {"type": "Collection", "summaries": {"auth:schemes": []}},
            {"/summaries/auth:schemes": FieldPlace.SUMMARIES},
        ),
        ({"type": "Catalog", "links": [{"auth:ref": 1}]}, {"/links/0/auth:ref": FieldPlace.HOLDER}),
        (
            {"type": "Feature", "assets": {"auth:a": {"auth:schemes": {}}}},
            {"/assets/auth:a/auth:schemes": FieldPlace.HOLDER},
        ),
        (
            {"type": "Feature", "item_assets": {"a": {"auth:refs": []}}},
            {"/item_assets/a/auth:refs": FieldPlace.ELSEWHERE},
        ),
        (
            {
                "type": "Collection",
                "assets": {"a": {"alternate": {"auth:refs": [], "b": {"auth:x": 1}}}},
            },
            {
                "/assets/a/alternate/auth:refs": FieldPlace.ALTERNATE_MAP,
                "/assets/a/alternate/b/auth:x": FieldPlace.ALTERNATE,
            },
        ),
        (
            {"type": "Catalog", "auth:schemes": {"auth:s": {"auth:x": 1, "flows": FLOWS}}},
            {
                "/auth:schemes/auth:s/auth:x": FieldPlace.SCHEME,
                "/auth:schemes/auth:s/flows/a/auth:refs": FieldPlace.ELSEWHERE,
            },
        ),
        (
            {"type": "FeatureCollection", "auth:refs": [], "features": [{"auth:x": 1}]},
            {"/auth:refs": FieldPlace.TOP},
        ),
    ],
)
def test_members_out_of_their_places_are_found(
    document: dict[str, object], strays: dict[str, FieldPlace]
) -> None:
    assert {pointer(s.path): s.place for s in located(document).misplaced} == strays


@pytest.mark.parametrize(
    "name",
    ["\\u0061uth:", "a\\u0075th:", "au\\u0074h:", "aut\\u0068:", "auth\\u003a", "auth\\u003A"],
)
def test_an_escape_does_not_hide_a_member(name: str) -> None:
    raw = f'{{"type": "Catalog", "links": [], "x": {{"{name}refs": []}}}}'.encode()
    document = locate(msgspec.json.decode(raw), raw=raw)
    assert [pointer(misplaced.path) for misplaced in document.misplaced] == ["/x/auth:refs"]
    assert not document.is_exact


def test_other_escapes_cost_nothing() -> None:
    raw = b'{"type": "Catalog", "links": [], "title": "M\\u00e9t\\u00e9o \\u0026 \\"more\\""}'
    assert locate(msgspec.json.decode(raw), raw=raw).is_exact


def test_a_text_that_only_mentions_a_member_is_read_to_the_end() -> None:
    document = located({"type": "Catalog", "links": [], "description": '"auth:refs": []'})
    assert not document.misplaced


def test_strays_that_do_no_harm_are_told_up_to_a_number() -> None:
    bands = [{"auth:refs": []} for _ in range(MISPLACED_MAX + 5)]
    document = {"type": "Feature", "auth:schemes": {}, "bands": bands}
    assert len(locate(document).misplaced) in (MISPLACED_MAX, MISPLACED_MAX + 1)
    assert any(misplaced.place is FieldPlace.ITEM_TOP for misplaced in locate(document).misplaced)


def test_the_newest_declared_version_counts_unless_the_caller_says_another() -> None:
    both = [Version.V1_2_0.identifier, Version.V1_1_0.identifier, "authentication", 5]
    document = {"type": "Catalog", "stac_extensions": both}
    assert locate(document).versions == (Version.V1_2_0, Version.V1_1_0)
    assert locate(document).declared == tuple(both[:3])
    assert locate(document).version is Version.V1_2_0
    assert locate(document, version=Version.V1_0_0).version is Version.V1_0_0
    assert locate({"type": "Catalog"}).version is None
    lonely = {"type": "Catalog", "stac_extensions": Version.V1_1_0.identifier}
    assert locate(lonely).versions == (Version.V1_1_0,)


def test_flows_parameters_and_inputs_are_those_of_the_right_shape() -> None:
    flow = {"parameters": {"x": {"in": "query"}, "y": "text"}}
    schemes = {
        "s": {"type": "signedUrl", "flows": {"a": flow, "b": None}, "auth:refs": ["t", 5]},
        "t": {"type": "oauth2", "flows": [], "auth:refs": "s"},
    }
    first, second = located(item(schemes)).schemes
    (found,) = flows_of(first)
    assert pointer(found.path) == "/properties/auth:schemes/s/flows/a"
    assert [parameter.name for parameter in parameters_of(found)] == ["x"]
    assert flows_of(second) == []
    assert (inputs_of(first), inputs_of(second)) == (("t",), ())
