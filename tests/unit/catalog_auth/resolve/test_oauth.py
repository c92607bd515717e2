"""The steps of each flow of oauth2, of openIdConnect, and of schemes in a chain."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.catalog_auth.documents import Json, item, way, ways

AUTHORIZE = "https://idp.example.com/authorize"
TOKEN = "https://idp.example.com/token"
DISCOVERY = "https://idp.example.com/.well-known/openid-configuration"
OIDC: Json = {"type": "openIdConnect", "openIdConnectUrl": DISCOVERY}
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
TYPES = "urn:ietf:params:oauth:token-type:"


def oauth(flow: str, **members: Any) -> Json:
    flows = {flow: {"scopes": {"read": "to read", "list": ""}, **members}}
    return {"type": "oauth2", "flows": flows}


def exchange(refs: list[str] | None, **members: Any) -> Json:
    scheme = oauth("tokenExchange", tokenUrl=TOKEN, **members)
    return scheme if refs is None else {**scheme, "auth:refs": refs}


def test_authorization_code_is_a_visit_with_pkce_and_a_post() -> None:
    url = f"{AUTHORIZE}?tenant=t&response_type=old#top"
    found = way(oauth("authorizationCode", authorizationUrl=url, tokenUrl=TOKEN))
    visit, post, fetch = found["steps"]
    assert (visit["kind"], visit["produces"]) == ("browser", {"in": "query", "as": "code"})
    assert not urlsplit(visit["request"]["url"]).fragment
    assert parse_qs(urlsplit(visit["request"]["url"]).query) == {
        "tenant": ["t"],
        "response_type": ["code"],
        "client_id": ["${authorize.client_id}"],
        "redirect_uri": ["${authorize.redirect_uri}"],
        "scope": ["read list"],
        "state": ["${authorize.state}"],
        "code_challenge": ["${authorize.code_challenge}"],
        "code_challenge_method": ["S256"],
    }
    assert visit["derives"] == {
        "state": {"how": "random"},
        "code_verifier": {"how": "random"},
        "redirect_uri": {"how": "redirect"},
        "code_challenge": {"how": "s256", "of": "${authorize.code_verifier}"},
    }
    assert post["request"]["url"] == TOKEN
    assert post["request"]["form"] == {
        "grant_type": "authorization_code",
        "code": "${authorize.code}",
        "redirect_uri": "${authorize.redirect_uri}",
        "client_id": "${authorize.client_id}",
        "code_verifier": "${authorize.code_verifier}",
    }
    assert post["produces"] == {"pointer": "/access_token", "as": "access_token"}
    assert fetch["request"]["headers"] == {"Authorization": "Bearer ${token.access_token}"}
    assert found["missing"] == ["s.client_id"]


def test_a_client_id_of_the_scheme_is_used() -> None:
    scheme = oauth("authorizationCode", authorizationUrl=AUTHORIZE, tokenUrl=TOKEN)
    found = way({**scheme, "client_id": "a b"})
    visit, post, _ = found["steps"]
    assert "client_id=a%20b&" in visit["request"]["url"]
    assert post["request"]["form"]["client_id"] == "a b"
    assert found["missing"] == []


def test_client_credentials_are_a_post_with_the_clients_own() -> None:
    post, fetch = way(oauth("clientCredentials", tokenUrl=TOKEN))["steps"]
    assert post["request"]["form"] == {"grant_type": "client_credentials", "scope": "read list"}
    assert post["request"]["headers"]["Authorization"] == "Basic ${token.client}"
    pair = {"how": "basic-form", "of": "${token.client_id}:${token.client_secret}"}
    assert post["derives"] == {"client": pair}
    assert post["needs"] == {"client_id": "s.client_id", "client_secret": "s.client_secret"}
    assert post["credentials"]["hosts"] == ["idp.example.com"]
    assert fetch["credentials"]["hosts"] == ["data.example.com"]


def test_a_password_is_posted_and_flagged() -> None:
    found = way(oauth("password", tokenUrl=TOKEN))
    post, _ = found["steps"]
    assert post["request"]["form"]["password"] == "${token.password}"
    assert found["missing"] == ["s.username", "s.password", "s.client_id"]
    assert found["findings"] == ["O01"]
    assert "RFC 9700" in post["warnings"][0]


def test_implicit_is_a_visit_and_flagged() -> None:
    found = way(oauth("implicit", authorizationUrl=AUTHORIZE))
    visit, fetch = found["steps"]
    assert visit["produces"] == {"in": "fragment", "as": "access_token"}
    assert parse_qs(urlsplit(visit["request"]["url"]).query)["response_type"] == ["token"]
    assert "code_challenge" not in visit["request"]["url"]
    assert fetch["request"]["headers"] == {"Authorization": "Bearer ${authorize.access_token}"}
    assert found["findings"] == ["O01"]


def test_a_refresh_url_tells_how_to_go_on() -> None:
    refresh = "https://idp.example.com/refresh"
    post, _ = way(oauth("clientCredentials", tokenUrl=TOKEN, refreshUrl=refresh))["steps"]
    assert post["refresh"]["url"] == refresh
    assert post["refresh"]["form"]["grant_type"] == "refresh_token"
    assert post["alsoProduces"] == [{"pointer": "/refresh_token", "as": "refresh_token"}]


def test_what_the_caller_has_of_a_token_need_not_be_got() -> None:
    scheme = oauth("authorizationCode", authorizationUrl=AUTHORIZE, tokenUrl=TOKEN)
    (fetch,) = way(scheme, "s.access_token")["steps"]
    assert fetch["request"]["headers"] == {"Authorization": "Bearer ${fetch.access_token}"}
    refresh, fetch = way(scheme, "s.refresh_token", "s.client_id")["steps"]
    assert refresh["request"]["form"] == {
        "grant_type": "refresh_token",
        "refresh_token": "${refresh.refresh_token}",
        "client_id": "${refresh.client_id}",
    }
    assert fetch["request"]["headers"] == {"Authorization": "Bearer ${refresh.access_token}"}


def test_each_flow_is_an_alternative_of_its_own() -> None:
    flows = {
        **oauth("clientCredentials", tokenUrl=TOKEN)["flows"],
        **oauth("authorizationCode", authorizationUrl=AUTHORIZE, tokenUrl=TOKEN)["flows"],
    }
    found = ways(item({"s": {"type": "oauth2", "flows": flows}}, ["s"]))
    assert [one["flow"] for one in found] == ["clientCredentials", "authorizationCode"]
    assert "flow" not in way(oauth("clientCredentials", tokenUrl=TOKEN))


@pytest.mark.parametrize(
    "scheme",
    [
        oauth("authorizationCode", authorizationUrl=AUTHORIZE),
        oauth("authorizationCode", tokenUrl=TOKEN, authorizationUrl="/authorize"),
        oauth("implicit"),
        oauth("clientCredentials", tokenUrl="<your token url>"),
        oauth("tokenExchange", tokenUrl=7),
        oauth("deviceCode", tokenUrl=TOKEN),
        {"type": "oauth2", "flows": {}},
        {"type": "oauth2", "flows": None},
        {"type": "oauth2", "flows": {"implicit": None}},
        {"type": "oauth2"},
        {"type": "openIdConnect"},
        {"type": "openIdConnect", "openIdConnectUrl": "idp.example.com"},
    ],
)
def test_a_flow_without_its_urls_is_described(scheme: Json) -> None:
    found = way(scheme)
    assert not found["executable"]
    assert [step["kind"] for step in found["steps"]] == ["described"]


def test_open_id_connect_is_discovery_then_code_with_pkce() -> None:
    found = way(OIDC)
    login, fetch = found["steps"]
    assert (login["kind"], login["discovery"]) == ("oidc", DISCOVERY)
    discover, visit, post = login["steps"]
    assert discover["request"]["url"] == DISCOVERY
    assert discover["produces"]["pointer"] == "/authorization_endpoint"
    endpoint, _, query = visit["request"]["url"].partition("?")
    assert endpoint == "${login-discover.authorization_endpoint}"
    assert parse_qs(query)["scope"] == ["openid"]
    assert post["request"]["url"] == "${login-discover.token_endpoint}"
    assert post["produces"] == {"pointer": "/access_token", "as": "access_token"}
    assert fetch["request"]["headers"] == {"Authorization": "Bearer ${login.access_token}"}
    assert found["missing"] == ["s.client_id"]
    (fetch,) = way(OIDC, "s.access_token")["steps"]
    assert fetch["request"]["headers"] == {"Authorization": "Bearer ${fetch.access_token}"}


CODE = oauth("authorizationCode", authorizationUrl=AUTHORIZE, tokenUrl=TOKEN)
INPUTS = {
    "openIdConnect": (OIDC, "${login.id_token}", f"{TYPES}id_token"),
    "oauth2": (CODE, "${token.access_token}", f"{TYPES}access_token"),
    "bearer": ({"type": "http", "scheme": "bearer"}, "${exchange.token}", f"{TYPES}access_token"),
}


@pytest.mark.parametrize(("scheme", "token", "type_"), INPUTS.values(), ids=INPUTS.keys())
def test_a_token_exchange_takes_the_token_of_its_input(
    scheme: Json, token: str, type_: str
) -> None:
    (found,) = ways(item({"in": scheme, "x": exchange(["in"])}, ["x"]))
    assert found["chain"] == ["in"]
    *_, post, fetch = found["steps"]
    assert post["request"]["form"] == {
        "grant_type": EXCHANGE,
        "subject_token": token,
        "subject_token_type": type_,
        "scope": "read list",
    }
    assert fetch["request"]["headers"] == {"Authorization": "Bearer ${exchange.access_token}"}
    assert set(post["credentials"]["of"]) <= {"in", "x"}


def test_the_subject_token_type_of_the_flow_counts() -> None:
    scheme = exchange(["in"], subjectTokenType="urn:example:mine")
    (found,) = ways(item({"in": OIDC, "x": scheme}, ["x"]))
    assert found["steps"][1]["request"]["form"]["subject_token_type"] == "urn:example:mine"


def test_each_input_is_an_alternative_of_its_own() -> None:
    found = ways(item({"a": OIDC, "b": CODE, "x": exchange(["a", "b"])}, ["x"]))
    assert [one["chain"] for one in found] == [["a"], ["b"]]


def test_a_chain_may_have_several_links_and_steps_keep_apart() -> None:
    second = {**exchange(["x"]), "description": "again"}
    (found,) = ways(item({"a": OIDC, "x": exchange(["a"]), "y": second}, ["y"]))
    assert found["chain"] == ["a", "x"]
    assert [step["id"] for step in found["steps"]] == ["login", "exchange", "exchange2", "fetch"]
    form = found["steps"][2]["request"]["form"]
    assert form["subject_token"] == "${exchange.access_token}"


def test_a_bearer_scheme_takes_the_token_of_its_input() -> None:
    bearer = {"type": "http", "scheme": "bearer", "auth:refs": ["a"]}
    (found,) = ways(item({"a": CODE, "h": bearer}, ["h"]))
    header = found["steps"][-1]["request"]["headers"]
    assert header == {"Authorization": "Bearer ${token.access_token}"}


def test_an_exchange_without_an_input_asks_for_the_token() -> None:
    found = way(exchange(None))
    assert found["missing"] == ["s.subject_token"]


@pytest.mark.parametrize(
    ("schemes", "rule"),
    [
        ({"x": exchange(["gone"])}, "R13"),
        ({"x": exchange(["x"])}, "R14"),
        ({"x": exchange(["y"]), "y": exchange(["x"])}, "R14"),
        ({"x": exchange(["s3"]), "s3": {"type": "s3"}}, "R15"),
    ],
)
def test_a_broken_chain_is_not_executable_and_says_why(schemes: Json, rule: str) -> None:
    (found,) = ways(item(schemes, ["x"]))
    assert not found["executable"]
    assert rule in found["findings"]
    assert found["steps"][-1]["kind"] == "described"


def test_a_basic_scheme_gives_no_token_to_exchange() -> None:
    basic = {"type": "http", "scheme": "basic"}
    (found,) = ways(item({"in": basic, "x": exchange(["in"])}, ["x"]))
    assert not found["executable"]


def test_a_chain_that_is_too_long_is_cut() -> None:
    schemes: Json = {f"x{n}": exchange([f"x{n + 1}"]) for n in range(20)}
    schemes["x20"] = OIDC
    (found,) = ways(item(schemes, ["x0"]))
    assert "R17" in found["findings"]


def test_alternatives_are_bounded_however_the_chains_branch() -> None:
    layers: Json = {}
    for layer in range(4):
        refs = [f"x{layer + 1}-{n}" for n in range(4)]
        layers |= {f"x{layer}-{n}": exchange(refs) for n in range(4)}
    layers |= {f"x4-{n}": OIDC for n in range(4)}
    assert len(ways(item(layers, ["x0-0"]))) == 32
