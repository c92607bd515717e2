"""Steps as lines of a shell, with curl, jq and openssl; the last of them also for GDAL.

The lines are what bash, dash and zsh take alike, and stand in a subshell: pasted into a terminal,
the first that fails ends the recipe and leaves the terminal as it was. There are no comments, which
an interactive zsh takes for commands, and no control characters, which a terminal takes for keys. A
file is written under a safe name, and never over another one.
"""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.objects.urls import https_url
from tollgate.serve.catalog_auth.resolve.recipes.variables import (
    SESSION_TOKEN,
    Question,
    RecipeVariables,
)
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
    Produced,
    RecipeStep,
    StepRequest,
    placeholder,
)

HELD = """held() { [ -n "$1" ] || { printf '%s\\n' "$2" >&2; exit 1; }; }"""
ENCODE = """encoded() { jq --null-input --raw-output --arg v "$1" '$v | @uri'; }"""
JOIN = """joined() { case $1 in *\\?*) printf %s "$1&$2";; *) printf %s "$1?$2";; esac; }"""
_FUNCTIONS = {"held ": HELD, "$(encoded ": ENCODE, "$(joined ": JOIN}
_CURL = "curl --fail --silent --show-error --globoff"
_BASE64URL = "openssl base64 -A | tr '+/' '-_' | tr -d '='"
_REDIRECT = "http://127.0.0.1:8910/callback"
_AWS_SESSION_TOKEN = "AWS_SESSION_TOKEN"


def curl_recipe(alternative: Alternative, file: str) -> list[str] | None:
    """The download into `file`; None where curl cannot do it."""
    return _in_subshell(_ShellRecipe(alternative.steps).download(file))


def gdal_recipe(alternative: Alternative) -> list[str] | None:
    """The environment in which GDAL reads the target, and a look at it; None where it cannot."""
    return _in_subshell(_ShellRecipe(alternative.steps).look())


def quoted(text: str) -> str:
    """One word of any shell. (An `=` at the beginning of one looks for a program in zsh.)"""
    return f"'{text}'" if text[:1] == "=" and shlex.quote(text) == text else shlex.quote(text)


class _ShellRecipe:
    """The lines for an alternative's steps."""

    def __init__(self, steps: Sequence[RecipeStep]) -> None:
        *self._before, self._last = steps
        self._variables = RecipeVariables(steps)
        self._environment = next((one for one in steps if isinstance(one, EnvironmentStep)), None)

    def download(self, file: str) -> list[str] | None:
        match self._last:
            case HttpStep() as last:
                return [*self._until(last), *_saved(self._fetch(last), file)]
            case ObjectStep() as last:
                words = self._signed(last)
                return None if words is None else [*words[:-1], *_saved(words[-1], file)]
        return None

    def look(self) -> list[str] | None:
        if self._environment is not None:
            gdal = self._environment.forms["gdal"]
            assert isinstance(gdal, dict), "made so"
            options, path = gdal["environment"], gdal["path"]
            assert isinstance(options, dict), "made so"
            assert isinstance(path, str), "made so"
            texts = {name: str(value) for name, value in options.items()}
            return [*self._exports(self._environment, texts), f"gdalinfo {quoted(path)}"]
        if not isinstance(self._last, HttpStep) or _carries_on(self._last):
            return None
        return [*self._until(self._last), *self._gdal_fetch(self._last)]

    def _until(self, last: HttpStep) -> list[str]:
        """All lines before the last request; what a person has to put in is asked for first."""
        asked = [_held(one) for one in self._variables.questions()]
        lines = [line for step in self._before for line in self._lines(step)]
        return [*asked, *lines, *self._derivations(last)]

    def _lines(self, step: RecipeStep) -> Iterator[str]:
        match step:
            case OidcStep():
                for inner in step.steps:
                    yield from self._lines(inner)
                last = self._variables.name(step.steps[-1].id, step.produces)
                yield f'{self._variables.name(step.id, step.produces)}="${last}"'
            case BrowserStep():
                yield from self._derivations(step)
                yield f"printf 'Visit: %s\\n' {self._url(step.request.url)}"
                where = "fragment" if step.is_in_fragment else "query"
                told = f"The page you come back to has {step.produces} in its {where}."
                yield f"printf '%s\\n' '{told}'"
                yield f"printf '%s' '{step.produces}: '"
                yield f"read -r {self._variables.name(step.id, step.produces)}"
            case HttpStep():
                yield from self._derivations(step)
                answer = self._variables.name(step.id, "answer")
                yield f"{answer}=$({_CURL} {' '.join(self._words(step.request))})"
                for produced in step.produces:
                    if produced.name != "refresh_token":
                        name = self._variables.name(step.id, produced.name)
                        found = f"printf '%s' \"${answer}\" | jq --raw-output {_filter(produced)}"
                        yield f"{name}=$({found})"
                        yield f': "${{{name}:?the answer has none}}"'

    def _derivations(self, step: HttpStep | BrowserStep) -> Iterator[str]:
        for name, derivation in step.derives.items():
            variable = self._variables.name(step.id, name)
            yield f"{variable}={self._derived(derivation, variable)}"

    def _derived(self, derivation: Derivation, name: str) -> str:
        match derivation.how:
            case Derive.RANDOM:
                return f"$(openssl rand 32 | {_BASE64URL})"
            case Derive.S256:
                digest = f"printf %s {self._word(derivation.of)} | openssl dgst -sha256 -binary"
                return f"$({digest} | {_BASE64URL})"
            case Derive.BASIC:
                return f"$(printf %s {self._word(derivation.of)} | openssl base64 -A)"
            case Derive.BASIC_FORM:
                text = self._word(derivation.of, is_encoded=True)
                return f"$(printf %s {text} | openssl base64 -A)"
            case Derive.REDIRECT:
                return f"${{{name}:-{_REDIRECT}}}"

    def _word(self, text: str, is_encoded: bool = False) -> str:
        """A text with places as one word of the shell."""
        parts, end = [], 0
        for found in PLACEHOLDER.finditer(text):
            if literal := text[end : found.start()]:
                parts.append(quoted(literal))
            name = self._variables.name(found[1], found[2])
            parts.append(f'"$(encoded "${name}")"' if is_encoded else f'"${name}"')
            end = found.end()
        if rest := text[end:]:
            parts.append(quoted(rest))
        return "".join(parts) or "''"

    def _url(self, url: str) -> str:
        """The same of a URL: a placeholder at its beginning is a URL, all others are encoded."""
        first = PLACEHOLDER.match(url)
        if first is None:
            return self._word(url, is_encoded=True)
        start = self._word(first[0])
        rest = url[first.end() :]
        if rest.startswith("?"):  # (the URL may have a query of its own)
            return f'"$(joined {start} {self._word(rest[1:], is_encoded=True)})"'
        return start + self._word(rest, is_encoded=True) if rest else start

    def _words(self, request: StepRequest) -> Iterator[str]:
        if request.method not in ("GET", "POST") or (
            request.method == "GET" and request.body is not None
        ):
            yield f"--request {quoted(request.method)}"
        elif request.method == "POST" and request.body is None and request.form is None:
            yield "--data ''"
        for name, value in request.headers.items():
            if request.form is None or name != "Content-Type":
                yield f"--header {self._word(f'{name}: {value}')}"
        for name, value in (request.form or {}).items():
            yield f"--data-urlencode {self._word(f'{name}={value}')}"
        if request.body is not None:
            yield f"--data-binary {self._json_word(dict(request.body))}"
        yield self._url(request.url)

    def _json_word(self, body: dict[str, JsonValue]) -> str:
        """A JSON object whose texts may be places."""
        held = {k: v for k, v in body.items() if isinstance(v, str) and PLACEHOLDER.fullmatch(v)}
        if not held:
            return quoted(json.dumps(body))
        rest = json.dumps({name: value for name, value in body.items() if name not in held})
        words = [
            f"--arg k{i} {quoted(name)} --arg v{i} {self._word(str(value))}"
            for i, (name, value) in enumerate(held.items())
        ]
        added = " ".join(f"+ {{($k{i}): $v{i}}}" for i in range(len(held)))
        program = quoted(f"$rest {added}")
        made = f"jq --null-input --argjson rest {quoted(rest)} {' '.join(words)} {program}"
        return f'"$({made})"'

    def _fetch(self, step: HttpStep) -> str:
        words = list(self._words(step.request))
        if step.challenge is not None:
            words.insert(0, f'--{step.challenge.lower()} --user "{self._pair(step)}"')
        if _follows(step):
            words.insert(0, "--location")
        return " ".join(words)

    def _gdal_fetch(self, step: HttpStep) -> Iterator[str]:
        if step.challenge is not None:
            yield f"export GDAL_HTTP_AUTH={step.challenge.upper()}"
            yield f'export GDAL_HTTP_USERPWD="{self._pair(step)}"'
        headers = ", ".join(f"{name}: {value}" for name, value in step.request.headers.items())
        if headers:
            yield f"export GDAL_HTTP_HEADERS={self._word(headers)}"
        yield f"gdalinfo /vsicurl/{self._url(step.request.url)}"

    def _pair(self, step: HttpStep) -> str:
        return ":".join(
            f"${{{self._variables.name(step.id, name)}}}" for name in ("username", "password")
        )

    def _exports(self, step: EnvironmentStep, options: Mapping[str, str]) -> Iterator[str]:
        """Asks for what the caller holds, and gives it the name that the tool knows."""
        asked = {placeholder(step.id, name): name for name in step.needs}
        for name, text in options.items():
            if text not in asked:
                yield f"export {name}={quoted(text)}"
                continue
            one = self._variables.key_question(step, asked[text], name)
            yield _held(one)
            yield f"export {name}" if one.variable == name else f'export {name}="${one.variable}"'
        if step.needs and "AZURE_STORAGE_ACCESS_KEY" in options:
            # (GDAL would take these in the place of the key)
            yield "unset AZURE_STORAGE_CONNECTION_STRING AZURE_STORAGE_ACCESS_TOKEN"
        if step.needs and "AWS_SECRET_ACCESS_KEY" in options:
            token = self._session_token(step)
            if token != _AWS_SESSION_TOKEN:
                yield f"unset {_AWS_SESSION_TOKEN}"
            yield f'[ -z "${{{token}-}}" ] || export {_AWS_SESSION_TOKEN}="${token}"'

    def _session_token(self, step: EnvironmentStep) -> str:
        return self._variables.key_question(step, SESSION_TOKEN, _AWS_SESSION_TOKEN).variable

    def _signed(self, step: ObjectStep) -> list[str] | None:
        """curl signs by itself, given the keys: the lines before, and its words."""
        url, environment = https_url(step.location), self._environment
        if url is None or environment is None:
            return None
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        if not all(name in environment.environment for name in names):
            return None
        keys = [self._variables.key_question(environment, name[4:].lower(), name) for name in names]
        region = step.location.region or "us-east-1"
        words = [f"--aws-sigv4 {quoted(f'aws:amz:{region}:s3')}"]
        words.append(f'--user "{":".join(f"${{{key.variable}}}" for key in keys)}"')
        if step.is_requester_pays:
            words.append("--header 'x-amz-request-payer: requester'")
        token = self._session_token(environment)
        words.append(f'${{{token}:+--header}} ${{{token}:+"x-amz-security-token: ${token}"}}')
        return [*map(_held, keys), f"{' '.join(words)} {quoted(url)}"]


def _held(asked: Question) -> str:
    told = f"set {asked.variable} first: your {asked.asked}"
    return f'held "${{{asked.variable}-}}" {quoted(told)}'


def _filter(produced: Produced) -> str:
    """jq's way to the first of the pointers that has a text."""
    paths = [_path(pointer) for pointer in (produced.pointer, *produced.otherwise)]
    found = ", ".join(f"getpath({json.dumps(path)})" for path in paths)
    return quoted(f"first({found} | strings)")


def _path(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _saved(words: str, file: str) -> Iterator[str]:
    """The call of curl that writes a file, unless it is there."""
    name = quoted(f"./{file}")
    taken = quoted(f"{file} is there already")
    yield f"if [ -e {name} ]; then echo {taken} >&2; exit 1; fi"
    yield f"{_CURL} --output {name} {words}"


def _follows(step: HttpStep) -> bool:
    """curl takes Authorization off when it is sent to another host, and nothing else."""
    return not step.credentials.of or list(step.request.headers) == ["Authorization"]


def _carries_on(step: HttpStep) -> bool:
    """Tells whether GDAL would send the credential to another host: it always follows, and takes
    off these two headers alone."""
    return bool(step.credentials.of) and not {"Authorization", "Cookie"}.issuperset(
        step.request.headers
    )


def _in_subshell(lines: list[str] | None) -> list[str] | None:
    """The lines with the functions that they use, so that a failure ends them and nothing else;
    None when a text has characters that do not get through a terminal as they are."""
    if lines is None or not all(map(str.isprintable, lines)):
        return None
    functions = [f for mark, f in _FUNCTIONS.items() if any(mark in line for line in lines)]
    return ["(", "set -e", *functions, *lines, ")"]
