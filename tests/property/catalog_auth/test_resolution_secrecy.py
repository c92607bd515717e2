"""Wherever a document has a secret, a resolution and its recipes have none."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.catalog_auth.documents import Json, item, resolved
from tollgate.serve.catalog_auth.document.document import NO_ANCESTORS
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.resolve.resolution import resolve
from tollgate.serve.catalog_auth.resolve.secret_removal import WITHHELD, without_secrets
from tollgate.serve.catalog_auth.resolve.steps import Resolution
from tollgate.serve.catalog_auth.resolve.target import AccessTarget, By
from tollgate.serve.catalog_auth.resolve.wire import resolution_json

TAIL = "SHOULDNEVERBESEEN99"
MARK = "${login.evil}"
SECRETS = (
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{TAIL}",
    f"AKIA{TAIL}",
    f"ghp_{TAIL}",
    f"xoxb-1-{TAIL}",
    f"sk_live_{TAIL}",
    f"AIza{TAIL}{TAIL}",
    f"glpat-{TAIL}A",
    f"AccountKey={TAIL * 3}==",
    f"-----BEGIN RSA PRIVATE KEY-----\n{TAIL}\n-----END RSA PRIVATE KEY-----",
)
URLS = (
    "https://user:{}@data.example.com/a.tif",
    "s3://key:{}@b/k",
    "abfss://c:{}@acct.dfs.core.windows.net/k",
    "https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature={}",
    "https://b.s3.amazonaws.com/k?X-Amz-Credential={}",
    "https://b.s3.amazonaws.com/k?AWSAccessKeyId=A&Signature={}",
    "https://acct.blob.core.windows.net/c/k?sv=1&sig={}",
    "https://storage.googleapis.com/b/k?X-Goog-Signature={}",
    "https://data.example.com/a.tif?access_token={}#top",
    "https://data.example.com/a.tif?api-key={}&x=1",
    "https://data.example.com/a.tif?pwd={}",
    "https://data.example.com/a.tif?x=1&key={}0a1b2c3d4e5f",
    "https://d1.cloudfront.net/a?Policy={}&Signature={}&Key-Pair-Id=K",
)
API: Json = {"method": "POST", "authorizationApi": "https://sign.example.com/v1"}
SCHEMES: Json = {
    "o": {
        "type": "openIdConnect",
        "openIdConnectUrl": "https://idp.example.com/.well-known/openid-configuration",
    },
    "b": {"type": "http", "scheme": "bearer"},
    "k": {"type": "apiKey", "in": "query", "name": "key"},
    "c": {"type": "custom", "description": "call us"},
    "s3": {"type": "s3"},
    "x": {
        "type": "oauth2",
        "auth:refs": ["o"],
        "flows": {
            "tokenExchange": {"tokenUrl": "https://idp.example.com/x", "scopes": {"read": ""}},
            "authorizationCode": {
                "authorizationUrl": "https://idp.example.com/authorize",
                "tokenUrl": "https://idp.example.com/token",
                "refreshUrl": "https://idp.example.com/refresh",
                "scopes": {},
            },
        },
    },
    "s": {
        "type": "signedUrl",
        "auth:refs": ["b"],
        "flows": {
            "a": {
                **API,
                "parameters": {
                    "href": {"in": "query", "required": True},
                    "p": {"in": "header", "required": True, "schema": {"default": "d"}},
                    "v": {"in": "body", "required": False, "schema": {"const": "2"}},
                },
            }
        },
    },
}
STORES: Json = {"own": {"platform": "https://objects.example.org", "region": "north"}}


def base() -> Json:
    root = item(SCHEMES, list(SCHEMES), "s3://b/k", {"storage:refs": ["own"]})
    root["properties"]["storage:schemes"] = STORES
    copy: Json = json.loads(json.dumps(root))
    return copy


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all texts."""
    if isinstance(value, dict):
        return [found for name, inner in value.items() for found in places(inner, (*path, name))]
    if isinstance(value, list):
        return [found for n, inner in enumerate(value) for found in places(inner, (*path, n))]
    return [path] if isinstance(value, str) else []


PLACES = [path for path in places(base()) if path[0] in ("properties", "assets")]


def planted(path: tuple[Any, ...], text: str) -> Json:
    root = base()
    owner: Any = root
    for step in path[:-1]:
        owner = owner[step]
    owner[path[-1]] = text
    return root


def everything(root: Json) -> str:
    """All that is said about all targets of a document."""
    document = locate(root, NO_ANCESTORS)
    texts = []
    for holder in document.holders:
        found = resolve(document, AccessTarget(By.POINTER, pointer(holder.path)))
        assert isinstance(found, Resolution)
        texts.append(json.dumps(resolution_json(found, has_recipes=True)))
    return "".join(texts)


def test_the_document_of_these_tests_is_resolved_in_every_way() -> None:
    found = resolved(base())
    assert [one.ref for one in found.alternatives] == ["o", "b", "k", "c", "s3", "x", "x", "s"]


@given(st.sampled_from(PLACES), st.sampled_from(SECRETS), st.sampled_from(["{}", "a {} b", "x-{}"]))
def test_no_token_gets_out(path: tuple[Any, ...], secret: str, around: str) -> None:
    assert TAIL not in everything(planted(path, around.format(secret)))


@given(st.sampled_from(PLACES), st.sampled_from(URLS))
def test_no_secret_of_a_url_gets_out(path: tuple[Any, ...], url: str) -> None:
    assert TAIL not in everything(planted(path, url.replace("{}", TAIL)))


@given(st.sampled_from(URLS))
def test_an_href_with_a_secret_is_not_executable(url: str) -> None:
    root = item({"b": {"type": "http", "scheme": "bearer"}}, ["b"], url.replace("{}", TAIL))
    (found,) = resolved(root).alternatives
    assert not found.is_executable
    root = item(href=url.replace("{}", TAIL))
    (found,) = resolved(root).alternatives
    assert not found.is_executable


URLISH = st.from_regex(r"(https?|s3|az|abfss)://[\[\]{}:@%a-z1?#&=/. -]{0,20}", fullmatch=True)


@given(st.sampled_from(PLACES), URLISH | st.text(max_size=20))
def test_any_text_in_any_place_is_resolved(path: tuple[Any, ...], text: str) -> None:
    assert everything(planted(path, text))


def test_names_of_schemes_are_searched_too() -> None:
    name = SECRETS[2]
    root = item({name: {"type": "http", "scheme": "basic"}}, [name, f"{name}x"])
    assert TAIL not in everything(root)


@given(st.text(max_size=80))
def test_what_has_no_secret_stays_as_it_is(text: str) -> None:
    if without_secrets(text) != text:
        assert WITHHELD in without_secrets(text) or "@" in text
    for clean in ("s3://b/k", "https://h/a?key=path/a.tif&x=@1", "abfss://c@acct.dfs/k", "a@b.c"):
        assert without_secrets(clean) == clean


def executable_and_carrying(root: Json, text: str) -> tuple[set[str], set[str]]:
    """The schemes of the alternatives that are executable, and of those with the text in a step."""
    alternatives = resolution_json(resolved(root))["alternatives"]
    executable = {one["ref"] for one in alternatives if one["executable"]}
    return executable, {one["ref"] for one in alternatives if text in json.dumps(one["steps"])}


@given(st.sampled_from(PLACES), st.sampled_from(["{}", "https://e.example/{}", "s3://b/{}"]))
def test_no_document_writes_a_place_into_a_step(path: tuple[Any, ...], around: str) -> None:
    """A text that looks like `${step.name}` could have a token sent where it does not belong."""
    executable, carrying = executable_and_carrying(planted(path, around.format(MARK)), MARK)
    assert not executable & carrying


def test_what_is_executable_is_so_no_more_with_a_place_in_its_href() -> None:
    href = ("assets", "data", "href")
    usual, carrying = executable_and_carrying(planted(href, "https://e.example/plain"), "plain")
    assert usual & carrying
    executable, carrying = executable_and_carrying(planted(href, f"https://e.example/{MARK}"), MARK)
    assert not executable
    assert usual & carrying
