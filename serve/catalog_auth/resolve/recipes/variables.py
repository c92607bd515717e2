"""The names of a recipe's variables.

What a person puts in is called by what it is, the scheme it belongs to, and the one place that it
is for: `TOKEN_of_LOGIN_at_DATA_EXAMPLE_COM`. So a secret that was set for one host never goes to
another, whatever recipe is pasted after it. What a recipe makes by itself is called by its step.

Names are the same in every recipe, and different things have different names: in them letters of a
name are capitals, `.` and `_` are `_`, `-` is `__`; small letters join the parts. Names of schemes
that this would not bring back are followed by a digest, other characters of hosts are `x2dx`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import urlsplit

from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.objects.hosts import Provider, known_host
from tollgate.serve.catalog_auth.objects.urls import https_url
from tollgate.serve.catalog_auth.resolve.steps import (
    PLACEHOLDER,
    BrowserStep,
    EnvironmentStep,
    HttpStep,
    Need,
    ObjectStep,
    OidcStep,
    RecipeStep,
)

# Of a name that is longer, the beginning is shown.
PART_LENGTH_MAX = 40
_DIGEST_LENGTH = 8
_PLAIN = re.compile(r"[a-z0-9]+(?:(?:_|-+)[a-z0-9]+)*")
_NOT_PLAIN = re.compile(r"[^A-Z0-9]+")
_HOST_PIECES = re.compile(
    r"(?P<letters>[a-z]+)|(?P<joint>(?<=[a-z0-9])(?:\.|-+)(?=[a-z0-9]))|(?P<other>[^a-z0-9])"
)
_PORTS = {"http": 80, "https": 443}
# What goes with keys that a cloud has lent: nobody needs it, so nobody is asked to have it.
SESSION_TOKEN = "session_token"
# The clouds whose own object stores one set of keys opens, and how its variables begin.
_KNOWN_PREFIXES = {Provider.AWS: "AWS_", Provider.GOOGLE: "GS_"}


@dataclass(frozen=True, slots=True)
class Question:
    """Something that a recipe asks for: the variable that has it, and what it is, for a person."""

    variable: str
    asked: str


class RecipeVariables:
    """The names of all values in an alternative's steps."""

    def __init__(self, steps: Sequence[RecipeStep]) -> None:
        self._questions: dict[tuple[str, str], Question] = {}
        self._origins: dict[str, str] = {}
        for step, origin in _asking(steps):
            self._origins[step.id] = origin
            for name, need in step.needs.items():
                self._questions[step.id, name] = question(need, origin)
                if isinstance(step, EnvironmentStep):
                    token = Need(need.scheme, SESSION_TOKEN)
                    self._questions[step.id, SESSION_TOKEN] = question(token, origin)

    def name(self, step: str, value: str) -> str:
        """The variable for the value of a step."""
        return self.asked_name(step, value) or self.made_name(step, value)

    def asked_name(self, step: str, value: str) -> str | None:
        asked = self._questions.get((step, value))
        return asked.variable if asked else None

    def made_name(self, step: str, value: str) -> str:
        return f"{step}_{value}".replace("-", "_").upper()

    def question(self, step: str, need: str) -> Question:
        return self._questions[step, need]

    def questions(self) -> list[Question]:
        """All that the requests of the steps need, each once."""
        return list(dict.fromkeys(self._questions.values()))

    def key_question(self, step: EnvironmentStep, need: str, known: str) -> Question:
        """The question for a key of an object store. That of a cloud itself is in everybody's
        environment, under the name `known`; one of another store never is, nor one of a machine
        that anybody can rent below the cloud's name."""
        asked = self._questions[step.id, need]
        origin = self._origins[step.id]
        return Question(known, asked.asked) if _is_known_for(known, origin) else asked


def question(need: Need, origin: str) -> Question:
    """The question for a need at an origin: a URL of which the scheme, host and port count."""
    scheme, host, port = _origin_parts(origin)
    where, place = _host(host), host
    if port not in (None, _PORTS.get(scheme)):
        where, place = f"{where}_port_{port}", f"{place}:{port}"
    if scheme == "http":
        where, place = f"{where}_over_http", f"http://{place}"
    name = f"{_part(need.name)}_of_{_part(need.scheme)}_at_{where}"
    return Question(f"_{name}" if name[0].isdigit() else name, f"{shown(need.called)} for {place}")


def _is_known_for(known: str, origin: str) -> bool:
    """Tells whether a variable of that name is meant for the object store at an origin."""
    if not origin:
        return True  # (an account that is to be told: there is nothing to send a key to yet)
    scheme, name, port = _origin_parts(origin)
    host = known_host(name)
    if scheme != "https" or port not in (None, _PORTS["https"]) or host is None or host.is_website:
        return False
    prefix = _KNOWN_PREFIXES.get(host.provider)
    return prefix is not None and known.startswith(prefix)


def _origin_parts(origin: str) -> tuple[str, str, int | None]:
    """Scheme, host and port; what is no URL is a host as a whole."""
    try:
        parts = urlsplit(origin)
        return parts.scheme, parts.hostname or "", parts.port
    except ValueError:  # an address or a port that is none
        return "", origin.lower(), None


def _part(name: str) -> str:
    """A name in capitals; with a digest of it where that would not bring it back."""
    capitals = name.upper()
    if len(name) <= PART_LENGTH_MAX and _PLAIN.fullmatch(name):
        return capitals.replace("-", "__")
    readable = _NOT_PLAIN.sub("_", capitals[:PART_LENGTH_MAX]).strip("_")
    return f"{readable}x{sha256(name.encode(errors='surrogatepass')).hexdigest()[:_DIGEST_LENGTH]}"


def _host(host: str) -> str:
    return _HOST_PIECES.sub(_host_piece, host)


def _host_piece(found: re.Match[str]) -> str:
    text = found[0]
    match found.lastgroup:
        case "letters":
            return text.upper()
        case "joint":
            return "_" if text == "." else "__" * len(text)
    return f"x{ord(text):x}x"


def _asking(
    steps: Sequence[RecipeStep],
) -> Iterator[tuple[HttpStep | BrowserStep | EnvironmentStep, str]]:
    """The steps that ask for something, each with the URL that it is for."""
    location = next((step.location for step in steps if isinstance(step, ObjectStep)), None)
    for step in steps:
        match step:
            case OidcStep():
                for inner in step.steps:
                    # (an endpoint that the provider's own configuration tells is the provider's)
                    is_told = PLACEHOLDER.match(inner.request.url)
                    yield inner, step.discovery if is_told else inner.request.url
            case HttpStep() | BrowserStep():
                yield step, step.request.url
            case EnvironmentStep() if location is not None:
                yield step, https_url(location) or ""
