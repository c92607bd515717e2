"""Signing over HTTP: both shapes, whom it is for, and the scheme that describes it."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.call_costs import asked, assert_loop_is_free, cost_of
from tests.support.catalog_auth.api import PREFIX, CatalogApi, item, problem
from tests.support.manual_clock import ManualClock
from tollgate.serve.catalog_auth.api.context import CatalogContext, Slots
from tollgate.serve.catalog_auth.sign.file import SigningFileError, signing_service
from tollgate.serve.catalog_auth.verdict.report import DEFAULT_OPTIONS

NOW_S = 1_767_225_600  # 2026-01-01T00:00:00Z
KEY = "a-key-for-the-tests"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "the-secret-of-the-tests"}
FILE = """
callers: {callers}
expiry_max_s: 1800
buckets:
  - {{name: scenes, prefixes: [2026/, public/], region: eu-central-1}}
"""
OBJECT = {"bucket": "scenes", "key": "2026/a b.tif"}


def signing(callers: str = "anybody", public_url: str = "") -> CatalogApi:
    door = signing_service(
        "signing.yaml",
        lambda _: FILE.format(callers=callers),
        (KEY, "another-key-of-the-tests"),
        KEYS,
        ManualClock(NOW_S),
    )
    return CatalogApi(
        CatalogContext(DEFAULT_OPTIONS, 100_000, Slots(1), public_url, "1.0", signing=door)
    )


open_api = signing()


def refused(api: CatalogApi, body: Any, **headers: str) -> str:
    """The `error` of a refusal: 400, and nothing else in the body."""
    reply = api.post("/sign", body, headers=headers)
    assert reply.status_code == 400
    assert reply.headers["content-type"] == "application/json"
    assert list(reply.json()) == ["error"]
    return str(reply.json()["error"])


def test_an_object_is_signed_by_bucket_and_key() -> None:
    reply = open_api.post("/sign", OBJECT)
    assert reply.status_code == 200
    assert list(reply.json()) == ["signed_url"]
    assert reply.headers["cache-control"] == "no-store"
    url = urlsplit(reply.json()["signed_url"])
    assert url.netloc == "scenes.s3.eu-central-1.amazonaws.com"
    assert url.path == "/2026/a%20b.tif"
    signed = parse_qs(url.query)
    assert signed["X-Amz-Date"] == ["20260101T000000Z"]
    assert signed["X-Amz-Expires"] == ["360"]
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in reply.text


@pytest.mark.parametrize(
    ("minutes", "expires"),
    [
        (None, "2026-01-01T00:06:00Z"),
        ("10", "2026-01-01T00:10:00Z"),
        ("0", "2026-01-01T00:01:00Z"),
        ("-5", "2026-01-01T00:01:00Z"),
        ("100000000000000000000000000000", "2026-01-01T00:30:00Z"),
    ],
)
def test_an_object_is_signed_by_its_href(minutes: str | None, expires: str) -> None:
    params = {"href": "s3://scenes/public/x.tif", "_id": "somebody"}
    if minutes is not None:
        params["duration"] = minutes
    reply = open_api.call("GET", "/sign", params=params)
    assert reply.status_code == 200, reply.text
    assert list(reply.json()) == ["href", "expires"]
    assert reply.json()["expires"] == expires
    assert "somebody" not in reply.json()["href"]


@pytest.mark.parametrize(
    "body",
    [
        {"bucket": "other", "key": "2026/a.tif"},
        {"bucket": "scenes", "key": "2025/a.tif"},
        {"bucket": "scenes", "key": "2026/../2025/a.tif"},
        {"bucket": "scenes", "key": ""},
        {"bucket": "scenes"},
        {"bucket": "scenes", "key": 1},
        OBJECT | {"endpoint": "https://evil.example.com"},
        [],
        None,
    ],
)
def test_what_is_not_signed_is_a_400_with_an_error(body: Any) -> None:
    assert refused(open_api, body)


def test_every_refusal_of_the_post_looks_the_same() -> None:
    assert "Content-Type" in refused(open_api, OBJECT, **{"content-type": "text/plain"})
    big = OBJECT | {"pad": "x" * 70_000}
    assert "larger" in refused(open_api, big)
    text = open_api.call(
        "POST", "/sign", content=b"{", headers={"content-type": "application/json"}
    )
    assert (text.status_code, list(text.json())) == (400, ["error"])
    assert "CATALOG_SIGNING" in refused(CatalogApi(), OBJECT)


def test_refusals_of_the_get_are_problems() -> None:
    for href in ("s3://other/x", "s3://scenes/2025/x", "https://example.com/x", "nonsense"):
        problem(open_api.call("GET", "/sign", params={"href": href}), 403, "not-signed")
    problem(open_api.call("GET", "/sign"), 422, "unprocessable")
    for params in ({"href": "s3://scenes/2026/x", "duration": "soon"}, {"hrf": "x"}):
        problem(open_api.call("GET", "/sign", params=params), 422, "unprocessable")
    off = CatalogApi().call("GET", "/sign", params={"href": "s3://scenes/2026/x"})
    problem(off, 403, "switched-off")


@pytest.mark.parametrize(
    "headers",
    [{"x-api-key": KEY}, {"authorization": f"Bearer {KEY}"}, {"authorization": f"bearer {KEY}"}],
)
def test_a_key_opens(headers: dict[str, str]) -> None:
    keyed = signing("keys")
    assert keyed.post("/sign", OBJECT, headers=headers).status_code == 200
    reply = keyed.call("GET", "/sign", params={"href": "s3://scenes/2026/x"}, headers=headers)
    assert reply.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{}, {"x-api-key": "wrong"}, {"x-api-key": ""}, {"authorization": f"Basic {KEY}"}],
)
def test_without_a_key_nothing_is_signed(headers: dict[str, str]) -> None:
    keyed = signing("keys")
    assert "X-API-Key" in refused(keyed, OBJECT, **headers)
    reply = keyed.call("GET", "/sign", params={"href": "s3://scenes/2026/x"}, headers=headers)
    problem(reply, 401, "unauthorised")
    assert reply.headers["www-authenticate"].startswith("Bearer ")


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("callers", ["keys", "anybody"])
def test_the_scheme_describes_this_very_call(method: str, callers: str) -> None:
    api = signing(callers, "https://tollgate.example.com/catalog-auth")
    scheme = api.call("GET", "/scheme", params={"method": method}).json()
    (flow,) = scheme["flows"].values()
    assert flow["method"] == method
    assert flow["authorizationApi"] == "https://tollgate.example.com/catalog-auth/sign"
    assert ("X-API-Key" in flow["parameters"]) == (callers == "keys")
    document = item(["signed"], {"signed": scheme}, "https://scenes.s3.amazonaws.com/2026/x.tif")
    verdict = api.post("/validate", document).json()
    assert verdict["valid"]
    assert verdict["schema_valid"]
    # Where the key comes from, no version before v1.2.0 can say.
    warned = {each["rule"] for each in verdict["findings"] if each["severity"] == "warning"}
    assert warned == ({"G13"} if callers == "keys" else set())
    body = {"document": document, "target": {"pointer": "/assets/data"}}
    sign = api.post("/resolve", body).json()["alternatives"][0]["steps"][0]["request"]
    assert (sign["method"], sign["url"].partition("?")[0]) == (method, flow["authorizationApi"])


@pytest.mark.parametrize("host", ["test", "evil.example.com"])
def test_without_a_public_address_the_scheme_names_no_host(host: str) -> None:
    """A call says by itself which host it was made to, and the reply may be kept for others."""
    reply = open_api.call("GET", "/scheme", headers={"host": host})
    (flow,) = reply.json()["flows"].values()
    assert flow["authorizationApi"] == "/catalog-auth/sign"
    assert reply.headers["cache-control"] == "public, max-age=300"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("buckets: []", "callers"),
        ("callers: nobody\nbuckets: []", "callers"),
        ("callers: anybody\nbuckets: [{name: a}]", "prefixes"),
        ("callers: anybody\nbuckets: [{name: a, prefixes: []}]", "prefixes"),
        ("callers: anybody\nbuckets: [{name: a, prefixes: [x], expiry: 3}]", "expiry"),
        ("callers: anybody\nbuckets: [{name: a, prefixes: [x], endpoint: 's3://x'}]", "endpoint"),
        ("callers: anybody\nbuckets: [{name: a, prefixes: [x], credentials: GCP}]", "GCP_ACCESS"),
        (f"callers: anybody\nbuckets: [{', '.join(['{name: a, prefixes: [x]}'] * 2)}]", "twice"),
        ("callers: anybody\nbuckets: []\nexpiry_s: 1", "expiry_s"),
        ("callers: anybody\nbuckets: []\nexpiry_s: 900\nexpiry_max_s: 600", "above"),
        ("callers: keys\nbuckets: []", "CATALOG_SIGNING_KEYS"),
        ("callers: [", "signing.yaml"),
        ("", "signing.yaml"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(text: str, word: str) -> None:
    with pytest.raises(SigningFileError, match=word) as refusal:
        signing_service("signing.yaml", lambda _: text, (), KEYS, ManualClock(NOW_S))
    assert "\n" not in str(refusal.value)


def test_the_shipped_file_can_be_used() -> None:
    file = Path(__file__).parents[3] / "configs/catalog/signing.yaml"
    read = Path.read_text
    door = signing_service(
        str(file), lambda name: read(Path(name)), (KEY,), KEYS, ManualClock(NOW_S)
    )
    assert door.keys == (KEY,)


def test_the_settings_open_the_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "signing.yaml"
    file.write_text(FILE.format(callers="keys"))
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    api = CatalogApi(CATALOG_SIGNING=str(file), CATALOG_SIGNING_KEYS=KEY)
    signed = api.post("/sign", OBJECT, headers={"x-api-key": KEY})
    assert "X-Amz-Signature=" in json.dumps(signed.json())


@pytest.mark.parametrize(
    ("method", "body", "query"),
    [
        ("POST", b'{"bucket":"scenes","key":"2026/%b"}' % (b"%" * 1_019), b""),
        ("POST", b'{"bucket":"%b","key":"2026/a"}' % (b"x" * 65_000), b""),
        ("POST", b'{"%b":1}' % (b"x" * 65_000), b""),
        ("POST", b"[%b]" % b",".join([b"[]"] * 20_000), b""),
        ("GET", b"", b"href=s3://scenes/2026/" + b"%25" * 1_019),
        ("GET", b"", b"href=https://" + b"a." * 4_000 + b"/x"),
        ("GET", b"", b"href=https://scenes.s3.eu-central-1.amazonaws.com/" + b"a/" * 4_000),
    ],
)
def test_a_signature_costs_little(method: str, body: bytes, query: bytes) -> None:
    headers = [("content-type", "application/json")]
    ask = partial(asked, open_api.app, method, "/sign", body, headers, query, PREFIX)
    cost = asyncio.run(cost_of(ask))
    assert_loop_is_free(cost)
    assert cost.answer.status in (200, 400, 403)
    assert len(cost.answer.body) < len(body) + 8_192
