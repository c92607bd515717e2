"""Finds what a rule's source names, and where that can be read.

RFC 9110, 11.1                         a section of an RFC; the first, where several follow
Authentication extension, Fields       a section of the extension's own text
OpenID Connect Discovery 1.0 …         other standards, by the names below
catalog-auth.md, B2                    a section of the law book, which is in `docs/`
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

LAW_BOOK = "catalog-auth.md"
_EXTENSION = "https://github.com/stac-extensions/authentication"
_STANDARDS = {
    "AWS Signature Version 4": (
        "https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html"
    ),
    "CommonMark 0.29": "https://spec.commonmark.org/0.29/",
    "JSON Schema draft-07": "https://json-schema.org/draft-07",
    "OpenID Connect Discovery": "https://openid.net/specs/openid-connect-discovery-1_0.html",
    "Storage extension": "https://github.com/stac-extensions/storage",
    "IANA's registry of HTTP authentication schemes": (
        "https://www.iana.org/assignments/http-authschemes/http-authschemes.xhtml"
    ),
}
_NAMED = re.compile(
    r"RFC (?P<rfc>\d+)(?:, (?P<section>\d+(?:\.\d+)*))?"
    r"|Authentication extension(?:, (?P<part>Fields|Scheme Types|[\w ]+ Object))?"
    rf"|{re.escape(LAW_BOOK)}(?:, (?P<label>[A-Z]\d*))?"
    rf"|{'|'.join(map(re.escape, _STANDARDS))}"
)


class Segment(NamedTuple):
    """A piece of a source. `url`: where it leads; `label`: of a section of the law book."""

    text: str
    url: str = ""
    label: str = ""


def segments(source: str) -> Iterator[Segment]:
    """The source in pieces, in order; together they are its text."""
    at = 0
    for found in _NAMED.finditer(source):
        if found.start() > at:
            yield Segment(source[at : found.start()])
        yield Segment(found[0], _url(found), found["label"] or "")
        at = found.end()
    if at < len(source):
        yield Segment(source[at:])


def _url(found: re.Match[str]) -> str:
    if found["rfc"]:
        section = f"#section-{found['section']}" if found["section"] else ""
        return f"https://www.rfc-editor.org/rfc/rfc{found['rfc']}{section}"
    if found[0].startswith("Authentication extension"):
        part = found["part"]
        return f"{_EXTENSION}#{part.lower().replace(' ', '-')}" if part else _EXTENSION
    return _STANDARDS.get(found[0], "")
