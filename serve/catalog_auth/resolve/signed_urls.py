"""The request to an API that signs URLs (`signedUrl`; B2; part D, Resolving).

Values that a client can tell by itself: `bucket` and `key` from the object's URL; `href`, `url` and
`uri` the target's; `asset`, and the ids of item and collection. A constant of the parameter's
schema is one too, and its default where the parameter is required, unless the parameter's name is
a secret's. All other required ones the caller must hold; optional ones are left out. A parameter
for the place that the credential of the chain takes, `Authorization` say, is that credential.

What the caller must hold for a parameter is named by its number (`${sign.parameter0}`), whatever
the document calls it: no such name is a credential's, or another parameter's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.document.document import Scheme
from tollgate.serve.catalog_auth.resolve.credentials import (
    Credential,
    CredentialCarrier,
    UnusableFlow,
    hosts_of,
    is_callable_url,
    is_http_token,
    sent,
    with_query,
)
from tollgate.serve.catalog_auth.resolve.oauth import Names
from tollgate.serve.catalog_auth.resolve.steps import (
    HttpStep,
    Need,
    Produced,
    StepRequest,
    placeholder,
)
from tollgate.serve.catalog_auth.resolve.target import FoundTarget

# Where the signed URL is when `responseField` does not say so: as found in use, in this order.
ASSUMED_FIELDS = ("signed_url", "href", "url", "signedUrl")
PARAMETERS_MAX = 64
_BODILESS = ("GET", "HEAD", "DELETE")
# Headers that belong to the connection, or that the client's library sets (RFC 9110, 7.6.1).
_FORBIDDEN_HEADERS = frozenset(
    {"connection", "content-length", "host", "keep-alive", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)
# The places of the credentials that do not name their own.
_CARRIED_AS = {
    CredentialCarrier.AUTHORIZATION: "authorization",
    CredentialCarrier.BASIC: "authorization",
    CredentialCarrier.DIGEST: "authorization",
    CredentialCarrier.COOKIE: "cookie",
}
_SECRET_WORDS = ("token", "secret", "password", "passwd", "signature", "credential", "apikey")
_FETCH_WARNING = "do not forward Authorization to the signed URL"


@dataclass(slots=True)
class _Call:
    """The request as it grows."""

    step: str
    url: str
    headers: dict[str, str]
    body: dict[str, JsonValue]
    needs: dict[str, Need]


def signed_fetch(
    scheme: Scheme, flow: str, aimed: FoundTarget, input_: Credential | None, names: Names
) -> tuple[HttpStep, HttpStep] | UnusableFlow:
    """The call to the signing API, and the fetch of what it answers."""
    flows = scheme.value.get("flows")
    value = flows.get(flow) if isinstance(flows, dict) else None
    if not isinstance(value, dict):
        return UnusableFlow("the flow is not an object")
    method, url = value.get("method"), value.get("authorizationApi")
    if not isinstance(url, str) or not is_callable_url(url):
        return UnusableFlow("its `authorizationApi` is not an http(s) URL")
    if not isinstance(method, str) or not is_http_token(method):
        return UnusableFlow("its `method` is not an HTTP method")
    call = _Call(names("sign"), url, {}, {}, {})
    problem = _fill(call, scheme, value.get("parameters"), aimed, input_)
    if problem is not None:
        return UnusableFlow(problem)
    sign = _sign_step(call, method.upper(), value, input_)
    fetch_url = placeholder(call.step, "url")
    fetch = sent(names("fetch"), StepRequest("GET", fetch_url), None, warnings=(_FETCH_WARNING,))
    return sign, fetch


def _sign_step(
    call: _Call, method: str, flow: Mapping[str, object], input_: Credential | None
) -> HttpStep:
    warnings: tuple[str, ...] = ()
    if call.body:
        call.headers = {"Content-Type": "application/json", **call.headers}
        if method in _BODILESS:
            warnings = (f"a {method} with a body: many servers and proxies drop it",)
    request = StepRequest(method, call.url, call.headers, call.body or None)
    step = sent(call.step, request, input_, _produced(flow), warnings)
    of = step.credentials.of or tuple({need.scheme for need in call.needs.values()})
    rule = replace(step.credentials, of=of, hosts=hosts_of(call.url))
    assert not call.needs.keys() & (step.needs.keys() | step.derives.keys()), "named by numbers"
    return replace(step, needs={**step.needs, **call.needs}, credentials=rule)


def _produced(flow: Mapping[str, object]) -> tuple[Produced, ...]:
    field = flow.get("responseField")
    if isinstance(field, str) and field:
        escaped = field.replace("~", "~0").replace("/", "~1")
        return (Produced(f"/{escaped}", "url", is_assumed=False),)
    first, *rest = (f"/{name}" for name in ASSUMED_FIELDS)
    return (Produced(first, "url", tuple(rest), is_assumed=True),)


def _fill(
    call: _Call,
    scheme: Scheme,
    parameters: object,
    aimed: FoundTarget,
    input_: Credential | None,
) -> str | None:
    """Puts every parameter in its placeholder; returns what makes the call impossible."""
    if parameters is None:
        return None
    if not isinstance(parameters, dict):
        return "its `parameters` are not an object"
    if len(parameters) > PARAMETERS_MAX:
        return f"it has more than {PARAMETERS_MAX} parameters"
    for index, (name, parameter) in enumerate(parameters.items()):
        if not isinstance(parameter, dict):
            return f"its parameter {name} is not an object"
        if input_ is not None and _is_place_of(input_, parameter.get("in"), name):
            continue
        value = _unmistakable(_value(name, parameter, aimed))
        is_held = value is None
        if is_held:
            if parameter.get("required") is not True:
                continue
            local = f"parameter{index}"
            call.needs[local] = Need(scheme.name, name)
            value = placeholder(call.step, local)
        problem = _put(call, name, parameter.get("in"), value, is_held)
        if problem is not None:
            return problem
    return None


def _is_place_of(credential: Credential, where: object, name: str) -> bool:
    """Tells whether the credential goes where this parameter would go."""
    if credential.way is CredentialCarrier.QUERY:
        return where == "query" and name == credential.name
    carried_as = _CARRIED_AS.get(credential.way, credential.name.lower())
    return where == "header" and name.lower() == carried_as


def _put(call: _Call, name: str, where: object, value: JsonValue, is_held: bool) -> str | None:
    match where:
        case "query":
            text = str(value) if is_held else quote(_text(value), safe="")
            call.url = with_query(call.url, name, text)
        case "header":
            if not is_http_token(name) or name.lower() in _FORBIDDEN_HEADERS:
                return f"its parameter {name} cannot be a header"
            if name.lower() in map(str.lower, call.headers):
                return f"two of its parameters are the header {name}"
            text = _text(value)
            if not text.isprintable():
                return f"the value of its parameter {name} cannot be a header's"
            call.headers[name] = text
        case "body":
            call.body[name] = value
        case _:
            return f"the `in` of its parameter {name} is neither query nor header nor body"
    return None


def _value(name: str, parameter: Mapping[str, object], aimed: FoundTarget) -> JsonValue:
    """The value that a client can tell by itself; None when it cannot."""
    plain = name.lower().replace("-", "").replace("_", "")
    if plain in ("bucket", "key") and aimed.location is not None:
        return aimed.location.bucket if plain == "bucket" else aimed.location.key
    if plain in ("href", "url", "uri"):
        return aimed.href
    around = aimed.values.get(plain.removesuffix("id"))
    if around is not None:
        return around
    schema = parameter.get("schema")
    if not isinstance(schema, dict) or any(word in plain for word in _SECRET_WORDS):
        return None
    stated = schema.get("const")
    if stated is None and parameter.get("required") is True:
        stated = schema.get("default")
    return stated if isinstance(stated, str | int | float | bool) else None


def _unmistakable(value: JsonValue) -> JsonValue:
    """The value, unless a client could take it for a placeholder: then the caller gives it."""
    return None if isinstance(value, str) and "${" in value else value


def _text(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
