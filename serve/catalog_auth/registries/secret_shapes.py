"""Shapes of secrets: those of well-known tokens, names that secrets go by in queries, and
the marks of presigned URLs. Data, with the functions that read it.

A shape counts only with its mark (`ghp_`, `AKIA`, `eyJ`), never for mere randomness: file names,
checksums and identifiers in catalogs are random too. A name counts only with a value that is
neither empty, nor a placeholder, nor a plain word.
"""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from tollgate.serve.catalog_auth.document.urls import is_placeholder, query_items

# Longer texts are searched up to here.
TEXT_LENGTH_MAX = 65_536


@dataclass(frozen=True, slots=True)
class Secret:
    """Something that should not be published: the words it is called by, and itself."""

    what: str
    value: str


# Each begins with a mark of its own, so that one look at a text rules out nearly all of them. A
# mark holds a character that the rest of its shape does not, or the shape's end is reached at once:
# no text makes a search go over the same characters from many beginnings.
_SHAPES: Mapping[str, tuple[str, str]] = {
    "aws": ("an AWS access key id", r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    "github": ("a GitHub token", r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})"),
    "gitlab": ("a GitLab token", r"glpat-[\w-]{20,}"),
    "slack": ("a Slack token", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    "stripe": ("a Stripe key", r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    "google": ("a Google API key", r"AIza[\w-]{35}(?![\w-])"),
    "google_client": ("a Google client secret", r"GOCSPX-[\w-]{20,}"),
    "mapbox": ("a secret Mapbox token", r"sk\.eyJ[\w-]{20,}\.[\w-]{10,}"),
    "sendgrid": ("a SendGrid key", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    "npm": ("an npm token", r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    "hugging_face": ("a Hugging Face token", r"hf_[A-Za-z]{34}(?![A-Za-z])"),
    "azure": ("an Azure account key", r"AccountKey=[A-Za-z0-9+/]{40,}={0,2}"),
    "pem": ("a private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[^-]*"),
}
_MARKS = re.compile(
    r"eyJ|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|[sr]k_(?:live|test)_|AIza|GOCSPX-"
    r"|SG\.|npm_|hf_|AccountKey=|-----BEGIN "
)
_ANY_SHAPE = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    + "|".join(f"(?P<{name}>{pattern})" for name, (_, pattern) in _SHAPES.items())
    + ")"
)
# A JSON Web Token may begin at any of its own characters. It is looked for from where such a run
# begins, up to the first mark in it: if that is none, no later one of the same run is.
_JWT = re.compile(
    r"(?<![\w-])(?:(?!(?<![A-Za-z0-9])eyJ)[\w-])*+"
    r"(?P<token>eyJ[\w-]{5,}+\.eyJ[\w-]{5,}+\.[\w-]*+)"
)

# Keys that their makers mean to be published, in maps and pages: Mapbox, Stripe.
_PUBLIC = re.compile(r"pk\.eyJ[\w-]{20,}\.[\w-]{10,}|pk_(?:live|test)_[A-Za-z0-9]{10,}")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names that say by themselves that the value is a secret …
_SECRET_NAMES = _names(
    """
    access_token accesstoken api_key api_token apikey apitoken app_key auth_token authtoken bearer
    bearer_token client_secret id_token jwt oauth_token pass passwd password private_token pwd
    refresh_token sas_token secret secret_key session_token subscription_key token x_api_key
    """
)
# … and names that go by other meanings as well: these want a value that looks random.
_DOUBTFUL_NAMES = _names(
    "auth authorization code credential credentials key passphrase sid sig signature"
)
_PLAIN_WORDS = _names("anonymous anon default demo false free guest public sample test true user")
SECRET_LENGTH_MIN = 6
RANDOM_LENGTH_MIN = 16

# What presigned URLs have in their queries, in lower case: they open their object for everybody.
_AWS_4 = "x-amz-algorithm x-amz-credential x-amz-date x-amz-expires x-amz-signedheaders"
_GOOGLE_4 = "x-goog-algorithm x-goog-credential x-goog-date x-goog-expires x-goog-signedheaders"
_AZURE = "se st sp sv sr spr sip si srt ss skoid sktid skt ske sks skv sdd ses rscc rscd rsce rscl"


@dataclass(frozen=True, slots=True)
class Presigning:
    """A way to sign URLs. `marks` are all in such a query and, if `one_of` has any, one of those;
    `secrets` are the parameters that open the door, `rest` those without use when it is shut."""

    what: str
    marks: frozenset[str]
    one_of: frozenset[str]
    secrets: frozenset[str]
    rest: frozenset[str]


def _presigning(what: str, marks: str, one_of: str, secrets: str, rest: str) -> Presigning:
    return Presigning(
        what, _names(marks), _names(one_of), _names(f"{marks} {secrets}"), _names(rest)
    )


PRESIGNINGS = (
    _presigning("AWS (signature version 4)", "x-amz-signature", "", "x-amz-security-token", _AWS_4),
    _presigning(
        "AWS (signature version 2)",
        "awsaccesskeyid signature",
        "",
        "x-amz-security-token",
        "expires",
    ),
    _presigning("Google Cloud Storage", "x-goog-signature", "", "", _GOOGLE_4),
    _presigning("Google Cloud Storage (V2)", "googleaccessid signature", "", "", "expires"),
    _presigning("Azure (shared access signature)", "sig", "se st sp", "", _AZURE),
    _presigning("CloudFront", "key-pair-id", "", "signature policy", "expires hash-algorithm"),
)
_PRESIGNED = re.compile(
    r"(?i)(?:^|[&?])(?:x-amz-signature|x-goog-signature|signature|sig|key-pair-id)="
)


def has_mark(text: str) -> bool:
    """Tells whether a text may have a well-known secret inside, or is longer than is searched."""
    return len(text) > TEXT_LENGTH_MAX or _MARKS.search(text) is not None


def find_secrets(text: str) -> list[Secret]:
    """The well-known secrets inside a text, in order; of two that overlap, the first."""
    secrets = []
    end = 0
    for start, stop, what in secret_spans(text):
        if start >= end:
            secrets.append(Secret(what, text[start:stop]))
            end = stop
    return secrets


def secret_spans(text: str) -> list[tuple[int, int, str]]:
    """(start, end, words it is called by) of the well-known secrets inside a text, in order of
    their starts. A JSON Web Token and another shape may overlap."""
    if not has_mark(text):
        return []
    spans = [
        (found.start(), found.end(), _SHAPES[found.lastgroup or ""][0])
        for found in _ANY_SHAPE.finditer(text, 0, TEXT_LENGTH_MAX)
    ]
    spans += [
        (*found.span("token"), "a JSON Web Token")
        for found in _JWT.finditer(text, 0, TEXT_LENGTH_MAX)
    ]
    return sorted(spans)


def is_public_key(value: str) -> bool:
    """Tells whether a value is a key that is public by design, whatever its name."""
    return value.startswith("pk") and _PUBLIC.fullmatch(value) is not None


def is_secret_name(name: str) -> bool:
    """Tells whether a value of this name is a secret, whatever it looks like."""
    return _plain(name) in _SECRET_NAMES


def secret_named(name: str, value: str) -> bool:
    """Tells whether a value is a secret because of its name; `value` as it is written in a URL."""
    if is_public_key(value):
        return False
    plain = _plain(name)
    if plain in _SECRET_NAMES:
        word = value.lower()
        return (
            len(value) >= SECRET_LENGTH_MIN
            and word not in _PLAIN_WORDS
            and not is_placeholder(value)
        )
    return plain in _DOUBTFUL_NAMES and looks_random(value)


def looks_random(value: str) -> bool:
    """Tells whether a text looks made by chance: long, one piece, letters and digits, no
    placeholder."""
    return (
        len(value) >= RANDOM_LENGTH_MIN
        and _RANDOM.fullmatch(value) is not None
        and any(c.isdigit() for c in value)
        and any(c.isalpha() for c in value)
        and not is_placeholder(value)
    )


_RANDOM = re.compile(r"[A-Za-z0-9+/_=~%-]+")


def find_presigning(query: str) -> Presigning | None:
    """The way in which the URL of this raw query was signed; None when it was not."""
    if _PRESIGNED.search(query) is None:
        return None
    names = {name.lower() for name, value in query_items(query) if value}
    for presigning in PRESIGNINGS:
        if presigning.marks <= names and (not presigning.one_of or presigning.one_of & names):
            return presigning
    return None


def find_in_query(query: str, except_for: Container[str] = ()) -> Iterator[tuple[str, Secret]]:
    """(name, secret) of the parameters of a raw query that carry one."""
    for name, value in query_items(query):
        if name in except_for or not value:
            continue
        if secrets := find_secrets(value):
            yield from ((name, secret) for secret in secrets)
        elif secret_named(name, value):
            yield name, Secret("a secret", value)


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")
