"""The versions of the authentication extension, and how a document declares one (part A).

A document declares a version by listing its identifier in `stac_extensions`, to the letter: a
validator that follows the identifiers fetches exactly that URL.
"""

import re
from enum import StrEnum

NAMESPACE = "https://stac-extensions.github.io/authentication/"


class Version(StrEnum):
    """The accepted versions, in the order of their release."""

    V1_0_0 = "1.0.0"
    V1_1_0 = "1.1.0"
    V1_2_0 = "1.2.0"

    @property
    def identifier(self) -> str:
        return f"{NAMESPACE}v{self}/schema.json"

    @property
    def rank(self) -> int:
        return _RANKS[self]


_RANKS = {version: rank for rank, version in enumerate(Version)}
LATEST = Version.V1_2_0
VERSIONS_BY_IDENTIFIER = {version.identifier: version for version in Version}

# An identifier as it should be, of a version that may not exist.
WELL_FORMED = re.compile(re.escape(NAMESPACE) + r"v(\d{1,4}\.\d{1,4}\.\d{1,4})/schema\.json")
# The extension's own addresses, well or badly written: its page, its repository, its raw files.
# Whatever else has the word in it is an extension of somebody else.
_OWN_URL = re.compile(
    r"\s*(?:https?:)?(?://)?(?:www\.)?"
    r"(?:stac-extensions\.github\.io|(?:raw\.githubusercontent|github)\.com/stac-extensions)"
    r"/authentication(?![a-z0-9_-])"
)
# The extension's short name, perhaps with a version.
_SHORT_NAME = re.compile(r"\s*authentication\s*(?:v?\d[\d.]*)?\s*")
_VERSION_WITHIN = re.compile(r"v?(\d{1,4}\.\d{1,4}\.\d{1,4})")
# Its name as a part of any address, or a slip of the pen for it.
_NEARLY_ITS_NAME = re.compile(r"(?:^|/)au[th]{1,2}en[a-z]{4,12}ions?(?:/|$)")
# Longer texts are no identifiers of anything.
IDENTIFIER_LENGTH_MAX = 400


def is_meant(text: str) -> bool:
    """Tells whether this entry of `stac_extensions` means the authentication extension, well or
    badly written."""
    # (nearly every entry belongs to another extension, and this is asked of every one)
    if "uthentication" not in text and "UTHENTICATION" not in text:
        return False
    plain = text[: IDENTIFIER_LENGTH_MAX + 1].lower()
    if len(plain) > IDENTIFIER_LENGTH_MAX:
        return False
    return _OWN_URL.match(plain) is not None or _SHORT_NAME.fullmatch(plain) is not None


def is_nearly_meant(text: str) -> bool:
    """Tells whether an entry that means another extension may have been meant for this one: a part
    of its address is the extension's name, or nearly so."""
    plain = text[: IDENTIFIER_LENGTH_MAX + 1].lower()
    # (as above: nearly every entry is done with this)
    if "au" not in plain or len(plain) > IDENTIFIER_LENGTH_MAX or is_meant(text):
        return False
    return _NEARLY_ITS_NAME.search(plain) is not None


def same_identifier(text: str) -> Version | None:
    """The version whose identifier this is but for `http`, letter case, blanks around it, a slash
    or a fragment at its end: the same address in another spelling."""
    plain = text[: IDENTIFIER_LENGTH_MAX + 1].strip().lower().partition("#")[0].rstrip("/")
    if plain.startswith("http://"):
        plain = f"https://{plain.removeprefix('http://')}"
    return VERSIONS_BY_IDENTIFIER.get(plain)


def suggested_version(text: str) -> Version:
    """The version to suggest in the place of a malformed identifier: the one it speaks of, if
    that exists, else the latest but one, which every document that names no version can meet."""
    named = _VERSION_WITHIN.search(text[:IDENTIFIER_LENGTH_MAX])
    if named is not None and named[1] in _RANKS:
        return Version(named[1])
    return Version.V1_1_0
