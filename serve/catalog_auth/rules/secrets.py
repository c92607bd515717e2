"""X: secrets that stand in a document (part C).

What is found here is hidden from the messages of all rules (`Report.hide`); these rules run even
when nobody wants their findings.
"""

from collections.abc import Iterator

from serve.catalog_auth.document import Access, Document, Parameter, Scheme
from serve.catalog_auth.findings import (
    REDACTED_LENGTH,
    Operation,
    Path,
    Severity,
    redacted,
    shown,
)
from serve.catalog_auth.registries.secret_shapes import (
    Presigning,
    Secret,
    find_in_query,
    find_presigning,
    find_secrets,
    has_mark,
    is_secret_name,
    looks_random,
)
from serve.catalog_auth.rule import Report, Rule, Subject
from serve.catalog_auth.rules.api_key import key_parameters
from serve.catalog_auth.rules.endpoints import endpoints_of
from serve.catalog_auth.rules.protected_items import (
    client_credentials,
    item,
    query_parameter,
    signed,
)
from serve.catalog_auth.urls import (
    is_placeholder,
    origin_of,
    query_items,
    query_of,
    user_of,
    without_parameters,
)

# The members of a parameter's schema that hold values.
_VALUES = ("default", "const", "example", "examples")
# A document is walked so deep, and so much of a scheme.
DEPTH_MAX = 32
TEXTS_MAX = 10_000

_EXAMPLE_JWT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJleGFtcGxlIn0.c2lnbmF0dXJl"


def _href_is_unsigned(access: Access, report: Report) -> None:
    if "?" not in access.href:
        return
    query = query_of(access.href)
    presigning = find_presigning(query)
    if presigning is None:
        return
    signature = _hidden_signature(query, presigning, report)
    names = {name for name, _ in query_items(query)}
    dropped = frozenset(n for n in names if n.lower() in presigning.secrets | presigning.rest)
    rest = without_parameters(access.href, dropped)
    for holder in access.holders:
        path = (*holder.path, "href")
        report.add(
            path,
            f"the href is presigned for {presigning.what}: {redacted(signature)} lets "
            f"everybody in until it expires, and nobody afterwards",
            (Operation("replace", path, rest),),
        )


def _hidden_signature(query: str, presigning: Presigning, report: Report) -> str:
    """Hides what opens the door; the signature itself."""
    signature = ""
    for name, value in query_items(query):
        if name.lower() in presigning.secrets:
            report.hide(value)
            if "sig" in name.lower() or not signature:
                signature = value
    return signature


def _urls_have_no_user(document: Document, report: Report) -> None:
    for access in document.accesses:
        if "@" in access.href and user_of(origin_of(access.href)) is not None:
            for holder in access.holders:
                _check_user((*holder.path, "href"), holder.href or "", report)
    for scheme in document.schemes:
        for path, url in endpoints_of(scheme):
            if "@" in url:
                _check_user(path, url, report)


def _check_user(path: Path, url: str, report: Report) -> None:
    origin = origin_of(url)
    user = user_of(origin)
    if user is None:
        return
    name, colon, password = user.partition(":")
    if is_placeholder(password or name):
        return
    for secret in (user, password if colon else name):
        # (a shorter text is part of everything, and would be hidden everywhere)
        if len(secret) > REDACTED_LENGTH:
            report.hide(secret)
    scheme, _, authority = origin.partition("://")
    rest = f"{scheme}://{authority.rpartition('@')[2]}{url[len(origin) :]}"
    what = "a password" if password else "a user"
    report.add(
        path,
        f"the URL has {what} in it: {redacted(password or name)}",
        (Operation("replace", path, rest),),
    )


def _scheme_has_no_token(scheme: Scheme, report: Report) -> None:
    for path, url in endpoints_of(scheme):
        for name, secret in find_in_query(query_of(url)) if "?" in url else ():
            report.hide(secret.value)
            if not find_secrets(secret.value):  # (those are told below)
                report.add(path, _told(name, secret))
    if not _may_have_secret(scheme.value, DEPTH_MAX):
        return
    for path, text in _texts(scheme.value, scheme.path):
        secrets = find_secrets(text)
        for secret in secrets:
            report.hide(secret.value)
        if secrets:
            first = secrets[0]
            report.add(path, f"this looks like {first.what}: {redacted(first.value)}")


def _may_have_secret(value: object, depth: int) -> bool:
    """Whether any text below has the mark of a token: no paths are made to find out."""
    if isinstance(value, str):
        return has_mark(value)
    if not isinstance(value, dict | list) or not depth:
        return False
    inner = value.values() if isinstance(value, dict) else value
    return any(_may_have_secret(each, depth - 1) for each in inner)


def _texts(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    """All texts below, but for the schemas of parameters, which have a rule of their own."""
    rest: list[tuple[Path, object]] = [(path, value)]
    left = TEXTS_MAX
    while rest and left:
        left -= 1
        here, inner = rest.pop()
        if isinstance(inner, str):
            yield here, inner
        elif isinstance(inner, dict):
            is_parameter = len(here) > 2 and here[-2] == "parameters"
            rest += [
                ((*here, name), each)
                for name, each in inner.items()
                if isinstance(each, str | dict | list)
                and not (is_parameter and name == "schema")
                and len(here) < DEPTH_MAX
            ]
        elif isinstance(inner, list) and len(here) < DEPTH_MAX:
            rest += [((*here, index), each) for index, each in enumerate(inner)]


def _parameter_has_no_secret(parameter: Parameter, report: Report) -> None:
    schema = parameter.value.get("schema")
    if not isinstance(schema, dict):
        return
    is_secret = is_secret_name(parameter.name) or parameter.name.lower() == "authorization"
    for name in _VALUES:
        if name not in schema:
            continue
        path = (*parameter.path, "schema", name)
        found: list[Secret] = []
        for _, text in _texts(schema[name], ()):
            is_named = is_secret and looks_random(text)
            found += find_secrets(text) or ([Secret("a secret", text)] if is_named else [])
        for secret in found:
            report.hide(secret.value)
        if found:
            report.add(
                path,
                f"the {name} of {shown(parameter.name)} looks like {found[0].what}: "
                f"{redacted(found[0].value)}",
                (Operation("remove", path),),
            )


def _query_has_no_secret(access: Access, report: Report) -> None:
    if "?" not in access.href:
        return
    query = query_of(access.href)
    if find_presigning(query) is not None:
        return  # (X01 has said so)
    keys = key_parameters(access)  # (K05 speaks of those, if anybody listens)
    for name, value in query_items(query):
        if name in keys:
            report.hide(value)
    found = list(find_in_query(query, keys))
    for _, secret in found:
        report.hide(secret.value)
    for holder in access.holders if found else ():
        report.add((*holder.path, "href"), _told(*found[0]))


def _told(name: str, secret: Secret) -> str:
    return (
        f"the value of {shown(name)} in the query looks like {secret.what}: "
        f"{redacted(secret.value)}"
    )


RULES = (
    Rule(
        id="X01",
        name="presigned-url-published",
        severity=Severity.ERROR,
        subject=Subject.ACCESS,
        says="An href is a presigned URL.",
        why="It lets everybody in until it expires, and nobody afterwards.",
        source="AWS Signature Version 4 (query parameters) and its like: whoever has the URL has "
        "the access.",
        repair="Publish the plain URL, and describe how to get a signed one with signedUrl.",
        check=_href_is_unsigned,
        example=item(
            {"type": "s3"},
            "https://bucket.s3.us-west-2.amazonaws.com/scene.tif?X-Amz-Algorithm=AWS4-HMAC-SHA256"
            "&X-Amz-Expires=300&X-Amz-SignedHeaders=host&X-Amz-Signature=0123456789abcdef",
        ),
    ),
    Rule(
        id="X02",
        name="credentials-in-url",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="A URL has a user or a password in it.",
        why="Everybody who reads the document has them.",
        source="RFC 3986, 3.2.1 and 7.5; RFC 9110, 4.2.4.",
        repair="Remove them from the URL, change the password, and describe the login as a scheme.",
        check=_urls_have_no_user,
        example=item(client_credentials(tokenUrl="https://client:pa55word@login.example.com/")),
    ),
    Rule(
        id="X03",
        name="token-published",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        says="There is a token or a key in the description of a scheme.",
        why="Everybody who reads the document has it.",
        source="Requirements: schemes describe how to get access; credentials stay with clients.",
        repair="Remove it, and revoke it where it is from.",
        check=_scheme_has_no_token,
        example=item({"type": "http", "scheme": "bearer", "description": f"Use {_EXAMPLE_JWT}"}),
    ),
    Rule(
        id="X04",
        name="secret-as-default",
        severity=Severity.ERROR,
        subject=Subject.PARAMETER,
        types=frozenset({"signedUrl"}),
        says="The default or the example of a parameter is a secret.",
        why="Everybody who reads the document has it, and clients send it for everybody.",
        source="Requirements: schemes describe how to get access; credentials stay with clients.",
        repair="Remove it, and revoke it where it is from.",
        check=_parameter_has_no_secret,
        example=item(
            signed(
                {
                    "href": query_parameter(),
                    "token": query_parameter(schema={"type": "string", "default": _EXAMPLE_JWT}),
                }
            )
        ),
    ),
    Rule(
        id="X05",
        name="secret-in-query",
        severity=Severity.WARNING,
        subject=Subject.ACCESS,
        says="The query of an href has a value that looks like a secret.",
        why="Everybody who reads the document has it; it stands in logs, too.",
        source="RFC 9700, 4.3.2; RFC 6750, 5.3.",
        repair="Remove it from the href, and describe it as a scheme of type apiKey.",
        check=_query_has_no_secret,
        example=item(
            {"type": "s3"},
            "https://tiles.example.com/5/1/2.png?access_token=0123456789abcdef",
            has_refs=False,
        ),
    ),
)
