"""D: descriptions, which are CommonMark and end up on web pages (part C)."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tollgate.serve.catalog_auth.document.document import Scheme, flows_of, parameters_of
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.rules.examples.items import protected_item
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject

# Longer descriptions are instructions, and belong on a page of their own.
LENGTH_MAX = 2_000
# Parsing may take the square of the length, or of the marks that open something: longer ones, those
# with more marks, and what goes beyond the document's share are only searched for what is obvious.
PARSED_LENGTH_MAX = 4_096
PARSED_MARKS_MAX = 100
PARSED_IN_ALL_MAX = 64 * 1024
_CUT = (
    f"descriptions of more than {PARSED_LENGTH_MAX:,} characters or {PARSED_MARKS_MAX} marks, and "
    f"those after the first {PARSED_IN_ALL_MAX:,} characters, are searched for plain HTML and "
    "links that run, and not parsed"
)
_MARKS = re.compile(r"[\[!*_`<&]")
_OBVIOUS = re.compile(
    r"(?i)<[a-z!/?][^>]{0,100}>|\]\(\s{0,9}(?:javascript|vbscript|data):[^)]{0,100}"
)

# HTML begins with `<`, a link has `](`, `]:` or `<`: anything else is text and needs no parser.
_MAY_HAVE_EITHER = re.compile(r"<|\]\s*[(:]")
_HTML = frozenset({"html_block", "html_inline"})
_RUNS = re.compile(r"(?i)(javascript|vbscript|data):")
_IMAGE = re.compile(r"(?i)data:image/(?:png|gif|jpeg|webp)[;,]")
# Browsers drop these from a URL before they look at its scheme (WHATWG URL).
_DROPPED = re.compile(r"[\x00-\x20]|%(?:0[0-9A-Da-d]|20)")

_parser = MarkdownIt("commonmark", {"html": True})
# The parser turns the links we look for into text unless it is told that every link is good.
_parser.validateLink = lambda url: True  # type: ignore[method-assign]


def _has_no_markup(scheme: Scheme, report: FindingReport) -> None:
    for path, text in _descriptions(scheme):
        if _MAY_HAVE_EITHER.search(text) is None:
            continue
        is_short = len(text) <= PARSED_LENGTH_MAX
        if (
            not is_short
            or len(_MARKS.findall(text)) > PARSED_MARKS_MAX
            or not report.spend(len(text), PARSED_IN_ALL_MAX)
        ):
            report.leave_out(_CUT)
            if found := _OBVIOUS.search(text):
                report.add(path, f"there is markup in the description: {shown(found[0])}")
            continue
        for token in _flat(_parser.parse(text)):
            if token.type in _HTML:
                report.add(path, f"there is HTML in the description: {shown(token.content)}")
                break
            target = _target(token)
            if target is not None and _runs(target):
                report.add(path, f"a link in the description runs code: {shown(target)}")
                break


def _is_short(scheme: Scheme, report: FindingReport) -> None:
    for path, text in _descriptions(scheme):
        if len(text) > LENGTH_MAX:
            report.add(
                path, f"the description has {len(text)} characters, more than {LENGTH_MAX:,}"
            )


def _descriptions(scheme: Scheme) -> Iterator[tuple[Path, str]]:
    text = scheme.value.get("description")
    if isinstance(text, str):
        yield (*scheme.path, "description"), text
    if scheme.type != "signedUrl":
        return
    for flow in flows_of(scheme):
        for parameter in parameters_of(flow):
            text = parameter.value.get("description")
            if isinstance(text, str):
                yield (*parameter.path, "description"), text


def _flat(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _target(token: Token) -> str | None:
    if token.type not in ("link_open", "image"):
        return None
    return str(token.attrGet("href" if token.type == "link_open" else "src") or "")


def _runs(target: str) -> bool:
    """Tells whether following a link runs what the link itself says."""
    plain = _DROPPED.sub("", target)
    return _RUNS.match(plain) is not None and _IMAGE.match(plain) is None


RULES = (
    CatalogRule(
        id="D01",
        name="markup-in-description",
        severity=Severity.WARNING,
        subject=Subject.SCHEME,
        says="A description has HTML in it, or a link that runs code.",
        why="Pages that show the description run it, unless they are careful.",
        source=(
            "CommonMark 0.29, 4.6 and 6.8 (raw HTML); Authentication extension, "
            "Authentication Scheme Object: `description`."
        ),
        repair="Write it in CommonMark alone, with links to https addresses.",
        check=_has_no_markup,
        example=protected_item(
            {
                "type": "http",
                "scheme": "basic",
                "description": "[Log in](javascript:login()) first.",
            }
        ),
    ),
    CatalogRule(
        id="D02",
        name="description-long",
        severity=Severity.INFO,
        subject=Subject.SCHEME,
        says="A description is longer than a screen.",
        why="It is repeated in every document that has the scheme.",
        source=(
            "Authentication extension, Authentication Scheme Object: `description` has "
            "extra instructions."
        ),
        repair="Put the instructions on a page of their own, and link to it.",
        check=_is_short,
        example=protected_item(
            {"type": "http", "scheme": "basic", "description": "Ask the data context. " * 120}
        ),
    ),
)
