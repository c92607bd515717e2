"""Tokens: the flows of `oauth2`, and the login of `openIdConnect`.

authorizationCode   browser with PKCE (RFC 7636), then a form POST (RFC 6749, 4.1)
clientCredentials   a form POST, the client with HTTP Basic (RFC 6749, 4.4 and 2.3.1)
password            a form POST (RFC 6749, 4.3; RFC 9700 forbids it)
implicit            browser, the token in the fragment (RFC 6749, 4.2; RFC 9700 advises against)
tokenExchange       a form POST with another scheme's token (RFC 8693, 2.1)
a token to refresh  a form POST (RFC 6749, 6)
openIdConnect       discovery (OpenID Connect Discovery 1.0, 4), then code with PKCE
"""

from collections.abc import Callable, Mapping
from urllib.parse import quote

from tollgate.serve.catalog_auth.document.document import Scheme
from tollgate.serve.catalog_auth.resolve.credentials import (
    ACCESS_TOKEN,
    ID_TOKEN,
    Credential,
    UnusableFlow,
    bearer,
    hosts_of,
    is_callable_url,
    with_query,
)
from tollgate.serve.catalog_auth.resolve.steps import (
    BrowserStep,
    CredentialRule,
    Derivation,
    Derive,
    HttpStep,
    Need,
    OidcStep,
    Produced,
    RecipeStep,
    StepRequest,
    placeholder,
)

# Names for the steps of an alternative: each is given once.
Names = Callable[[str], str]
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
# The types of the tokens that a login can give, by the name of the answer's member.
TOKEN_NAMES = {"id_token": ID_TOKEN, "access_token": ACCESS_TOKEN}
_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
_PKCE = {
    "state": Derivation(Derive.RANDOM),
    "code_verifier": Derivation(Derive.RANDOM),
    "redirect_uri": Derivation(Derive.REDIRECT),
}
_GRANTS = ("authorization_code+pkce", "device_code")

Obtained = tuple[tuple[RecipeStep, ...], Credential]


def token_of_flow(
    scheme: Scheme, flow: str, input_: Credential | None, names: Names
) -> Obtained | UnusableFlow:
    """The steps to a token by this flow; `input_` is what a token exchange exchanges."""
    flows = scheme.value.get("flows")
    value = flows.get(flow) if isinstance(flows, dict) else None
    if not isinstance(value, dict):
        return UnusableFlow("the flow is not an object")
    match flow:
        case "authorizationCode":
            return _by_code(scheme, value, names)
        case "implicit":
            return _implicitly(scheme, value, names)
        case "clientCredentials":
            return _posted(scheme, value, {"grant_type": "client_credentials"}, True, names)
        case "password":
            form = {"grant_type": "password"}
            return _posted(scheme, value, form, False, names)
        case "tokenExchange":
            return _exchanged(scheme, value, input_, names)
    return UnusableFlow("it is none of the flows that the extension defines")


def refreshed_token(scheme: Scheme, flow: str, names: Names) -> Obtained | UnusableFlow:
    """The step from a refresh token that the caller holds to a new token."""
    flows = scheme.value.get("flows")
    value = flows.get(flow) if isinstance(flows, dict) else None
    url = _url(value, "refreshUrl") or _url(value, "tokenUrl")
    if url is None:
        return UnusableFlow("the flow has neither refreshUrl nor tokenUrl")
    step = names("refresh")
    form = {"grant_type": "refresh_token", "refresh_token": placeholder(step, "refresh_token")}
    form["client_id"] = placeholder(step, "client_id")
    needs = {name: Need(scheme.name, name) for name in ("refresh_token", "client_id")}
    request = StepRequest("POST", url, _FORM, form=form)
    return _token_step(scheme, step, request, needs, {})


def login(scheme: Scheme, produces: str, names: Names) -> Obtained | UnusableFlow:
    """The login of an `openIdConnect` scheme; `produces` is id_token or access_token."""
    discovery = _url(scheme.value, "openIdConnectUrl")
    if discovery is None:
        return UnusableFlow("its `openIdConnectUrl` is not an http(s) URL")
    step = names("login")
    discover, authorize, token = (f"{step}-{part}" for part in ("discover", "authorize", "token"))
    endpoints = ("authorization_endpoint", "token_endpoint")
    discovered = HttpStep(
        id=discover,
        request=StepRequest("GET", discovery, {"Accept": "application/json"}),
        produces=tuple(Produced(f"/{name}", name) for name in endpoints),
        credentials=CredentialRule((), hosts_of(discovery)),
    )
    client_id = _client_id(scheme, authorize)
    visit = _visit(
        scheme, authorize, placeholder(discover, "authorization_endpoint"), "openid", client_id
    )
    post = _code_post(scheme, token, authorize, placeholder(discover, "token_endpoint"), produces)
    steps = (discovered, visit, post)
    oidc = OidcStep(id=step, discovery=discovery, grants=_GRANTS, produces=produces, steps=steps)
    return (oidc,), bearer(scheme.name, oidc.token, TOKEN_NAMES[produces])


def _by_code(scheme: Scheme, flow: Mapping[str, object], names: Names) -> Obtained | UnusableFlow:
    authorization_url, token_url = _url(flow, "authorizationUrl"), _url(flow, "tokenUrl")
    if authorization_url is None or token_url is None:
        return UnusableFlow("its `authorizationUrl` and `tokenUrl` are not both http(s) URLs")
    authorize, step = names("authorize"), names("token")
    client_id = _client_id(scheme, authorize)
    visit = _visit(scheme, authorize, authorization_url, _scope(flow), client_id)
    post = _code_post(scheme, step, authorize, token_url, "access_token", _refresh(flow, step))
    return (visit, post), bearer(scheme.name, placeholder(step, "access_token"))


def _visit(scheme: Scheme, step: str, url: str, scope: str, client_id: str) -> BrowserStep:
    parameters = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": placeholder(step, "redirect_uri"),
        "scope": quote(scope, safe=""),
        "state": placeholder(step, "state"),
        "code_challenge": placeholder(step, "code_challenge"),
        "code_challenge_method": "S256",
    }
    challenge = Derivation(Derive.S256, placeholder(step, "code_verifier"))
    return BrowserStep(
        id=step,
        request=StepRequest("GET", _with_parameters(url, parameters)),
        produces="code",
        needs=_client_need(scheme),
        derives={**_PKCE, "code_challenge": challenge},
    )


def _code_post(
    scheme: Scheme,
    step: str,
    authorize: str,
    url: str,
    produces: str,
    refresh: StepRequest | None = None,
) -> HttpStep:
    form = {
        "grant_type": "authorization_code",
        "code": placeholder(authorize, "code"),
        "redirect_uri": placeholder(authorize, "redirect_uri"),
        "client_id": _client_id(scheme, authorize, is_in_query=False),
        "code_verifier": placeholder(authorize, "code_verifier"),
    }
    produced = (Produced(f"/{produces}", produces), Produced("/refresh_token", "refresh_token"))
    return HttpStep(
        id=step,
        request=StepRequest("POST", url, _FORM, form=form),
        produces=produced if refresh else produced[:1],
        credentials=CredentialRule((scheme.name,), hosts_of(url)),
        refresh=refresh,
    )


def _implicitly(
    scheme: Scheme, flow: Mapping[str, object], names: Names
) -> Obtained | UnusableFlow:
    url = _url(flow, "authorizationUrl")
    if url is None:
        return UnusableFlow("its `authorizationUrl` is not an http(s) URL")
    step = names("authorize")
    parameters = {
        "response_type": "token",
        "client_id": _client_id(scheme, step),
        "redirect_uri": placeholder(step, "redirect_uri"),
        "scope": quote(_scope(flow), safe=""),
        "state": placeholder(step, "state"),
    }
    visit = BrowserStep(
        id=step,
        request=StepRequest("GET", _with_parameters(url, parameters)),
        produces="access_token",
        is_in_fragment=True,
        needs=_client_need(scheme),
        derives={name: _PKCE[name] for name in ("state", "redirect_uri")},
        warnings=("the implicit flow hands the token to the browser's history: RFC 9700, 2.1.2",),
    )
    return (visit,), bearer(scheme.name, placeholder(step, "access_token"))


def _posted(
    scheme: Scheme,
    flow: Mapping[str, object],
    form: dict[str, str],
    has_secret: bool,
    names: Names,
) -> Obtained | UnusableFlow:
    """A grant that is one POST: by a client with a secret, or with somebody's password."""
    url = _url(flow, "tokenUrl")
    if url is None:
        return UnusableFlow("its `tokenUrl` is not an http(s) URL")
    step = names("token")
    inputs: tuple[str, ...]
    if scope := _scope(flow):
        form["scope"] = scope
    if has_secret:
        inputs = ("client_id", "client_secret")
        pair = f"{placeholder(step, 'client_id')}:{placeholder(step, 'client_secret')}"
        derives = {"client": Derivation(Derive.BASIC_FORM, pair)}
        headers = {**_FORM, "Authorization": f"Basic {placeholder(step, 'client')}"}
        request = StepRequest("POST", url, headers, form=form)
        warnings: tuple[str, ...] = ()
    else:
        inputs = ("username", "password")
        form |= {name: placeholder(step, name) for name in inputs}
        form["client_id"] = _client_id(scheme, step, is_in_query=False)
        inputs += tuple(_client_need(scheme))
        derives = {}
        request = StepRequest("POST", url, _FORM, form=form)
        warnings = ("the program gets the person's password: RFC 9700, 2.4, forbids this flow",)
    needs = {name: Need(scheme.name, name) for name in inputs}
    return _token_step(scheme, step, request, needs, derives, _refresh(flow, step), warnings)


def _exchanged(
    scheme: Scheme, flow: Mapping[str, object], input_: Credential | None, names: Names
) -> Obtained | UnusableFlow:
    url = _url(flow, "tokenUrl")
    if url is None:
        return UnusableFlow("its `tokenUrl` is not an http(s) URL")
    step = names("exchange")
    needs: Mapping[str, Need] = {"subject_token": Need(scheme.name, "subject_token")}
    subject, subject_type = placeholder(step, "subject_token"), ACCESS_TOKEN
    if input_ is not None:
        token = input_.token(step)
        if token is None or input_.token_type is None:
            return UnusableFlow(f"{input_.of} gives no token that could be exchanged")
        needs, subject, subject_type = input_.needs, token, input_.token_type
    stated = flow.get("subjectTokenType")
    form = {
        "grant_type": TOKEN_EXCHANGE,
        "subject_token": subject,
        "subject_token_type": stated if isinstance(stated, str) and stated else subject_type,
    }
    if scope := _scope(flow):
        form["scope"] = scope
    request = StepRequest("POST", url, _FORM, form=form)
    return _token_step(scheme, step, request, needs, {}, _refresh(flow, step))


def _token_step(
    scheme: Scheme,
    step: str,
    request: StepRequest,
    needs: Mapping[str, Need],
    derives: Mapping[str, Derivation],
    refresh: StepRequest | None = None,
    warnings: tuple[str, ...] = (),
) -> Obtained:
    produces = (Produced("/access_token", "access_token"),)
    more = () if refresh is None else (Produced("/refresh_token", "refresh_token"),)
    of = tuple(dict.fromkeys((scheme.name, *(need.scheme for need in needs.values()))))
    post = HttpStep(
        id=step,
        request=request,
        produces=produces + more,
        needs=needs,
        derives=derives,
        credentials=CredentialRule(of, hosts_of(request.url)),
        refresh=refresh,
        warnings=warnings,
    )
    return (post,), bearer(scheme.name, placeholder(step, "access_token"))


def _refresh(flow: Mapping[str, object], step: str) -> StepRequest | None:
    url = _url(flow, "refreshUrl")
    if url is None:
        return None
    form = {"grant_type": "refresh_token", "refresh_token": placeholder(step, "refresh_token")}
    return StepRequest("POST", url, _FORM, form=form)


def _client_id(scheme: Scheme, step: str, is_in_query: bool = True) -> str:
    """The client id that the scheme names itself (a common extra member), or the caller's."""
    stated = scheme.value.get("client_id")
    if not isinstance(stated, str) or not stated:
        return placeholder(step, "client_id")
    return quote(stated, safe="") if is_in_query else stated


def _client_need(scheme: Scheme) -> Mapping[str, Need]:
    stated = scheme.value.get("client_id")
    if isinstance(stated, str) and stated:
        return {}
    return {"client_id": Need(scheme.name, "client_id")}


def _with_parameters(url: str, parameters: Mapping[str, str]) -> str:
    for name, value in parameters.items():
        if value:
            url = with_query(url.partition("#")[0], name, value)
    return url


def _scope(flow: Mapping[str, object]) -> str:
    scopes = flow.get("scopes")
    return " ".join(str(name) for name in scopes) if isinstance(scopes, dict) else ""


def _url(value: object, name: str) -> str | None:
    url = value.get(name) if isinstance(value, Mapping) else None
    return url if isinstance(url, str) and is_callable_url(url) else None
