"""The little language in which a resolution tells a client what to do.

An alternative is a list of steps, done in order. A text may hold placeholders `${step.name}`: the
value `name` of the step with that id, which is one of

    needs     the caller has it; what it is called in `available` and `missing` stands beside it
    derives   the client makes it: from random bytes, or out of other placeholders
    produces  an earlier step gave it

A value put into the query of a URL, or into a form, is percent-encoded; one at the beginning of a
URL is a URL itself, and parameters after it are added to its own. An
alternative for which a text of the document looks like a placeholder is not to be executed: no
document can have a value sent where it does not belong.

Credentials (part D): a request that comes of `auth:refs` never gets a default credential (a netrc
file, say); what is put on a request goes to the hosts of its rule only, and a redirect to another
host is followed without it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.objects.urls import ObjectLocation

PLACEHOLDER = re.compile(r"\$\{([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\}")


def placeholder(step: str, name: str) -> str:
    return f"${{{step}.{name}}}"


def holds_placeholder(value: object) -> bool:
    """Tells whether a text of a decoded value looks like a placeholder; descriptions may."""
    if isinstance(value, str):
        return PLACEHOLDER.search(value) is not None
    if isinstance(value, Mapping):
        return any(
            holds_placeholder(name) or (name != "description" and holds_placeholder(inner))
            for name, inner in value.items()
        )
    return isinstance(value, list) and any(holds_placeholder(inner) for inner in value)


class Derive(StrEnum):
    """The way in which a client makes a value."""

    RANDOM = "random"  # 32 random bytes in base64url, without padding (RFC 7636, 4.1)
    S256 = "s256"  # SHA-256 in base64url, without padding (RFC 7636, 4.2)
    BASIC = "basic"  # base64 of the text (RFC 7617)
    BASIC_FORM = "basic-form"  # the same, of both parts form-encoded (RFC 6749, 2.3.1)
    REDIRECT = "redirect"  # a redirect URI of the client's own (RFC 8252)


@dataclass(frozen=True, slots=True)
class Derivation:
    """`of` is a text with places; empty for what is made of nothing."""

    how: Derive
    of: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """Something the caller must hold for a scheme: `scheme.name` in `available`. A `.` in the name
    is `%2E` there, so that `x` of the scheme `a.b` is not `b.x` of the scheme `a`."""

    scheme: str
    name: str

    @property
    def called(self) -> str:
        return f"{self.scheme}.{self.name.replace('%', '%25').replace('.', '%2E')}"


@dataclass(frozen=True, slots=True)
class StepRequest:
    """At most one of `body` (JSON) and `form` is there."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, JsonValue] | None = None
    form: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Produced:
    """A value in the JSON of an answer. `otherwise`: pointers to try where nothing is there;
    `is_assumed`: of a signed URL, whether the scheme left open where it is."""

    pointer: str
    name: str
    otherwise: tuple[str, ...] = ()
    is_assumed: bool | None = None


@dataclass(frozen=True, slots=True)
class CredentialRule:
    """The credentials that may go along with a request. `of`: the schemes that they are for;
    `hosts`: the only ones that get them, empty when an earlier step tells the URL."""

    of: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    may_use_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpStep:
    """A request. `challenge`: its credentials answer a challenge of the server (Digest)."""

    id: str
    request: StepRequest
    produces: tuple[Produced, ...] = ()
    needs: Mapping[str, Need] = field(default_factory=dict)
    derives: Mapping[str, Derivation] = field(default_factory=dict)
    credentials: CredentialRule = CredentialRule()
    challenge: str | None = None
    refresh: StepRequest | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserStep:
    """A page for the person to visit, who comes back to the redirect URI with `produces` in its
    query, or in its fragment. What comes back must carry the `state` that was sent."""

    id: str
    request: StepRequest
    produces: str
    is_in_fragment: bool = False
    needs: Mapping[str, Need] = field(default_factory=dict)
    derives: Mapping[str, Derivation] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcStep:
    """A login with an OpenID provider. `steps` are the first of the grants, spelt out; `produces`
    is given by the last of them."""

    id: str
    discovery: str
    grants: tuple[str, ...]
    produces: str
    steps: tuple["HttpStep | BrowserStep", ...]
    warnings: tuple[str, ...] = ()

    @property
    def token(self) -> str:
        return placeholder(self.id, self.produces)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentStep:
    """The environment of an object store's client. `forms`: the same for GDAL, rclone, the AWS
    command and obstore."""

    id: str
    environment: Mapping[str, str]
    forms: Mapping[str, JsonValue] = field(default_factory=dict)
    needs: Mapping[str, Need] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStep:
    """Reading an object with the store's own client, in the environment set before."""

    id: str
    location: ObjectLocation
    is_requester_pays: bool = False
    hosts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedStep:
    """Something that a program cannot do by itself, in words."""

    id: str
    text: str
    warnings: tuple[str, ...] = ()


RecipeStep = HttpStep | BrowserStep | OidcStep | EnvironmentStep | ObjectStep | DescribedStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One way to the target. `ref` is None when no scheme is needed; `flow` and `storage` tell
    which of a scheme's flows and of the target's storages it is about, where there is a choice;
    `chain` are the schemes that give its input, first the one to begin with."""

    ref: str | None
    type: str
    steps: tuple[RecipeStep, ...]
    is_executable: bool
    missing: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    flow: str | None = None
    storage: str | None = None
    chain: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A ref that leads nowhere; `suggest` is the name that was probably meant."""

    ref: str
    rule: str
    suggest: str | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """The ways to get at a target: `alternatives` in the order in which to try them. `left_out`
    says which bounds have cut what, a sentence each."""

    pointer: str
    href: str | None
    is_public: bool
    alternatives: tuple[Alternative, ...]
    unresolved: tuple[Unresolved, ...] = ()
    left_out: tuple[str, ...] = ()
