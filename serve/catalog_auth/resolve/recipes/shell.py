"""Steps as lines of a shell, with curl, jq and openssl; the last of them also for GDAL.

The lines are POSIX and stand in a subshell: pasted into a terminal, the first that fails ends the
recipe and leaves the terminal as it was. A file is written under a safe name, and never over
another one.
"""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.objects.urls import https_url
from tollgate.serve.catalog_auth.resolve.steps import (
    PLACEHOLDER,
    Alternative,
    BrowserStep,
    Derivation,
    Derive,
    EnvironmentStep,
    HttpStep,
    Need,
    ObjectStep,
    OidcStep,
    Produced,
    RecipeStep,
    StepRequest,
    placeholder,
)

ENCODE = """encoded() { jq --null-input --raw-output --arg v "$1" '$v | @uri'; }"""
_CURL = "curl --fail --silent --show-error --globoff"
_BASE64URL = "openssl base64 -A | tr '+/' '-_' | tr -d '='"
_REDIRECT = "http://127.0.0.1:8910/callback"


JOIN = """joined() { case $1 in *\\?*) printf %s "$1&$2";; *) printf %s "$1?$2";; esac; }"""


def curl_recipe(alternative: Alternative, file: str) -> list[str] | None:
    """The download into `file`; None where curl cannot do it."""
    *before, last = alternative.steps
    lines = _lines_of(before)
    match last:
        case HttpStep():
            requests = [step for step in before if not isinstance(step, EnvironmentStep)]
            lines = [*_lines_of(requests), *_inputs(last), *_saved(_fetch(last), file)]
        case ObjectStep():
            command = _signed_by_curl(before, last)
            if command is None:
                return None
            lines += _saved(command, file)
        case _:
            return None
    return _in_subshell(lines)


def gdal_recipe(alternative: Alternative) -> list[str] | None:
    """The environment in which GDAL reads the target, and a look at it."""
    *before, last = alternative.steps
    environment = next((step for step in before if isinstance(step, EnvironmentStep)), None)
    if environment is not None:
        gdal = environment.forms["gdal"]
        assert isinstance(gdal, dict), "made so"
        options, path = gdal["environment"], gdal["path"]
        assert isinstance(options, dict), "made so"
        assert isinstance(path, str), "made so"
        texts = {name: str(value) for name, value in options.items()}
        return _in_subshell([*_exports(environment, texts), f"gdalinfo {shlex.quote(path)}"])
    if not isinstance(last, HttpStep):
        return None
    lines = [*_lines_of(before), *_inputs(last)]
    request = last.request
    if last.challenge is not None:
        lines.append(f"export GDAL_HTTP_AUTH={last.challenge.upper()}")
        lines.append(f'export GDAL_HTTP_USERPWD="{_pair(last)}"')
    headers = ", ".join(f"{name}: {value}" for name, value in request.headers.items())
    if headers:
        lines.append(f"export GDAL_HTTP_HEADERS={word(headers)}")
    lines.append(f"gdalinfo /vsicurl/{url_word(request.url)}")
    return _in_subshell(lines)


def word(text: str, is_encoded: bool = False) -> str:
    """A text with places as one word of the shell."""
    parts, end = [], 0
    for found in PLACEHOLDER.finditer(text):
        if literal := text[end : found.start()]:
            parts.append(shlex.quote(literal))
        name = shell_variable(found[1], found[2])
        parts.append(f'"$(encoded "${name}")"' if is_encoded else f'"${name}"')
        end = found.end()
    if rest := text[end:]:
        parts.append(shlex.quote(rest))
    return "".join(parts) or "''"


def url_word(url: str) -> str:
    """The same of a URL: a placeholder at its beginning is a URL, all others are encoded."""
    first = PLACEHOLDER.match(url)
    if first is None:
        return word(url, is_encoded=True)
    start = word(first[0])
    rest = url[first.end() :]
    if rest.startswith("?"):  # (the URL may have a query of its own)
        return f'"$(joined {start} {word(rest[1:], is_encoded=True)})"'
    return start + word(rest, is_encoded=True) if rest else start


def shell_variable(step: str, name: str) -> str:
    return f"{step}_{name}".replace("-", "_").upper()


def _lines_of(steps: Sequence[RecipeStep]) -> list[str]:
    return [line for step in steps for line in _lines(step)]


def _lines(step: RecipeStep) -> Iterator[str]:
    match step:
        case OidcStep():
            for inner in step.steps:
                yield from _lines(inner)
            last = shell_variable(step.steps[-1].id, step.produces)
            yield f'{shell_variable(step.id, step.produces)}="${last}"'
        case BrowserStep():
            yield from _inputs(step)
            yield f"echo Visit: {url_word(step.request.url)}"
            where = "fragment" if step.is_in_fragment else "query"
            yield f"# The page you come back to has {step.produces} in its {where}."
            yield f"printf '%s' '{step.produces}: '"
            yield f"read -r {shell_variable(step.id, step.produces)}"
        case HttpStep():
            yield from _inputs(step)
            answer = shell_variable(step.id, "answer")
            yield f"{answer}=$({_CURL} {' '.join(_words(step.request))})"
            for produced in step.produces:
                if produced.name != "refresh_token":
                    name = shell_variable(step.id, produced.name)
                    found = f"printf '%s' \"${answer}\" | jq --raw-output {_filter(produced)}"
                    yield f"{name}=$({found})"
                    yield f': "${{{name}:?the answer has none}}"'
        case EnvironmentStep():
            yield from _exports(step, step.environment)


def _inputs(step: HttpStep | BrowserStep) -> Iterator[str]:
    yield from _needs(step)
    for name, derivation in step.derives.items():
        variable = shell_variable(step.id, name)
        yield f"{variable}={_derived(derivation, variable)}"


def _needs(step: HttpStep | BrowserStep) -> Iterator[str]:
    for name, need in step.needs.items():
        yield from _asked(shell_variable(step.id, name), need)


def _asked(name: str, need: Need) -> Iterator[str]:
    yield f"# {name} is {shown(need.called)}."
    yield f': "${{{name}:?}}"'


def _derived(derivation: Derivation, name: str) -> str:
    match derivation.how:
        case Derive.RANDOM:
            return f"$(openssl rand 32 | {_BASE64URL})"
        case Derive.S256:
            digest = f"printf %s {word(derivation.of)} | openssl dgst -sha256 -binary"
            return f"$({digest} | {_BASE64URL})"
        case Derive.BASIC:
            return f"$(printf %s {word(derivation.of)} | openssl base64 -A)"
        case Derive.BASIC_FORM:
            return f"$(printf %s {word(derivation.of, is_encoded=True)} | openssl base64 -A)"
        case Derive.REDIRECT:
            return f"${{{name}:-{_REDIRECT}}}"


def _words(request: StepRequest) -> Iterator[str]:
    if request.method not in ("GET", "POST") or (
        request.method == "GET" and request.body is not None
    ):
        yield f"--request {shlex.quote(request.method)}"
    elif request.method == "POST" and request.body is None and request.form is None:
        yield "--data ''"
    for name, value in request.headers.items():
        if request.form is None or name != "Content-Type":
            yield f"--header {word(f'{name}: {value}')}"
    for name, value in (request.form or {}).items():
        yield f"--data-urlencode {word(f'{name}={value}')}"
    if request.body is not None:
        yield f"--data-binary {_json_word(dict(request.body))}"
    yield url_word(request.url)


def _json_word(body: dict[str, JsonValue]) -> str:
    """A JSON object whose texts may be places."""
    held = {k: v for k, v in body.items() if isinstance(v, str) and PLACEHOLDER.fullmatch(v)}
    if not held:
        return shlex.quote(json.dumps(body))
    rest = json.dumps({name: value for name, value in body.items() if name not in held})
    words = [
        f"--arg k{i} {shlex.quote(name)} --arg v{i} {word(str(value))}"
        for i, (name, value) in enumerate(held.items())
    ]
    added = " ".join(f"+ {{($k{i}): $v{i}}}" for i in range(len(held)))
    program = shlex.quote(f"$rest {added}")
    made = f"jq --null-input --argjson rest {shlex.quote(rest)} {' '.join(words)} {program}"
    return f'"$({made})"'


def _filter(produced: Produced) -> str:
    """jq's way to the first of the pointers that has a text."""
    paths = [_path(pointer) for pointer in (produced.pointer, *produced.otherwise)]
    found = ", ".join(f"getpath({json.dumps(path)})" for path in paths)
    return shlex.quote(f"first({found} | strings)")


def _path(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _fetch(step: HttpStep) -> str:
    words = list(_words(step.request))
    if step.challenge is not None:
        words.insert(0, f'--{step.challenge.lower()} --user "{_pair(step)}"')
    if _follows(step):
        words.insert(0, "--location")
    return " ".join(words)


def _saved(words: str, file: str) -> Iterator[str]:
    """The call of curl that writes a file, unless it is there."""
    name = shlex.quote(f"./{file}")
    taken = shlex.quote(f"{file} is there already")
    yield f"if [ -e {name} ]; then echo {taken} >&2; exit 1; fi"
    yield f"{_CURL} --output {name} {words}"


def _follows(step: HttpStep) -> bool:
    """curl takes Authorization off when it is sent to another host, and nothing else."""
    return not step.credentials.of or list(step.request.headers) == ["Authorization"]


def _pair(step: HttpStep) -> str:
    return f"${shell_variable(step.id, 'username')}:${shell_variable(step.id, 'password')}"


def _exports(step: EnvironmentStep, options: Mapping[str, str]) -> Iterator[str]:
    """Asks for what the caller holds by the name that the tools know."""
    asked = {placeholder(step.id, name): need for name, need in step.needs.items()}
    for name, text in options.items():
        if text in asked:
            yield from _asked(name, asked[text])
            yield f"export {name}"
        else:
            yield f"export {name}={shlex.quote(text)}"


def _signed_by_curl(before: Sequence[RecipeStep], step: ObjectStep) -> str | None:
    """curl signs by itself, given the keys."""
    url = https_url(step.location)
    environment = next((one for one in before if isinstance(one, EnvironmentStep)), None)
    if url is None or environment is None or "AWS_ACCESS_KEY_ID" not in environment.environment:
        return None
    region = step.location.region or "us-east-1"
    words = [f"--aws-sigv4 {shlex.quote(f'aws:amz:{region}:s3')}"]
    words.append('--user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY"')
    if step.is_requester_pays:
        words.append("--header 'x-amz-request-payer: requester'")
    token = "AWS_SESSION_TOKEN"
    words.append(f'${{{token}:+--header}} ${{{token}:+"x-amz-security-token: ${token}"}}')
    return f"{' '.join(words)} {shlex.quote(url)}"


def _in_subshell(lines: list[str]) -> list[str]:
    """The lines with the functions that they use, so that a failure ends them and nothing else."""
    functions = [
        f for f, mark in ((ENCODE, "$(encoded "), (JOIN, "$(joined ")) if mark in str(lines)
    ]
    return ["(", "set -e", *functions, *lines, ")"]
