"""A small identity provider for the tests, made of authlib's grants.

It checks what a real one does (clients, redirect URIs, PKCE, codes that work once); whoever visits
it is logged in as Alice.
"""

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import flask
import httpx
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, InvalidGrantError, grants
from authlib.oauth2.rfc6749.grants import BaseGrant, TokenEndpointMixin
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import UserInfo
from authlib.oidc.core.grants import OpenIDCode
from joserfc.jwk import OctKey
from werkzeug.serving import make_server

USER = "alice"
PASSWORD = "wonderland"
SIGNING_KEY = "only-for-the-tests-of-these-steps"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


class Client(ClientMixin):
    """A client without a secret is a public one."""

    def __init__(self, client_id: str, secret: str, redirect_uri: str) -> None:
        self.client_id = client_id
        self.secret = secret
        self.redirect_uri = redirect_uri

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_allowed_scope(self, scope: str) -> str:
        return " ".join(one for one in (scope or "").split() if one in ("openid", "read", "list"))

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri == self.redirect_uri

    def check_client_secret(self, client_secret: str) -> bool:
        return bool(self.secret) and client_secret == self.secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == ("client_secret_basic" if self.secret else "none")

    def check_response_type(self, response_type: str) -> bool:
        return response_type in ("code", "token")

    def check_grant_type(self, grant_type: str) -> bool:
        return True


@dataclass
class Code:
    """What a code was given for."""

    code: str
    client_id: str
    redirect_uri: str
    scope: str
    code_challenge: str
    code_challenge_method: str
    nonce: str | None = None

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> int:
        return int(time.time())

    def get_acr(self) -> None:
        return None

    def get_amr(self) -> None:
        return None


@dataclass
class Books:
    """Who may ask, which codes are out, and every token that was given: with its grant."""

    clients: dict[str, Client]
    codes: dict[str, Code] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    id_tokens: set[str] = field(default_factory=set)
    refresh_tokens: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class IdentityProvider:
    """`grants` of `books` say which access tokens are good."""

    url: str
    redirect_uri: str
    books: Books

    def is_good(self, authorization: str | None, grant: str | None = None) -> bool:
        """Whether this header has an access token of ours, got by that grant."""
        word, _, token = (authorization or "").partition(" ")
        given = self.books.tokens.get(token)
        return word == "Bearer" and given is not None and grant in (None, given)

    def person(self, url: str) -> str:
        """Somebody who visits a page and comes back: where the browser ends."""
        answer = httpx.get(url, trust_env=False)
        assert answer.status_code == 302, answer.text
        return str(answer.headers["location"])


class Server(AuthorizationServer):
    """authlib's, with the books that its grants write."""

    books: Books


class Refresh:
    """A refresh token of ours is good for anything that was asked."""

    def check_client(self, client: Client) -> bool:
        return True

    def get_scope(self) -> str:
        return "read"


class ByCode(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic")

    def save_authorization_code(self, code: str, request: Any) -> None:
        asked = request.payload.data
        self.server.books.codes[code] = Code(
            code,
            request.client.client_id,
            request.payload.redirect_uri,
            request.scope,
            asked.get("code_challenge", ""),
            asked.get("code_challenge_method", "plain"),
        )

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        found = self.server.books.codes.get(code)
        return found if found and found.client_id == client.client_id else None

    def delete_authorization_code(self, authorization_code: Code) -> None:
        del self.server.books.codes[authorization_code.code]

    def authenticate_user(self, authorization_code: Code) -> str:
        return USER


class WithIdToken(OpenIDCode):
    def exists_nonce(self, nonce: str, request: Any) -> bool:
        return False

    def resolve_client_private_key(self, client: Client) -> Any:
        return OctKey.import_key(SIGNING_KEY)

    def get_client_algorithm(self, client: Client) -> str:
        return "HS256"

    def get_client_claims(self, client: Client) -> dict[str, Any]:
        return {"iss": "https://idp.invalid"}

    def generate_user_info(self, user: str, scope: str) -> UserInfo:
        return UserInfo(sub=user)


class ByPassword(grants.ResourceOwnerPasswordCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic")

    def authenticate_user(self, username: str, password: str) -> str | None:
        return USER if (username, password) == (USER, PASSWORD) else None


class ByRefresh(grants.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic")

    def authenticate_refresh_token(self, refresh_token: str) -> Refresh | None:
        return Refresh() if refresh_token in self.server.books.refresh_tokens else None

    def authenticate_user(self, refresh_token: Refresh) -> str:
        return USER

    def revoke_old_credential(self, refresh_token: Refresh) -> None:
        pass


class ByExchange(BaseGrant, TokenEndpointMixin):
    """RFC 8693, of which authlib has no grant: an id token of ours for an access token."""

    GRANT_TYPE = EXCHANGE

    def validate_token_request(self) -> None:
        form = self.request.form
        if form.get("subject_token_type") != ID_TOKEN:
            raise InvalidGrantError("an id token is exchanged here")
        if form.get("subject_token") not in self.server.books.id_tokens:
            raise InvalidGrantError("this id token is none of ours")

    def create_token_response(self) -> tuple[int, dict[str, Any], list[tuple[str, str]]]:
        token = secrets.token_urlsafe(16)
        self.server.books.tokens[token] = EXCHANGE
        answer = {"access_token": token, "token_type": "Bearer"}
        answer["issued_token_type"] = "urn:ietf:params:oauth:token-type:access_token"
        return 200, answer, self.TOKEN_RESPONSE_HEADER


GRANTS: tuple[tuple[Any, list[Any]], ...] = (
    (ByCode, [CodeChallenge(required=True), WithIdToken(require_nonce=False)]),
    (grants.ClientCredentialsGrant, []),
    (grants.ImplicitGrant, []),
    (ByPassword, []),
    (ByRefresh, []),
    (ByExchange, []),
)


def _application(books: Books) -> flask.Flask:
    app = flask.Flask("identity-provider")
    app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True

    def keep(token: dict[str, Any], request: Any) -> None:
        given = request.form.get("grant_type") or "implicit"
        books.tokens[token["access_token"]] = given
        if "refresh_token" in token:
            books.refresh_tokens.add(token["refresh_token"])

    server = Server(app, query_client=books.clients.get, save_token=keep)
    server.books = books
    for grant, extensions in GRANTS:
        server.register_grant(grant, extensions)

    @app.get("/.well-known/openid-configuration")
    def discovery() -> dict[str, str]:
        root = flask.request.host_url.rstrip("/")
        return {
            "issuer": root,
            "authorization_endpoint": f"{root}/authorize?tenant=tests",
            "token_endpoint": f"{root}/token",
        }

    @app.get("/authorize")
    def authorize() -> Any:
        grant = server.get_consent_grant(end_user=USER)
        return server.create_authorization_response(grant=grant, grant_user=USER)

    @app.post("/token")
    def token() -> Any:
        answer = server.create_token_response()
        given = answer.get_json()
        if "id_token" in given:
            books.id_tokens.add(given["id_token"])
        return answer

    return app


@contextlib.contextmanager
def identity_provider() -> Iterator[IdentityProvider]:
    """One at a port of the loopback, for as long as the block lasts."""
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # (http on the loopback, for authlib)
    redirect_uri = "http://127.0.0.1:1/callback"
    books = Books(
        {
            "page": Client("page", "", redirect_uri),
            "machine": Client("machine", "s%cr t:+", redirect_uri),
        }
    )
    server = make_server("127.0.0.1", 0, _application(books), threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield IdentityProvider(f"http://127.0.0.1:{server.port}", redirect_uri, books)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
