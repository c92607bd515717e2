"""A credential, and how it is put on a request: http and apiKey schemes, and tokens from steps.

Header templates per HTTP scheme name (IANA's registry, RFC 9110): `Basic` (RFC 7617), `Bearer`
(RFC 6750) and any name outside the registry take `<Name> <credentials>`; `Digest` (RFC 7616)
answers a challenge; the rest needs keys, tickets or proofs per request, for which there is no
template.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from urllib.parse import quote, unquote_plus, urlsplit

from tollgate.serve.catalog_auth.document.document import Scheme
from tollgate.serve.catalog_auth.document.urls import query_of, scheme_of
from tollgate.serve.catalog_auth.resolve import steps

ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
# Registered schemes that no header template serves (IANA HTTP Authentication Schemes).
UNSUPPORTED = frozenset(
    {"concealed", "dpop", "gnap", "hoba", "mutual", "negotiate", "oauth", "privatetoken"}
    | {"scram-sha-1", "scram-sha-256", "vapid"}
)
_TOKEN_CHARACTERS = frozenset("!#$%&'*+-.^_`|~")


class CredentialCarrier(Enum):
    """The way in which a credential is put on a request."""

    AUTHORIZATION = "authorization"
    BASIC = "basic"
    DIGEST = "digest"
    HEADER = "header"
    QUERY = "query"
    COOKIE = "cookie"


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential of the scheme `of`. `value` is a placeholder of an earlier step; None: the
    caller holds it, under the name `input`. `name` is the header's, query parameter's or cookie's,
    or the word before the value in `Authorization`."""

    of: str
    way: CredentialCarrier
    name: str
    input: str = "token"
    value: str | None = None
    token_type: str | None = None

    def token(self, step: str) -> str | None:
        """The token as a text for that step; None when this is no token."""
        if self.way in (CredentialCarrier.BASIC, CredentialCarrier.DIGEST):
            return None
        return self.value or steps.placeholder(step, self.input)

    @property
    def needs(self) -> Mapping[str, steps.Need]:
        if self.value is not None:
            return {}
        if self.way in (CredentialCarrier.BASIC, CredentialCarrier.DIGEST):
            return {name: steps.Need(self.of, name) for name in ("username", "password")}
        return {self.input: steps.Need(self.of, self.input)}


@dataclass(frozen=True, slots=True)
class UnusableFlow:
    """The reason why a scheme gives nothing that a client could put on a request by itself."""

    reason: str


def http_credential(scheme: Scheme, value: str | None = None) -> Credential | UnusableFlow:
    """Of an `http` scheme; `value` is what another scheme has given for it."""
    written = scheme.value.get("scheme")
    if not isinstance(written, str) or not is_http_token(written):
        return UnusableFlow("its `scheme` is not the name of an HTTP authentication scheme")
    name = written.lower()
    if name in ("basic", "digest"):
        way = CredentialCarrier.BASIC if name == "basic" else CredentialCarrier.DIGEST
        return Credential(scheme.name, way, name.capitalize())
    if name in UNSUPPORTED:
        return UnusableFlow(f"HTTP {written} takes a key, a ticket or a proof for every request")
    if name == "bearer":
        written = "Bearer"
    input_ = "token" if name == "bearer" else "credentials"
    return Credential(
        scheme.name, CredentialCarrier.AUTHORIZATION, written, input_, value, ACCESS_TOKEN
    )


def key_credential(scheme: Scheme, value: str | None = None) -> Credential | UnusableFlow:
    """Of an `apiKey` scheme."""
    name = scheme.value.get("name")
    where = scheme.value.get("in")
    if not isinstance(name, str) or not name:
        return UnusableFlow("its `name` is missing")
    if where not in ("header", "query", "cookie"):
        return UnusableFlow("its `in` is neither header nor query nor cookie")
    if where != "query" and not is_http_token(name):
        return UnusableFlow(f"its `name` cannot be a {where}'s")
    return Credential(scheme.name, CredentialCarrier(where), name, "key", value)


def bearer(
    scheme: str,
    value: str | None,
    token_type: str = ACCESS_TOKEN,
    input_: str = "access_token",
) -> Credential:
    """A token for `Authorization: Bearer`; `value` None: the caller holds it already, under the
    name `input_`."""
    return Credential(scheme, CredentialCarrier.AUTHORIZATION, "Bearer", input_, value, token_type)


def sent(
    step: str,
    request: steps.StepRequest,
    credential: Credential | None,
    produces: tuple[steps.Produced, ...] = (),
    warnings: tuple[str, ...] = (),
) -> steps.HttpStep:
    """The step that makes this request, with the credential on it."""
    hosts = hosts_of(request.url)
    if credential is None:
        rule = steps.CredentialRule((), hosts)
        return steps.HttpStep(
            id=step, request=request, produces=produces, credentials=rule, warnings=warnings
        )
    put_on, derives = _put(request, credential, step)
    return steps.HttpStep(
        id=step,
        request=put_on,
        produces=produces,
        needs=credential.needs,
        derives=derives,
        credentials=steps.CredentialRule((credential.of,), hosts),
        challenge="Digest" if credential.way is CredentialCarrier.DIGEST else None,
        warnings=warnings + _warnings(request, credential),
    )


def _put(
    request: steps.StepRequest, credential: Credential, step: str
) -> tuple[steps.StepRequest, Mapping[str, steps.Derivation]]:
    if credential.way is CredentialCarrier.DIGEST:
        return request, {}
    if credential.way is CredentialCarrier.BASIC:
        pair = f"{steps.placeholder(step, 'username')}:{steps.placeholder(step, 'password')}"
        header = {"Authorization": f"Basic {steps.placeholder(step, 'basic')}"}
        made = {"basic": steps.Derivation(steps.Derive.BASIC, pair)}
        return replace(request, headers={**request.headers, **header}), made
    value = credential.token(step)
    assert value is not None, "all others are one value"
    if credential.way is CredentialCarrier.QUERY:
        return replace(request, url=with_query(request.url, credential.name, value)), {}
    name, text = credential.name, value
    if credential.way is CredentialCarrier.AUTHORIZATION:
        name, text = "Authorization", f"{credential.name} {value}"
    elif credential.way is CredentialCarrier.COOKIE:
        name, text = "Cookie", f"{credential.name}={value}"
    return replace(request, headers={**request.headers, name: text}), {}


def _warnings(request: steps.StepRequest, credential: Credential) -> tuple[str, ...]:
    warnings = []
    if credential.way is CredentialCarrier.QUERY:
        warnings.append("the key is part of the URL: proxies and servers log it")
        if any(_is_of(pair, credential.name) for pair in query_of(request.url).split("&")):
            warnings.append("the URL had a value for this key already, which is replaced")
    if scheme_of(request.url) == "http":
        warnings.append("http:// is not encrypted: whoever is on the way reads the credential")
    return tuple(warnings)


def with_query(url: str, name: str, value: str) -> str:
    """The URL with this parameter once, as the last one, before a fragment; `value` is written as
    it is."""
    start, mark, fragment = url.partition("#")
    pairs = query_of(start).split("&")
    kept = [pair for pair in pairs if pair and not _is_of(pair, name)]
    query = "&".join([*kept, f"{quote(name, safe='')}={value}"])
    return f"{start.partition('?')[0]}?{query}{mark}{fragment}"


def _is_of(pair: str, name: str) -> bool:
    return unquote_plus(pair.partition("=")[0]) == name


def hosts_of(url: str) -> tuple[str, ...]:
    """The host that a URL is at, in lower case; none when it is a placeholder or no URL."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:  # an address or a port that is none
        return ()
    return (host,) if host and "$" not in host else ()


def is_callable_url(url: str) -> bool:
    """Tells whether an HTTP client can call it."""
    return scheme_of(url) in ("http", "https") and bool(hosts_of(url))


def is_http_token(text: str) -> bool:
    """RFC 9110, 5.6.2."""
    return bool(text) and all(c.isascii() and (c.isalnum() or c in _TOKEN_CHARACTERS) for c in text)
