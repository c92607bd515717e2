"""The rows about catalog auth: its processes, its bounds, crawling, and signing.

A field is a row of the table (`serve/settings/__init__.py` says how to add one).
"""
# ruff: noqa: RUF009  (`setting` makes a dataclass field, not a default that is computed once)

import re
from dataclasses import dataclass

from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import Profile
from tollgate.serve.settings.rows import hidden, setting
from tollgate.serve.settings.values import (
    BadValueError,
    Pairs,
    boolean,
    duration,
    one_of,
    pairs,
    text,
    whole_number,
    words,
)

MEBIBYTE = 1024 * 1024
BYTES_MAX = 2**31 - 1
KEY_LENGTH_MIN = 16
ANY_ORIGIN = "*"
SEVERITIES = (*reversed(Severity), "off")
_RULE_ID = re.compile(r"[A-Z]\d\d")
_PUBLIC_URL = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")
_ORIGIN = re.compile(r"https?://[^\s/?#@*]+")


def rule_severities(value: str) -> Pairs:
    """`R04=off,H04=error`: severities in the place of the rules' own."""
    found = pairs("=")(value)
    for rule, severity in found:
        if not _RULE_ID.fullmatch(rule) or severity not in SEVERITIES:
            raise BadValueError(f"is not written RULE={'|'.join(SEVERITIES)}, as in R04=off")
    return found


def public_url(value: str) -> str:
    """The address of the service as callers know it, without a slash at its end; or empty."""
    if value and not _PUBLIC_URL.fullmatch(value):
        raise BadValueError("is not an address such as https://example.com/catalog-auth")
    return value.rstrip("/")


def named_origins(value: str) -> tuple[str, ...]:
    """Origins as browsers write them: scheme, host, and the port where it is an unusual one."""
    found = tuple(origin.lower() for origin in words(value))
    if not all(_ORIGIN.fullmatch(origin) for origin in found):
        raise BadValueError("has an item that is no origin such as https://example.com")
    return found


def origins(value: str) -> tuple[str, ...]:
    """The same, or `*` for all that there are."""
    return (ANY_ORIGIN,) if value == ANY_ORIGIN else named_origins(value)


def signing_keys(value: str) -> tuple[str, ...]:
    """Keys that cannot be guessed."""
    found = words(value)
    if any(len(key) < KEY_LENGTH_MIN for key in found):
        raise BadValueError(f"has a key of fewer than {KEY_LENGTH_MIN} characters")
    return found


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """The processes of the catalog-auth service, their bounds and their rules."""

    is_on: bool = setting("CATALOG_ENABLED", boolean, "true", "serve catalog auth")
    replicas: int = setting(
        "CATALOG_REPLICAS", whole_number(1, 64), "1", "processes that answer catalog auth"
    )
    document_bytes_max: int = setting(
        "CATALOG_DOCUMENT_BYTES_MAX",
        whole_number(1_024, BYTES_MAX),
        str(8 * MEBIBYTE),
        "bytes of a body, and of a line of a bulk call, without compression",
    )
    bulk_calls_max: int = setting(
        "CATALOG_BULK_CALLS_MAX",
        whole_number(1, 1_024),
        "8",
        "bulk calls and crawls that a process answers at the same time",
    )
    profile: Profile = setting(
        "CATALOG_PROFILE",
        one_of({profile.value: profile for profile in Profile}),
        "default",
        "profile of calls that name none",
    )
    severities: Pairs = setting(
        "CATALOG_RULES",
        rule_severities,
        "",
        "severities other than the rules' own, as R04=off,H04=error",
    )
    public_url: str = setting(
        "CATALOG_PUBLIC_URL",
        public_url,
        "",
        "address of the service for callers, in what it says of itself; empty: a path alone",
    )
    origins: tuple[str, ...] = setting(
        "CATALOG_ORIGINS",
        origins,
        ANY_ORIGIN,
        "origins whose pages may call what only reads, with commas between them; *: all",
    )
    trusted_origins: tuple[str, ...] = setting(
        "CATALOG_TRUSTED_ORIGINS",
        named_origins,
        "",
        "origins whose pages may also have URLs signed and catalogs crawled",
    )
    signing: str = setting(
        "CATALOG_SIGNING",
        text,
        "",
        "file that says which objects are signed for whom; empty: nothing is signed",
    )
    signing_keys: tuple[str, ...] = setting(
        "CATALOG_SIGNING_KEYS",
        signing_keys,
        "",
        "keys of the callers for whom is signed, with commas between them",
        show=hidden,
    )


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """Following the links of a catalog (docs/catalog-auth.md, part D)."""

    is_on: bool = setting("CATALOG_CRAWL", boolean, "false", "follow the links of catalogs")
    allows_http: bool = setting(
        "CATALOG_CRAWL_ALLOW_HTTP", boolean, "false", "catalogs may be without https"
    )
    allows_private: bool = setting(
        "CATALOG_CRAWL_ALLOW_PRIVATE", boolean, "false", "catalogs may be at private addresses"
    )
    documents_max: int = setting(
        "CATALOG_CRAWL_DOCUMENTS_MAX", whole_number(1, 1_000_000), "1000", "documents of a crawl"
    )
    depth_max: int = setting(
        "CATALOG_CRAWL_DEPTH_MAX", whole_number(0, 100), "8", "links from the first document"
    )
    bytes_max: int = setting(
        "CATALOG_CRAWL_BYTES_MAX",
        whole_number(1_024, BYTES_MAX),
        str(256 * MEBIBYTE),
        "bytes that a crawl fetches in all",
    )
    duration_max_s: float = setting(
        "CATALOG_CRAWL_TIMEOUT", duration("1s", "1h"), "2m", "longest time of a crawl"
    )
    fetch_timeout_s: float = setting(
        "CATALOG_CRAWL_FETCH_TIMEOUT", duration("100ms", "5m"), "10s", "longest wait for a document"
    )
