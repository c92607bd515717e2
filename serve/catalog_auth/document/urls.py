"""URLs as the rules look at them: the host, the names in the query, and what may be shown.

Nothing here opens anything, and nothing shown has a user, a password or a query in it.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import SplitResult, unquote, unquote_plus, urlsplit

from tollgate.serve.catalog_auth.document.shown_values import shown

# Longer texts are not looked at as URLs.
URL_LENGTH_MAX = 8_192
# No host name has more than 253 characters; the rest is for users and passwords.
ORIGIN_LENGTH_MAX = 1_024
# So many origins are remembered, and so many endpoints.
ORIGINS_MAX = 4_096
ENDPOINTS_MAX = 512
# A query has at most so many parameters that are looked at.
PARAMETERS_MAX = 256

# Schemes whose authority is a host of the network (that of `s3:` is a bucket).
_NETWORK = frozenset({"http", "https", "ftp", "ftps", "sftp", "ws", "wss", "ssh", "git"})
# What no URI has (RFC 3986, 2); letters beyond ASCII are allowed, as in an IRI.
_NEVER_IN_URIS = re.compile(r"[\x00-\x20\x7f<>\"{}|\\^`]")
# A name has at most 253 characters (RFC 1035, 2.3.4).
_HOST = re.compile(r"[^\s/?#@:\[\]<>{}]{1,253}|[0-9a-f:.]{2,45}", re.IGNORECASE)
_ORIGIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)")


def http_url(text: str) -> SplitResult | None:
    """An absolute http(s) URL with a host, taken apart; None for anything else."""
    return _http_url(text) if len(text) <= URL_LENGTH_MAX else None


@lru_cache(maxsize=ENDPOINTS_MAX)
def _http_url(text: str) -> SplitResult | None:
    if _NEVER_IN_URIS.search(text):
        return None
    try:
        url = urlsplit(text)
        host, _ = url.hostname, url.port
    except ValueError:  # an address or a port that is none
        return None
    is_http = url.scheme in ("http", "https") and host is not None
    return url if is_http and _HOST.fullmatch(host or "") else None


def origin_of(href: str) -> str:
    """`scheme://authority` as it is written, or nothing when the href is relative or opaque."""
    found = _ORIGIN.match(href)
    return found[0] if found and len(found[0]) <= ORIGIN_LENGTH_MAX else ""


def scheme_of(href: str) -> str:
    """The scheme in lower case, or nothing when there is none. A drive's letter is no scheme."""
    if href.startswith("https://"):  # (nearly every one)
        return "https"
    scheme, colon, _ = href.partition(":")
    is_one = colon and len(scheme) > 1 and scheme[0].isalpha()
    if not is_one or not scheme.isascii() or not scheme.translate(_SCHEME_MARKS).isalnum():
        return ""
    return scheme.lower()


_SCHEME_MARKS = str.maketrans("", "", "+-.")


@lru_cache(maxsize=ORIGINS_MAX)
def host_of(origin: str) -> str | None:
    """The lower-case host of an origin (see `origin_of`), if it is one of the network."""
    scheme, _, authority = origin.partition("://")
    if scheme.lower() not in _NETWORK:
        return None
    host = authority.rpartition("@")[2]
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower() or None


@lru_cache(maxsize=ORIGINS_MAX)
def user_of(origin: str) -> str | None:
    """The user part of an origin when it is one that nobody should publish: any for http(s), one
    with a password elsewhere. (`abfss://container@account` and `ssh://git@host` name no secret.)
    """
    scheme, _, authority = origin.partition("://")
    user, at, _ = authority.rpartition("@")
    if not at or not user:
        return None
    _, _, password = user.partition(":")
    if scheme.lower() in ("http", "https") or (password and not user.startswith("anonymous:")):
        return user
    return None


def query_of(href: str) -> str:
    """The raw query, without its question mark."""
    return href.partition("#")[0].partition("?")[2]


def is_cut(query: str) -> bool:
    """Tells whether a raw query has more parameters than are read of it."""
    return query.count("&") >= PARAMETERS_MAX


def query_items(query: str) -> Iterator[tuple[str, str]]:
    """(decoded name, raw value) of each parameter of a raw query."""
    for part in query.split("&", PARAMETERS_MAX)[:PARAMETERS_MAX]:
        name, _, value = part.partition("=")
        if name:
            yield unquote_plus(name), value


def without_parameters(href: str, names: frozenset[str]) -> str:
    """The href without the query parameters of these (decoded) names."""
    before, hash_, fragment = href.partition("#")
    path, _, query = before.partition("?")
    kept = [part for part in query.split("&") if unquote_plus(part.partition("=")[0]) not in names]
    return f"{path}{'?' if kept else ''}{'&'.join(kept)}{hash_}{fragment}"


def is_placeholder(value: str) -> bool:
    """Tells whether a raw value stands for one that the reader has to put in."""
    if len(value) > PLACEHOLDER_LENGTH_MAX:
        return False
    return _PLACEHOLDER.fullmatch(unquote(value)) is not None


# Longer values are not there to be replaced.
PLACEHOLDER_LENGTH_MAX = 100
_PLACEHOLDER = re.compile(
    r"""(?ix)
    | \{+[^{}]*\}+ | \$\{?\w+\}? | <[^<>]*> | %\w+% | \[[^\[\]]*\] | :\w+
    | (?:your|my|insert|enter|put|add|replace|some|the)[\W_].* | your\w*
    | [x*.…•?_-]+ | .*(?:change|replace)_?me.*
    | (?:\w+[_-])?(?:placeholder|redacted|secret|token|key)
    | example.* | api_?key | (?:access|auth)_?token | todo | tbd | null | none | undefined
    """
)


def shown_url(text: str) -> str:
    """A URL for a message: scheme, host and path. User, query and fragment stay out."""
    href, query, _ = text.partition("?")
    href = href.partition("#")[0]
    origin = origin_of(href)
    if "@" in origin:
        scheme, _, authority = origin.partition("://")
        href = f"{scheme}://{authority.rpartition('@')[2]}{href[len(origin) :]}"
    return shown(f"{href}?…" if query else href)
