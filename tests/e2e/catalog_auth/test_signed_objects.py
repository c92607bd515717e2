"""Signed URLs, fetched from a real store that checks signatures; and how clients come to them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.catalog_auth.api import PREFIX, CatalogApi
from tests.support.catalog_auth.documents import Json, item, ways
from tests.support.catalog_auth.steps import StepClient
from tests.support.manual_clock import ManualClock
from tests.support.servers.file_server import Seen, file_server
from tests.support.servers.object_store import KEY, SECRET, ObjectStore, object_store
from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.catalog_auth.api.context import CatalogContext, Slots
from tollgate.serve.catalog_auth.sign.file import signing_service
from tollgate.serve.catalog_auth.sign.signer import (
    SignedBucket,
    SignedUrl,
    Signer,
    SigningConfiguration,
    SigningCredentials,
    SigningRefusal,
    signed_url_scheme,
)
from tollgate.serve.catalog_auth.verdict.report import DEFAULT_OPTIONS

SIGNING_FILE = """
callers: anybody
buckets:
  - name: maps
    prefixes: [open/]
    endpoint: {endpoint}
"""
TILE = b"a tile of the store"
NAMES = ["open/a.tif", "open/a b+c=%20&é.tif", "open/deep/er/x'y$(z).tif"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("store") / "root") as store:
        for name in [*NAMES, "closed/a.tif"]:
            store.put("maps", name, TILE)
        yield store


@pytest.fixture
def configuration(store: ObjectStore) -> SigningConfiguration:
    bucket = SignedBucket("maps", ("open/",), "store", endpoint=store.url)
    return SigningConfiguration((bucket,), {"store": SigningCredentials(KEY, SECRET)})


def get(url: str) -> httpx.Response:
    return httpx.get(url, trust_env=False)


def signed(found: SignedUrl | SigningRefusal) -> str:
    assert isinstance(found, SignedUrl), found
    return found.url


@pytest.mark.parametrize("name", NAMES)
def test_a_signed_url_opens_its_object(
    store: ObjectStore, configuration: SigningConfiguration, name: str
) -> None:
    url = signed(Signer(configuration, SystemClock()).sign("maps", name))
    answer = get(url)
    assert (answer.status_code, answer.content) == (200, TILE)
    assert get(url.partition("?")[0]).status_code in (400, 403)


def test_the_store_refuses_what_we_did_not_sign(
    store: ObjectStore, configuration: SigningConfiguration
) -> None:
    url = signed(Signer(configuration, SystemClock()).sign("maps", "open/a.tif"))
    forged = f"{url[:-1]}{'0' if url[-1] != '0' else '1'}"
    assert get(forged).status_code == 403
    assert get(url.replace("open/a.tif", "closed/a.tif")).status_code == 403
    assert get(url.replace("X-Amz-Expires=360", "X-Amz-Expires=3600")).status_code == 403
    wrong = replace(configuration, credentials={"store": SigningCredentials(KEY, "guessed")})
    assert get(signed(Signer(wrong, SystemClock()).sign("maps", "open/a.tif"))).status_code == 403


def test_a_signed_url_is_refused_once_it_has_expired(
    store: ObjectStore, configuration: SigningConfiguration
) -> None:
    now_s = SystemClock().now_s()
    late = ManualClock(now_s - timedelta(minutes=7).total_seconds())
    assert get(signed(Signer(configuration, late).sign("maps", "open/a.tif"))).status_code >= 400
    young = ManualClock(now_s - timedelta(minutes=5).total_seconds())
    assert get(signed(Signer(configuration, young).sign("maps", "open/a.tif"))).status_code == 200


def catalog(store: ObjectStore, scheme: Json, name: str = "open/a.tif") -> Json:
    storage = {"store": {"type": "custom-s3", "platform": store.url}}
    return item(
        {"s": scheme},
        ["s"],
        f"s3://maps/{name}",
        {"storage:refs": ["store"]},
        {"storage:schemes": storage},
    )


def test_resolve_sign_and_fetch_with_both_shapes(
    store: ObjectStore, configuration: SigningConfiguration
) -> None:
    signer = Signer(configuration, SystemClock())

    def sign(seen: Seen) -> tuple[int, dict[str, str]]:
        if seen.method == "POST":
            asked = json.loads(seen.body)
            return 200, {"body": json.dumps({"signed_url": signed(signer.sign(**asked))})}
        (href,) = seen.query["href"]
        return 200, {"body": json.dumps({"href": signed(signer.sign_href(href))})}

    with file_server(sign) as api:
        found = ways(catalog(store, signed_url_scheme(api.url)))
        assert [one["flow"] for one in found] == ["object", "href"]
        for one in found:
            answer = StepClient().run(one)
            assert (answer.status_code, answer.content) == (200, TILE)
            assert urlsplit(str(answer.url)).netloc == urlsplit(store.url).netloc


def test_through_the_service_scheme_resolve_sign_and_fetch(store: ObjectStore) -> None:
    """Its own scheme in a document, resolved by it, done by a client, signed by it."""

    def serve(seen: Seen) -> tuple[int, dict[str, str]]:
        path = seen.path.removeprefix(PREFIX)
        headers = {"content-type": seen.headers.get("content-type", "")}
        call = {"params": seen.query, "content": seen.body, "headers": headers}
        reply = api.call(seen.method, path, **call)
        return reply.status_code, {"body": reply.text}

    files = {"signing.yaml": SIGNING_FILE.format(endpoint=store.url)}
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    door = signing_service("signing.yaml", files.__getitem__, (), keys, SystemClock())
    with file_server(serve) as service:
        address = f"{service.url}{PREFIX}"
        api = CatalogApi(
            CatalogContext(DEFAULT_OPTIONS, 100_000, Slots(1), address, "1.0", signing=door)
        )
        for method in ("POST", "GET"):
            scheme = api.call("GET", "/scheme", params={"method": method}).json()
            target = {"pointer": "/assets/data"}
            asked = {"document": catalog(store, scheme), "target": target}
            (one,) = api.post("/resolve", asked).json()["alternatives"]
            answer = StepClient().run(one)
            assert (answer.status_code, answer.content) == (200, TILE)
            assert [seen.path for seen in service.seen] == [f"{PREFIX}/sign"]
            service.seen.clear()
