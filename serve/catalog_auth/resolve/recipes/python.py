"""Steps as lines of Python, with requests; objects with obstore."""

from collections.abc import Iterator, Mapping

from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.resolve.steps import (
    PLACEHOLDER,
    Alternative,
    BrowserStep,
    Derivation,
    Derive,
    EnvironmentStep,
    HttpStep,
    ObjectStep,
    OidcStep,
    RecipeStep,
    StepRequest,
)

_SESSION = (
    "session = requests.Session()",
    "session.trust_env = False  # no default credential, of ~/.netrc say, goes along",
)
_REDIRECT = "http://127.0.0.1:8910/callback"
_IMPORTS = {
    "base64.": "import base64",
    "getpass.": "import getpass",
    "hashlib.": "import hashlib",
    "secrets.": "import secrets",
    "quote(": "from urllib.parse import quote",
    "obstore.": "import obstore",
    "requests.": "import requests",
    "S3Store(": "from obstore.store import S3Store",
}


def python_recipe(alternative: Alternative) -> list[str] | None:
    """None where these libraries cannot do it."""
    *before, last = alternative.steps
    match last:
        case HttpStep():
            lines = [*_SESSION]
            for step in before:
                if not isinstance(step, EnvironmentStep):
                    lines += _lines(step)
            lines += [*_inputs(last), *_fetch(last)]
        case ObjectStep():
            environment = before[-1]
            assert isinstance(environment, EnvironmentStep), "an object is read in one"
            if "obstore" not in environment.forms or "profile" in environment.needs:
                return None  # (obstore reads no profiles)
            lines = [*_needs(environment), *_read(environment)]
        case _:
            return None
    text = "\n".join(lines)
    return [*(line for mark, line in _IMPORTS.items() if mark in text), "", *lines]


def expression(text: str, is_encoded: bool = False) -> str:
    """A text with places as a Python expression."""
    parts, end = [], 0
    for found in PLACEHOLDER.finditer(text):
        if literal := text[end : found.start()]:
            parts.append(repr(literal))
        name = python_variable(found[1], found[2])
        parts.append(f'quote({name}, safe="")' if is_encoded else name)
        end = found.end()
    if rest := text[end:]:
        parts.append(repr(rest))
    return " + ".join(parts) or '""'


def python_variable(step: str, name: str) -> str:
    return f"{step}_{name}".replace("-", "_").lower()


def _url(url: str) -> str:
    first = PLACEHOLDER.match(url)
    if first is None:
        return expression(url, is_encoded=True)
    rest = url[first.end() :]
    start = expression(first[0])
    if rest.startswith("?"):  # (the URL may have a query of its own)
        joint = f'("&" if "?" in {start} else "?")'
        return f"{start} + {joint} + {expression(rest[1:], is_encoded=True)}"
    return f"{start} + {expression(rest, is_encoded=True)}" if rest else start


def _lines(step: RecipeStep) -> Iterator[str]:
    match step:
        case OidcStep():
            for inner in step.steps:
                yield from _lines(inner)
            last = python_variable(step.steps[-1].id, step.produces)
            yield f"{python_variable(step.id, step.produces)} = {last}"
        case BrowserStep():
            yield from _inputs(step)
            yield f'print("Visit:", {_url(step.request.url)})'
            where = "fragment" if step.is_in_fragment else "query"
            yield f"# The page you come back to has {step.produces} in its {where}."
            yield f'{python_variable(step.id, step.produces)} = input("{step.produces}: ")'
        case HttpStep():
            yield from _inputs(step)
            yield f"answer = session.request({_arguments(step.request)}, timeout=60)"
            yield "answer.raise_for_status()"
            for produced in step.produces:
                if produced.name == "refresh_token":
                    continue
                pointers = (produced.pointer, *produced.otherwise)
                found = " or ".join(f"answer.json(){_index(p, len(pointers))}" for p in pointers)
                yield f"{python_variable(step.id, produced.name)} = {found}"


def _index(pointer: str, alternatives: int) -> str:
    keys = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    if alternatives > 1:
        return "".join(f".get({key!r})" for key in keys)
    return "".join(f"[{key!r}]" for key in keys)


def _inputs(step: HttpStep | BrowserStep) -> Iterator[str]:
    yield from _needs(step)
    for name, derivation in step.derives.items():
        yield f"{python_variable(step.id, name)} = {_derived(derivation)}"


def _needs(step: HttpStep | BrowserStep | EnvironmentStep) -> Iterator[str]:
    for name, need in step.needs.items():
        asked = shown(need.called) + ": "
        yield f"{python_variable(step.id, name)} = getpass.getpass({asked!r})"


def _derived(derivation: Derivation) -> str:
    text = expression(derivation.of)
    match derivation.how:
        case Derive.RANDOM:
            return "secrets.token_urlsafe(32)"
        case Derive.S256:
            digest = f"hashlib.sha256(({text}).encode()).digest()"
            return f'base64.urlsafe_b64encode({digest}).decode().rstrip("=")'
        case Derive.BASIC:
            return f"base64.b64encode(({text}).encode()).decode()"
        case Derive.BASIC_FORM:
            text = expression(derivation.of, is_encoded=True)
            return f"base64.b64encode(({text}).encode()).decode()"
        case Derive.REDIRECT:
            return repr(_REDIRECT)


def _arguments(request: StepRequest) -> str:
    words = [repr(request.method), _url(request.url)]
    headers = {
        name: value
        for name, value in request.headers.items()
        if name != "Content-Type" or (request.body is None and request.form is None)
    }
    if headers:
        words.append(f"headers={_mapping(headers)}")
    if request.form is not None:
        words.append(f"data={_mapping(request.form)}")
    if request.body is not None:
        words.append(f"json={_mapping(request.body)}")
    return ", ".join(words)


def _mapping(members: Mapping[str, object]) -> str:
    pairs = (
        f"{name!r}: {expression(value) if isinstance(value, str) else repr(value)}"
        for name, value in members.items()
    )
    return f"{{{', '.join(pairs)}}}"


def _fetch(step: HttpStep) -> Iterator[str]:
    words = _arguments(step.request)
    if step.challenge is not None:
        names = ", ".join(python_variable(step.id, name) for name in ("username", "password"))
        words += f", auth=requests.auth.HTTPDigestAuth({names})"
    if step.credentials.of and list(step.request.headers) not in ([], ["Authorization"]):
        words += ", allow_redirects=False"  # (requests takes off nothing but Authorization)
    yield f"answer = session.request({words}, timeout=60)"
    yield "answer.raise_for_status()"
    yield "data = answer.content"


def _read(step: EnvironmentStep) -> Iterator[str]:
    form = step.forms["obstore"]
    assert isinstance(form, dict), "made so"
    options, path = form["store"], form["path"]
    assert isinstance(options, dict), "made so"
    words = (
        f"{name}={expression(value) if isinstance(value, str) else repr(value)}"
        for name, value in options.items()
    )
    yield f"store = S3Store({', '.join(words)})"
    yield f"data = obstore.get(store, {path!r}).bytes()"
