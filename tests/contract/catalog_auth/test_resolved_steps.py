"""A client that does exactly the resolved steps gets in, at a real identity provider and a gated
file server; and what the steps say of credentials and redirects is enough to keep them at home.
"""

import base64
import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.support.catalog_auth.documents import Json, item, way, ways
from tests.support.catalog_auth.steps import StepClient
from tests.support.servers.file_server import CONTENT, FileServer, Gate, Seen, file_server
from tests.support.servers.identity_provider import (
    EXCHANGE,
    PASSWORD,
    USER,
    IdentityProvider,
    identity_provider,
)

NONCE = "a-nonce"


def header_gate(name: str, value: str) -> Gate:
    return lambda seen: (200 if seen.headers.get(name) == value else 401, {})


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        yield provider


@pytest.fixture
def serve() -> Iterator[Callable[..., FileServer]]:
    with ExitStack() as stack:
        yield lambda gate, host="127.0.0.1": stack.enter_context(file_server(gate, host))


Serve = Callable[..., FileServer]


def token_gate(provider: IdentityProvider, grant: str) -> Gate:
    def gate(seen: Seen) -> tuple[int, dict[str, str]]:
        return (200 if provider.is_good(seen.headers.get("authorization"), grant) else 401), {}

    return gate


def client_of(provider: IdentityProvider, **held: str) -> StepClient:
    named = {f"s.{name}": value for name, value in held.items()}
    return StepClient(named, provider.person, provider.redirect_uri)


def fetched(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.content) == (200, CONTENT)


def digest_gate(seen: Seen) -> tuple[int, dict[str, str]]:
    """RFC 7616, as a server checks it (MD5, quality of protection `auth`)."""
    given = seen.headers.get("authorization", "")
    if not given.startswith("Digest "):
        realm = f'Digest realm="r", qop="auth", nonce="{NONCE}", algorithm=MD5'
        return 401, {"WWW-Authenticate": realm}
    told = dict(part.strip().split("=", 1) for part in given[7:].split(","))
    told = {name: value.strip('"') for name, value in told.items()}

    def md5(text: str) -> str:
        return hashlib.md5(text.encode()).hexdigest()

    start, end = md5(f"{USER}:r:{PASSWORD}"), md5(f"GET:{seen.path}")
    middle = ":".join([NONCE, told["nc"], told["cnonce"], "auth"])
    return (200 if told["response"] == md5(f"{start}:{middle}:{end}") else 403), {}


PAIR = {"s.username": USER, "s.password": PASSWORD}
BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
HELD: dict[str, tuple[Json, Gate, dict[str, str]]] = {
    "basic": (
        {"type": "http", "scheme": "basic"},
        header_gate("authorization", f"Basic {BASIC}"),
        PAIR,
    ),
    "bearer": (
        {"type": "http", "scheme": "bearer"},
        header_gate("authorization", "Bearer t"),
        {"s.token": "t"},
    ),
    "digest": ({"type": "http", "scheme": "digest"}, digest_gate, PAIR),
    "header": (
        {"type": "apiKey", "in": "header", "name": "X-Key"},
        header_gate("x-key", "k"),
        {"s.key": "k"},
    ),
    "cookie": (
        {"type": "apiKey", "in": "cookie", "name": "sid"},
        header_gate("cookie", "sid=k"),
        {"s.key": "k"},
    ),
    "query": (
        {"type": "apiKey", "in": "query", "name": "a key"},
        lambda seen: (200 if seen.query == {"x": ["1"], "a key": ["k&/ é"]} else 401, {}),
        {"s.key": "k&/ é"},
    ),
}


@pytest.mark.parametrize(("scheme", "gate", "held"), HELD.values(), ids=HELD.keys())
def test_what_the_caller_holds_opens_the_gate(
    serve: Serve, scheme: Json, gate: Gate, held: dict[str, str]
) -> None:
    files = serve(gate)
    found = way(scheme, href=f"{files.url}/a.tif?x=1" if "key" in str(scheme) else files.url)
    assert found["missing"] == list(held)
    fetched(StepClient(held).run(found))
    wrong = StepClient(dict.fromkeys(held, "wrong")).run(found)
    assert wrong.status_code in (401, 403)


def flow(provider: IdentityProvider, name: str) -> Json:
    urls = {
        "authorizationUrl": f"{provider.url}/authorize?tenant=tests",
        "tokenUrl": f"{provider.url}/token",
        "scopes": {"read": "to read"},
    }
    return {"type": "oauth2", "flows": {name: urls}}


def test_a_machine_gets_in_by_client_credentials(provider: IdentityProvider, serve: Serve) -> None:
    files = serve(token_gate(provider, "client_credentials"))
    found = way(flow(provider, "clientCredentials"), href=files.url)
    held = {"client_id": "machine", "client_secret": "s%cr t:+"}
    fetched(client_of(provider, **held).run(found))
    with pytest.raises(httpx.HTTPStatusError, match="401"):
        client_of(provider, client_id="machine", client_secret="wrong").run(found)


def test_a_person_gets_in_by_authorization_code_with_pkce(
    provider: IdentityProvider, serve: Serve
) -> None:
    files = serve(token_gate(provider, "authorization_code"))
    found = way(flow(provider, "authorizationCode"), href=files.url)
    fetched(client_of(provider, client_id="page").run(found))


def test_the_provider_refuses_a_code_without_its_verifier(provider: IdentityProvider) -> None:
    """(what makes the test above one of PKCE)"""
    found = way(flow(provider, "authorizationCode"), href=provider.url)
    visit, post, _ = found["steps"]
    post["request"]["form"]["code_verifier"] = "x" * 43
    with pytest.raises(httpx.HTTPStatusError, match="400"):
        client_of(provider, client_id="page").run(found)
    assert visit["kind"] == "browser"


def test_a_person_gets_in_by_the_implicit_flow_and_by_password(
    provider: IdentityProvider, serve: Serve
) -> None:
    files = serve(token_gate(provider, "implicit"))
    found = way(flow(provider, "implicit"), href=files.url)
    fetched(client_of(provider, client_id="page").run(found))
    files.gate = token_gate(provider, "password")
    found = way(flow(provider, "password"), href=files.url)
    held = {"username": USER, "password": PASSWORD, "client_id": "page"}
    fetched(client_of(provider, **held).run(found))


def test_a_refresh_token_is_enough(provider: IdentityProvider, serve: Serve) -> None:
    provider.books.refresh_tokens.add("r1")
    files = serve(token_gate(provider, "refresh_token"))
    scheme = flow(provider, "authorizationCode")
    found = way(scheme, "s.refresh_token", "s.client_id", href=files.url)
    fetched(client_of(provider, refresh_token="r1", client_id="page").run(found))


def oidc(provider: IdentityProvider) -> Json:
    url = f"{provider.url}/.well-known/openid-configuration"
    return {"type": "openIdConnect", "openIdConnectUrl": url}


def test_a_person_gets_in_by_open_id_connect(provider: IdentityProvider, serve: Serve) -> None:
    files = serve(token_gate(provider, "authorization_code"))
    found = way(oidc(provider), href=files.url)
    fetched(client_of(provider, client_id="page").run(found))


def test_an_identity_is_exchanged_for_access(provider: IdentityProvider, serve: Serve) -> None:
    files = serve(token_gate(provider, EXCHANGE))
    exchange = {**flow(provider, "tokenExchange"), "auth:refs": ["s"]}
    (found,) = ways(item({"s": oidc(provider), "x": exchange}, ["x"], files.url))
    fetched(client_of(provider, client_id="page").run(found))


@pytest.mark.parametrize("field", ["signed_url", "href", "url", "signedUrl"])
def test_a_signed_url_is_got_with_the_identity_and_fetched_without(
    provider: IdentityProvider, serve: Serve, field: str
) -> None:
    def sign(seen: Seen) -> tuple[int, dict[str, str]]:
        known = seen.headers.get("authorization", "").removeprefix("Bearer ")
        if known not in provider.books.id_tokens or b'"k"' not in seen.body:
            return 401, {}
        return 200, {"body": f'{{"{field}": "{files.url}/k?signature=1"}}'}

    files = serve(lambda seen: (200 if seen.query.get("signature") else 403, {}))
    api = serve(sign)
    parameters = {name: {"in": "body", "required": True} for name in ("bucket", "key")}
    members = {"method": "POST", "authorizationApi": api.url, "parameters": parameters}
    signed = {"type": "signedUrl", "auth:refs": ["s"], "flows": {"sign": members}}
    (found,) = ways(item({"s": oidc(provider), "signed": signed}, ["signed"], "s3://b/k"))
    fetched(client_of(provider, client_id="page").run(found))
    (fetch,) = files.seen
    assert "authorization" not in fetch.headers


CARRIED: dict[str, Json] = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
}


@pytest.mark.parametrize("scheme", CARRIED.values(), ids=CARRIED.keys())
def test_a_redirect_to_another_host_is_followed_without_the_credential(
    serve: Serve, scheme: Json
) -> None:
    other = serve(lambda _: (200, {}), host="127.0.0.2")
    files = serve(lambda _: (302, {"Location": f"{other.url}/elsewhere"}))
    held = {"s.token": "t0ken", "s.key": "t0ken"}
    fetched(StepClient(held).run(way(scheme, href=files.url)))
    assert "t0ken" in str(files.seen[0].headers)
    assert "t0ken" not in str(other.seen[0].headers)


def test_a_default_credential_goes_to_public_targets_only(serve: Serve) -> None:
    files = serve(lambda _: (200, {}))
    defaults = {"Authorization": "Basic default"}
    (public,) = ways(item(href=files.url))
    StepClient(defaults=defaults).run(public)
    key = way({"type": "apiKey", "in": "header", "name": "X-Key"}, href=files.url)
    StepClient({"s.key": "k"}, defaults=defaults).run(key)
    first, second = files.seen
    assert first.headers["authorization"] == "Basic default"
    assert "authorization" not in second.headers


def test_an_answer_for_somebody_elses_visit_is_refused(provider: IdentityProvider) -> None:
    found = way(flow(provider, "authorizationCode"), href=provider.url)
    stranger = StepClient(
        {"s.client_id": "page"},
        lambda _: f"{provider.redirect_uri}?code=c&state=another",
        provider.redirect_uri,
    )
    with pytest.raises(AssertionError, match="somebody else's answer"):
        stranger.run(found)
