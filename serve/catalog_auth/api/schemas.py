"""The shapes of replies and requests, for the API's document: handlers write the bytes themselves,
and the tests hold them to these.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SeverityWord = Literal["info", "warning", "error"]
POINTER = Field(description="A JSON Pointer (RFC 6901) into the document.", examples=["/assets/a"])


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PatchStep(_Shape):
    """A step of a JSON Patch (RFC 6902)."""

    op: Literal["add", "remove", "replace", "move"]
    path: str
    value: Any = None
    source: str = Field("", alias="from")


class SuggestionReply(_Shape):
    """A repair that loses something or guesses something."""

    title: str
    patch: list[PatchStep]


class Finding(_Shape):
    """Something to be said about a document."""

    rule: str = Field(examples=["R01"])
    severity: SeverityWord
    pointer: str = POINTER
    line: int = Field(1, ge=1, description="In the text of the body, from 1.")
    column: int = Field(1, ge=1, description="In characters, from 1.")
    message: str
    why: str
    fix: list[PatchStep] = Field(
        [], description="There when the repair is mechanical: it loses nothing and guesses nothing."
    )
    suggestions: list[SuggestionReply] = Field(
        [], description="Other repairs, as alternatives of which a person picks one."
    )


class Counts(_Shape):
    """The number of findings of each severity."""

    info: int
    warning: int
    error: int


class Verdict(_Shape):
    """Both verdicts on a document."""

    valid: bool = Field(description="No finding is as bad as `fail_on`.")
    schema_valid: bool | None = Field(
        description="What the official schema of the declared version says; null where none is "
        "declared. Of a FeatureCollection: of all features."
    )
    type: str = Field(examples=["Feature"])
    declared_versions: list[str] = Field(examples=[["v1.1.0"]])
    counts: Counts
    findings: list[Finding]
    left_out: list[str] = Field(
        [], description="What the bounds on work have cut, a sentence each; there when they have."
    )


class Context(_Shape):
    """The documents above the document."""

    collection: dict[str, Any] | None = None
    catalog: dict[str, Any] | None = None


class OptionsOfCall(_Shape):
    """Options of a call."""

    profile: Literal["schema", "default", "strict", "ceos", "portolan"] | None = None
    version: str | None = Field(None, examples=["v1.1.0"])
    fail_on: SeverityWord | None = None
    rules: dict[str, Literal["error", "warning", "info", "off"]] = Field(
        {}, examples=[{"R04": "off"}]
    )


class Envelope(_Shape):
    """A document with its ancestors and options."""

    document: Any
    context: Context | None = None
    options: OptionsOfCall | None = None


class Cause(_Shape):
    where: str
    detail: str


class ProblemDocument(BaseModel):
    """A problem document (RFC 9457)."""

    type: str = Field(examples=["urn:tollgate:catalog-auth:not-json"])
    title: str
    status: int
    detail: str
    line: int = Field(1, ge=1, description="Of text that is not JSON.")
    column: int = Field(1, ge=1)
    errors: list[Cause] = []


class RuleReply(_Shape):
    """A rule of the catalogue."""

    id: str
    name: str
    severity: SeverityWord
    profiles: dict[str, SeverityWord | Literal["off"]]
    says: str
    why: str
    source: str = Field(description="The text behind it: an RFC, the extension, catalog-auth.md.")
    repair: str


class RuleInFull(RuleReply):
    """A rule with a document that breaks it, what is found in it, and the document repaired."""

    example: Any
    context: dict[str, Any] | None
    findings: list[Finding]
    repaired: Any = Field(description="Null when nothing in it is mended mechanically.")


class VersionReply(_Shape):
    """A version of the extension."""

    version: str
    identifier: str
    is_latest: bool


class TargetOfCall(_Shape):
    """The target: exactly one of the two."""

    pointer: str | None = Field(None, examples=["/assets/image"])
    href: str | None = None


class HeldOfCall(_Shape):
    """Something that the caller holds, and the domains that it is for (none: any)."""

    name: str = Field(examples=["login.client_id"])
    domains: list[str] = []


class ChoiceOfCall(_Shape):
    """A suggestion of a finding."""

    rule: str
    pointer: str = POINTER
    number: int = Field(description="Its place among the finding's suggestions, from 0.")


class FixEnvelope(Envelope):
    """A document, and the suggestions to apply."""

    choices: list[ChoiceOfCall] = []


class ResolveEnvelope(Envelope):
    """A document, what of it to get at, and by name what the caller holds."""

    target: TargetOfCall
    available: list[str | HeldOfCall] = Field([], examples=[["keys", "login.client_id"]])
    base: str | None = Field(None, description="Where the document was found.")
    recipes: bool = Field(False, description="Also as lines to copy: curl, Python, GDAL.")


class TargetReply(_Shape):
    """The target that was found."""

    pointer: str = POINTER
    href: str | None


class UnresolvedReply(_Shape):
    """A reference that leads nowhere."""

    ref: str
    rule: str
    suggest: str | None


class AlternativeReply(_Shape):
    """One way to the target: steps, to be done in order."""

    ref: str | None = Field(description="Null when no scheme is needed.")
    type: str
    flow: str = ""
    storage: str = ""
    chain: list[str] = []
    executable: bool
    missing: list[str] = Field(description="What has to be held besides.")
    steps: list[dict[str, Any]]
    findings: list[str] = Field(description="Ids of the rules that have something to say of it.")
    recipes: dict[str, str] = {}


class ResolutionReply(_Shape):
    """The ways to a target: alternatives in the order in which to try them."""

    target: TargetReply
    public: bool
    alternatives: list[AlternativeReply]
    unresolved: list[UnresolvedReply]
    left_out: list[str] = Field(
        [], description="What the bounds on work have cut, a sentence each; there when they have."
    )


class RepairReply(_Shape):
    """A repair that was made."""

    rule: str
    pointer: str


class FixedReply(_Shape):
    """A repaired document."""

    patch: list[PatchStep]
    document: Any
    repairs: list[RepairReply]
    complete: bool = Field(description="Nothing is left to be repaired.")
    verdict: Verdict


class MigratedReply(_Shape):
    """A document in another version."""

    version: str
    patch: list[PatchStep]
    document: Any
    verdict: Verdict


class CrawlRequest(_Shape):
    """The beginning of a crawl, and its end: never further than is configured."""

    href: str = Field(examples=["https://example.com/catalog.json"])
    depth: int | None = Field(None, ge=0)
    documents: int | None = Field(None, ge=1)


class SignRequest(_Shape):
    """An object to be signed."""

    bucket: str
    key: str


class SignedObject(_Shape):
    """A signed URL."""

    signed_url: str


class SignError(_Shape):
    """The reason why nothing was signed."""

    error: str


class SignedHref(_Shape):
    """A signed URL, and until when it holds."""

    href: str
    expires: str = Field(examples=["2026-05-01T10:36:00Z"])


class SchemeReply(BaseModel):
    """A scheme of type signedUrl."""

    type: Literal["signedUrl"]
    description: str
    flows: dict[str, dict[str, Any]]


def component(model: type[BaseModel]) -> dict[str, str]:
    """A reference to the shape in the document."""
    return {"$ref": f"#/components/schemas/{model.__name__}"}


# Those that the API's document names by reference.
MODELS: tuple[type[BaseModel], ...] = (
    CrawlRequest,
    FixedReply,
    MigratedReply,
    SchemeReply,
    SignError,
    SignRequest,
    SignedHref,
    SignedObject,
    Envelope,
    FixEnvelope,
    ProblemDocument,
    ResolutionReply,
    ResolveEnvelope,
    RuleInFull,
    RuleReply,
    Verdict,
    VersionReply,
)
