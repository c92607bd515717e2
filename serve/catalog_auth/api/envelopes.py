"""Bodies of calls: a bare document, or one in an envelope with its context and options.

    {"type": "Feature", …}                                 a document
    {"document": {…},                                      an envelope
     "context": {"collection": {…}, "catalog": {…}},       its ancestors, for rules that ask them
     "options": {"profile", "version", "fail_on", "rules": {"R04": "off"}}}

An object without `type` that has a `document` is an envelope. What the query says goes before what
the envelope says, and that before what is configured.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.api.problems import NotJson, ProblemCause, TooLarge, Unprocessable
from tollgate.serve.catalog_auth.document.decoding import (
    TooMuchError,
    UnreadableError,
    decode_foreign,
)
from tollgate.serve.catalog_auth.document.document import NO_ANCESTORS, Ancestors, Document
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import Profile
from tollgate.serve.catalog_auth.verdict.report import Options

OFF = "off"
_PLACE_MARK = " - at `$"
_SOMEWHERE = "[...]"  # (it does not say in which member)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
SeverityWord = Literal["error", "warning", "info", "off"]


class OptionsBody(Struct, forbid_unknown_fields=True):
    """The options of an envelope."""

    profile: Profile | None = None
    version: str | None = None
    fail_on: Severity | None = None
    rules: dict[str, SeverityWord] = {}


class AncestorsBody(Struct, forbid_unknown_fields=True):
    """The ancestors of a document."""

    collection: dict[str, Any] | None = None
    catalog: dict[str, Any] | None = None


class _EnvelopeBody(Struct):
    document: Raw
    context: AncestorsBody | None = None
    options: OptionsBody | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """A document to judge. `text` is the document's own; in the body it stands at `within`.
    `rest`: the members of the envelope that only some calls know."""

    root: JsonValue
    text: bytes
    within: Path
    ancestors: Ancestors
    options: Options
    rest: Mapping[str, Any]

    def located(self) -> Document:
        """The document as the rules look at it."""
        return locate(self.root, self.ancestors, self.options.version, self.text)


@dataclass(frozen=True, slots=True)
class Asked:
    """The options that a query asks for; None: it does not say."""

    profile: Profile | None = None
    version: Version | None = None
    fail_on: Severity | None = None
    severities: Mapping[str, Severity | None] | None = None


NOTHING_ASKED = Asked()


def opened(
    raw: bytes, usual: Options, asked: Asked = NOTHING_ASKED, known: frozenset[str] = frozenset()
) -> Envelope:
    """The envelope of a body. `known`: further members that it may have.

    Raises NotJson, TooLarge, Unprocessable.
    """
    usual = usual.for_text_of(len(raw))
    root = decoded(raw)
    if not (isinstance(root, dict) and "document" in root and "type" not in root):
        return Envelope(root, raw, (), NO_ANCESTORS, with_asked(usual, asked), {})
    strange = root.keys() - known - {"document", "context", "options"}
    if strange:
        causes = [ProblemCause(f"/{name}", "there is no such member") for name in sorted(strange)]
        raise Unprocessable("the envelope has members that mean nothing here", causes)
    try:
        body = msgspec.json.decode(raw, type=_EnvelopeBody)
    except msgspec.ValidationError as error:
        raise shape_problem(error) from None
    context = body.context or AncestorsBody()
    return Envelope(
        root=root["document"],
        text=bytes(body.document),
        within=("document",),
        ancestors=Ancestors(context.collection, context.catalog),
        options=with_asked(_with_body(usual, body.options), asked),
        rest={name: root[name] for name in known if name in root},
    )


def decoded(raw: bytes) -> JsonValue:
    """The value of a text from outside. Raises NotJson, TooLarge."""
    try:
        return decode_foreign(raw)
    except TooMuchError as error:
        raise TooLarge(f"{error.reason}: send features one by one, in a bulk call") from None
    except UnreadableError as error:
        raise NotJson(error.reason, error.line, error.column) from None


def with_asked(usual: Options, asked: Asked) -> Options:
    """The usual options with what was asked for in their place."""
    if asked == NOTHING_ASKED:
        return usual
    return replace(
        usual,
        profile=asked.profile or usual.profile,
        version=asked.version or usual.version,
        fail_on=asked.fail_on or usual.fail_on,
        severities={**usual.severities, **(asked.severities or {})},
    )


def version_named(text: str) -> Version:
    """The version of `v1.1.0`, `1.1.0`. Raises Unprocessable."""
    try:
        return Version(text.removeprefix("v"))
    except ValueError:
        known = ", ".join(f"v{version}" for version in Version)
        told = f"there is no version {text[:40]!r}; there are {known}"
        raise Unprocessable(told, [ProblemCause("version", told)]) from None


def severities_named(words: Mapping[str, str]) -> dict[str, Severity | None]:
    """Severities by rule id; None: the rule is off. Raises Unprocessable."""
    causes = [
        ProblemCause("rules", f"there is no rule {rule[:40]!r}")
        for rule in words
        if rule not in RULES
    ]
    causes += [
        ProblemCause("rules", f"{rule}: {word[:40]!r} is not one of error, warning, info, off")
        for rule, word in words.items()
        if word != OFF and word not in tuple(Severity)
    ]
    if causes:
        raise Unprocessable("the severities of rules are not as they should be", causes)
    return {rule: None if word == OFF else Severity(word) for rule, word in words.items()}


def _with_body(usual: Options, body: OptionsBody | None) -> Options:
    if body is None:
        return usual
    asked = Asked(
        body.profile,
        None if body.version is None else version_named(body.version),
        body.fail_on,
        severities_named(body.rules),
    )
    return with_asked(usual, asked)


def shape_problem(error: msgspec.ValidationError) -> Unprocessable:
    """msgspec's words, with the place as a JSON Pointer: "… - at `$.options.profile`"."""
    told, is_placed, place = str(error).rpartition(_PLACE_MARK)
    if is_placed:
        steps = _STEP.findall(place.removesuffix("`").replace(_SOMEWHERE, ""))
        cause = ProblemCause("".join(f"/{name or index}" for name, index in steps), told)
    else:
        cause = ProblemCause("", str(error))
    return Unprocessable("the envelope is not as it should be", [cause])
