"""Steps as lines of Python, with requests; objects with obstore.

The lines are one function and its call: pasted into an interpreter, the first that fails ends the
recipe, and no value of it is left for another one.
"""

from collections.abc import Iterator, Mapping, Sequence

from tollgate.serve.catalog_auth.resolve.recipes.variables import SESSION_TOKEN, RecipeVariables
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
_KEYS = ("access_key_id", "secret_access_key")
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
    lines = _PythonRecipe(alternative.steps).lines()
    if lines is None:
        return None
    text = "\n".join(lines)
    imports = [line for mark, line in _IMPORTS.items() if mark in text]
    body = [f"    {line}" for line in lines]
    return [*imports, "", "def fetched():", *body, "", "data = fetched()"]


class _PythonRecipe:
    """The lines for an alternative's steps."""

    def __init__(self, steps: Sequence[RecipeStep]) -> None:
        *self._before, self._last = steps
        self._variables = RecipeVariables(steps)
        # (what is asked for once serves all steps that need the same)
        self._asked: dict[str, str] = {}

    def lines(self) -> list[str] | None:
        match self._last:
            case HttpStep() as last:
                requests = [one for one in self._before if not isinstance(one, EnvironmentStep)]
                before = [line for step in requests for line in self._lines(step)]
                return [*_SESSION, *before, *self._inputs(last), *self._fetch(last)]
            case ObjectStep():
                environment = self._before[-1]
                assert isinstance(environment, EnvironmentStep), "an object is read in one"
                if "obstore" not in environment.forms or "profile" in environment.needs:
                    return None  # (obstore reads no profiles)
                return [*self._needs(environment), *self._read(environment)]
        return None

    def _name(self, step: str, value: str) -> str:
        """The variable of a value. (Those of a function need not tell for which host they are.)"""
        own = self._variables.made_name(step, value).lower()
        asked = self._variables.asked_name(step, value)
        return own if asked is None else self._asked.setdefault(asked, own)

    def _expression(self, text: str, is_encoded: bool = False) -> str:
        """A text with places as a Python expression."""
        parts, end = [], 0
        for found in PLACEHOLDER.finditer(text):
            if literal := text[end : found.start()]:
                parts.append(repr(literal))
            name = self._name(found[1], found[2])
            parts.append(f'quote({name}, safe="")' if is_encoded else name)
            end = found.end()
        if rest := text[end:]:
            parts.append(repr(rest))
        return " + ".join(parts) or '""'

    def _url(self, url: str) -> str:
        first = PLACEHOLDER.match(url)
        if first is None:
            return self._expression(url, is_encoded=True)
        rest = url[first.end() :]
        start = self._expression(first[0])
        if rest.startswith("?"):  # (the URL may have a query of its own)
            joint = f'("&" if "?" in {start} else "?")'
            return f"{start} + {joint} + {self._expression(rest[1:], is_encoded=True)}"
        return f"{start} + {self._expression(rest, is_encoded=True)}" if rest else start

    def _lines(self, step: RecipeStep) -> Iterator[str]:
        match step:
            case OidcStep():
                for inner in step.steps:
                    yield from self._lines(inner)
                last = self._name(step.steps[-1].id, step.produces)
                yield f"{self._name(step.id, step.produces)} = {last}"
            case BrowserStep():
                yield from self._inputs(step)
                yield f'print("Visit:", {self._url(step.request.url)})'
                where = "fragment" if step.is_in_fragment else "query"
                yield f'print("The page you come back to has {step.produces} in its {where}.")'
                yield f'{self._name(step.id, step.produces)} = input("{step.produces}: ")'
            case HttpStep():
                yield from self._inputs(step)
                yield f"answer = session.request({self._arguments(step.request)}, timeout=60)"
                yield "answer.raise_for_status()"
                for produced in step.produces:
                    if produced.name == "refresh_token":
                        continue
                    pointers = (produced.pointer, *produced.otherwise)
                    found = " or ".join(
                        f"answer.json(){_index(p, len(pointers))}" for p in pointers
                    )
                    yield f"{self._name(step.id, produced.name)} = {found}"

    def _inputs(self, step: HttpStep | BrowserStep) -> Iterator[str]:
        yield from self._needs(step)
        for name, derivation in step.derives.items():
            yield f"{self._name(step.id, name)} = {self._derived(derivation)}"

    def _needs(self, step: HttpStep | BrowserStep | EnvironmentStep) -> Iterator[str]:
        for name in step.needs:
            one = self._variables.question(step.id, name)
            if one.variable not in self._asked:
                yield f"{self._name(step.id, name)} = getpass.getpass({f'{one.asked}: '!r})"

    def _derived(self, derivation: Derivation) -> str:
        text = self._expression(derivation.of)
        match derivation.how:
            case Derive.RANDOM:
                return "secrets.token_urlsafe(32)"
            case Derive.S256:
                digest = f"hashlib.sha256(({text}).encode()).digest()"
                return f'base64.urlsafe_b64encode({digest}).decode().rstrip("=")'
            case Derive.BASIC:
                return f"base64.b64encode(({text}).encode()).decode()"
            case Derive.BASIC_FORM:
                text = self._expression(derivation.of, is_encoded=True)
                return f"base64.b64encode(({text}).encode()).decode()"
            case Derive.REDIRECT:
                return repr(_REDIRECT)

    def _arguments(self, request: StepRequest) -> str:
        words = [repr(request.method), self._url(request.url)]
        headers = {
            name: value
            for name, value in request.headers.items()
            if name != "Content-Type" or (request.body is None and request.form is None)
        }
        if headers:
            words.append(f"headers={self._mapping(headers)}")
        if request.form is not None:
            words.append(f"data={self._mapping(request.form)}")
        if request.body is not None:
            words.append(f"json={self._mapping(request.body)}")
        return ", ".join(words)

    def _mapping(self, members: Mapping[str, object]) -> str:
        pairs = (f"{name!r}: {self._value(value)}" for name, value in members.items())
        return f"{{{', '.join(pairs)}}}"

    def _value(self, value: object) -> str:
        return self._expression(value) if isinstance(value, str) else repr(value)

    def _fetch(self, step: HttpStep) -> Iterator[str]:
        words = self._arguments(step.request)
        if step.challenge is not None:
            names = ", ".join(self._name(step.id, name) for name in ("username", "password"))
            words += f", auth=requests.auth.HTTPDigestAuth({names})"
        is_kept = list(step.request.headers) not in ([], ["Authorization"])
        if step.credentials.of and (is_kept or step.challenge is not None):
            # (requests takes off nothing but Authorization, and answers anybody's challenge)
            words += ", allow_redirects=False"
        yield f"answer = session.request({words}, timeout=60)"
        yield "answer.raise_for_status()"
        yield "return answer.content"

    def _read(self, step: EnvironmentStep) -> Iterator[str]:
        form = step.forms["obstore"]
        assert isinstance(form, dict), "made so"
        options, path = form["store"], form["path"]
        assert isinstance(options, dict), "made so"
        words = [
            f"{name}={self._value(value)}" for name, value in options.items() if name not in _KEYS
        ]
        if step.needs:
            # (a store with keys of its own would also take the session token of the environment)
            token = self._variables.question(step.id, SESSION_TOKEN)
            asked = f"{token.asked}, if there is one: "
            yield f"session_token = getpass.getpass({asked!r})"
            yield "keys = {"
            yield from (f"    {name!r}: {self._value(options[name])}," for name in _KEYS)
            yield "    'token': session_token or None,"
            yield "    'expires_at': None,"
            yield "}"
            words.append("credential_provider=lambda: keys")
        yield f"store = S3Store({', '.join(words)})"
        yield f"return obstore.get(store, {path!r}).bytes()"


def _index(pointer: str, alternatives: int) -> str:
    keys = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    if alternatives > 1:
        return "".join(f".get({key!r})" for key in keys)
    return "".join(f"[{key!r}]" for key in keys)
