"""O: flows of OAuth 2.0 and the URLs of logins."""

from typing import Any

import pytest

from tests.support.catalog_auth.findings import SCHEME, Row, check, found, places
from tollgate.serve.catalog_auth.document.document import REFS
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN
from tollgate.serve.catalog_auth.rules.examples.items import (
    client_credentials,
    oauth2,
    protected_item,
    signed,
)
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import Profile

TOKEN_URL = "https://login.example.com/token"
AUTHORIZE_URL = "https://login.example.com/authorize"
URN = "urn:ietf:params:oauth:token-type:"
FLOWS = f"{SCHEME}/flows"
CLIENT = f"{FLOWS}/clientCredentials"
TOKEN_FLOW: dict[str, Any] = {"tokenUrl": TOKEN_URL, "scopes": {"read": ""}}
EXCHANGE = f"{FLOWS}/tokenExchange/subjectTokenType"
URL = f"{SCHEME}/openIdConnectUrl"


def flow(name: str, **members: object) -> dict[str, object]:
    return protected_item(oauth2(**{name: {**TOKEN_FLOW, **members}}))


def exchange(subject_token_type: object, *inputs: str) -> dict[str, object]:
    scheme = oauth2(tokenExchange={**TOKEN_FLOW, "subjectTokenType": subject_token_type})
    scheme[REFS] = list(inputs)
    others = {"login": LOGIN, "client": client_credentials()}
    return protected_item(scheme, schemes=others)


def oidc(url: str) -> dict[str, object]:
    return protected_item({"type": "openIdConnect", "openIdConnectUrl": url})


def older(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "stac_extensions": [Version.V1_1_0.identifier]}


WARNING, ERROR, INFO = Severity.WARNING, Severity.ERROR, Severity.INFO
ROWS = [
    Row("O01", flow("implicit"), f"{FLOWS}/implicit", WARNING, "RFC 9700"),
    Row("O01", flow("password"), f"{FLOWS}/password", WARNING, "password"),
    Row("O04", flow("deviceCode"), f"{FLOWS}/deviceCode", WARNING, '"deviceCode"'),
    Row("O04", flow("urn:example:grant"), f"{FLOWS}/urn:example:grant", INFO, "predefined"),
    Row(
        "O05",
        flow("clientCredentials", authorizationUrl=AUTHORIZE_URL),
        f"{CLIENT}/authorizationUrl",
        WARNING,
        "clientCredentials",
    ),
    Row(
        "O05",
        flow("clientCredentials", subjectTokenType=f"{URN}jwt"),
        f"{CLIENT}/subjectTokenType",
        WARNING,
        "means nothing",
    ),
    Row("O06", flow("clientCredentials", scopes={}), f"{CLIENT}/scopes", INFO, "no scopes"),
    Row(
        "O06", flow("clientCredentials", scopes={"a b": ""}), f"{CLIENT}/scopes/a b", WARNING, "a "
    ),
    Row("O06", flow("clientCredentials", scopes={'"': ""}), f'{CLIENT}/scopes/"', WARNING, "no sc"),
    Row("O06", flow("clientCredentials", scopes={"": ""}), f"{CLIENT}/scopes/", WARNING, '""'),
    Row(
        "O10",
        protected_item(oauth2(tokenUrl=TOKEN_URL, scopes={})),
        FLOWS,
        ERROR,
        "clientCredentials",
    ),
    Row("O10", protected_item(oauth2(authorizationUrl=AUTHORIZE_URL)), FLOWS, ERROR, "implicit"),
    Row(
        "O10",
        protected_item(
            {"type": "signedUrl", "flows": {"method": "GET", "authorizationApi": TOKEN_URL}}
        ),
        FLOWS,
        ERROR,
        "method, authorizationApi",
    ),
    Row("O11", flow("client_credentials"), f"{FLOWS}/client_credentials", WARNING, "clientCreden"),
    Row("O11", flow("authorizationcode"), f"{FLOWS}/authorizationcode", WARNING, "authorizationC"),
    Row("O11", flow("accessCode"), f"{FLOWS}/accessCode", WARNING, "authorizationCode"),
    Row("O11", flow("clientCredential"), f"{FLOWS}/clientCredential", WARNING, "clientCreden"),
    Row("O11", flow("pasword"), f"{FLOWS}/pasword", WARNING, "password"),
    Row("O11", flow("password "), f"{FLOWS}/password ", ERROR, '"password "'),
    Row("O11", flow("passwordpassword"), f"{FLOWS}/passwordpassword", ERROR, "password is meant"),
    Row("O11", flow("implicitpassword"), f"{FLOWS}/implicitpassword", ERROR, "says of none"),
    Row("O11", flow(""), f"{FLOWS}/", ERROR, '""'),
    Row("O12", protected_item(oauth2()), FLOWS, ERROR, "no flow"),
    Row("O12", protected_item({"type": "signedUrl", "flows": {}}), FLOWS, ERROR, "no flow"),
    Row("O13", flow("password", refreshUrl=TOKEN_URL), f"{FLOWS}/password/refreshUrl", INFO, "tok"),
    Row("O14", exchange("id_token", "login"), EXCHANGE, ERROR, f"{URN}id_token is meant"),
    Row("O14", exchange("own token", "login"), EXCHANGE, ERROR, "not a URN"),
    Row("O14", exchange(f"{URN}idtoken", "login"), EXCHANGE, WARNING, "not a registered"),
    Row("O14", exchange(f"{URN}id_token", "login", "client"), EXCHANGE, WARNING, "different kinds"),
    Row(
        "O02",
        flow("password", tokenUrl="http://e.org/t"),
        f"{FLOWS}/password/tokenUrl",
        WARNING,
        "e",
    ),
    Row("O02", oidc("http://e.org/.well-known/openid-configuration"), URL, WARNING, "http://e.org"),
    Row("O07", oidc("https://e.org/realms/eo"), URL, WARNING, "https://e.org/realms/eo"),
    Row("O08", oidc("discover me"), URL, ERROR, '"discover me"'),
    Row("O08", oidc("/.well-known/openid-configuration"), URL, ERROR, "absolute"),
    Row("O08", oidc("https://{tenant}.e.org/"), URL, ERROR, "absolute"),
    Row("O08", oidc("https:///no-host"), URL, ERROR, "absolute"),
    Row("O08", oidc("https://e.org:port/"), URL, ERROR, "absolute"),
    Row(
        "O08",
        protected_item(signed(authorizationApi="<sign-url>")),
        f"{FLOWS}/sign/authorizationApi",
        ERROR,
        '"<sign-url>"',
    ),
    Row(
        "O09",
        flow("password", tokenUrl="https://e.org/t#x"),
        f"{FLOWS}/password/tokenUrl",
        WARNING,
        "f",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_it_is_said(row: Row) -> None:
    check(row)


@pytest.mark.parametrize(
    ("rule", "document"),
    [
        ("O01", flow("clientCredentials")),
        ("O01", protected_item({"type": "signedUrl", "flows": {"implicit": {}}})),
        ("O02", flow("password", tokenUrl="http://127.0.0.1/t")),
        ("O02", flow("password", tokenUrl="not a URL")),
        ("O02", protected_item(signed(authorizationApi="http://e.org/"))),  # (G06)
        ("O04", flow("authorizationCode")),
        ("O04", flow("tokenExchange")),
        ("O04", older(flow("tokenExchange"))),  # (E08)
        ("O04", flow("client_credentials")),  # (O11)
        ("O04", protected_item(oauth2(tokenUrl=TOKEN_URL, scopes={}))),  # (O10)
        ("O05", flow("authorizationCode", authorizationUrl=AUTHORIZE_URL)),
        ("O05", flow("implicit")),  # (S10: it has no authorizationUrl, the name may be wrong)
        ("O05", older(flow("clientCredentials", subjectTokenType=f"{URN}jwt"))),  # (E08)
        ("O05", exchange(f"{URN}id_token", "login")),
        ("O06", flow("clientCredentials", scopes={"read:eo/data.1!": ""})),
        ("O06", flow("clientCredentials", scopes=["read"])),
        ("O07", oidc("https://e.org/realms/eo/.well-known/openid-configuration")),
        ("O07", oidc("nowhere")),
        ("O08", oidc("HTTPS://e.org/.well-known/openid-configuration")),
        ("O08", oidc("https://bücher.example/.well-known/openid-configuration")),
        ("O08", oidc("https://[2001:db8::1]:8443/.well-known/openid-configuration")),
        ("O09", flow("password", tokenUrl="https://e.org/t?x=1")),
        ("O10", flow("clientCredentials")),
        (
            "O10",
            protected_item(oauth2(scopes={"tokenUrl": TOKEN_URL, "scopes": {}})),
        ),  # (a flow named so)
        ("O11", flow("deviceCode")),
        ("O11", flow("ciba")),
        ("O11", flow("code-by-mail")),
        ("O12", protected_item(oauth2(password={}))),
        ("O12", protected_item({"type": "com.example.own", "flows": {}})),
        ("O13", flow("password", refreshUrl="https://e.org/refresh")),
        ("O13", flow("password")),
        ("O14", exchange(f"{URN}jwt", "login")),
        ("O14", exchange("https://e.org/token-types/own", "login")),
        ("O14", older(exchange("id_token", "login"))),  # (E08)
        ("O14", flow("clientCredentials", subjectTokenType="id_token")),  # (O05)
    ],
)
def test_near_misses_are_silent(rule: str, document: object) -> None:
    assert not found(rule, document)


@pytest.mark.parametrize(
    ("rule", "document"),
    [
        ("O01", flow("password")),
        ("O01", flow("implicit")),
        ("O02", flow("password", tokenUrl="http://e.org/t")),
    ],
)
def test_strict_makes_it_an_error(rule: str, document: object) -> None:
    (finding,) = found(rule, document, Profile.STRICT)
    assert finding.severity is Severity.ERROR


def test_every_endpoint_is_looked_at() -> None:
    document = flow(
        "authorizationCode", authorizationUrl="http://e.org/a", tokenUrl="http://e.org/t"
    )
    assert len(places("O02", document)) == 2


def test_a_flow_that_has_the_right_name_already_is_not_overwritten() -> None:
    document = protected_item(oauth2(client_credentials=TOKEN_FLOW, clientCredentials=TOKEN_FLOW))
    (finding,) = found("O11", document)
    assert finding.fix is None


def test_before_token_exchange_nobody_can_have_meant_it() -> None:
    (finding,) = found("O11", older(flow("token_exchange")))
    assert "tokenExchange" not in finding.message
