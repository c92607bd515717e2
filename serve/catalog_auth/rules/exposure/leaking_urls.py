"""X: secrets in URLs (part C): presigned ones, passwords, tokens in queries.

What is found is hidden from the messages of all rules (`FindingReport.hide`); these rules run even
when nobody wants their findings.
"""

from tollgate.serve.catalog_auth.document.document import AccessGroup, Document
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.shown_values import REDACTED_LENGTH, redacted, shown
from tollgate.serve.catalog_auth.document.urls import (
    PARAMETERS_MAX,
    is_cut,
    is_placeholder,
    origin_of,
    query_items,
    query_of,
    user_of,
    without_parameters,
)
from tollgate.serve.catalog_auth.registries.secret_shapes import (
    Presigning,
    Secret,
    find_in_query,
    find_presigning,
)
from tollgate.serve.catalog_auth.rules.examples.items import client_credentials, protected_item
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity, suggestion
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject
from tollgate.serve.catalog_auth.rules.schemes.api_key import key_parameters
from tollgate.serve.catalog_auth.rules.schemes.endpoints import endpoints_of


def told(name: str, secret: Secret) -> str:
    """A message about a parameter of a query with a secret."""
    return (
        f"the value of {shown(name)} in the query looks like {secret.what}: "
        f"{redacted(secret.value)}"
    )


def _href_is_unsigned(access: AccessGroup, report: FindingReport) -> None:
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
            suggestions=suggestion(
                "publish the URL without the signature", Operation("replace", path, rest)
            ),
        )


def _hidden_signature(query: str, presigning: Presigning, report: FindingReport) -> str:
    """Hides what opens the door; the signature itself."""
    signature = ""
    for name, value in query_items(query):
        if name.lower() in presigning.secrets:
            report.hide(value)
            if "sig" in name.lower() or not signature:
                signature = value
    return signature


def _urls_have_no_user(document: Document, report: FindingReport) -> None:
    for access in document.accesses:
        if "@" in access.href and user_of(origin_of(access.href)) is not None:
            for holder in access.holders:
                _check_user((*holder.path, "href"), holder.href or "", report)
    for scheme in document.schemes:
        for path, url in endpoints_of(scheme):
            if "@" in url:
                _check_user(path, url, report)


def _check_user(path: Path, url: str, report: FindingReport) -> None:
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
        suggestions=suggestion(f"take {what} out of the URL", Operation("replace", path, rest)),
    )


def _query_has_no_secret(access: AccessGroup, report: FindingReport) -> None:
    if "?" not in access.href:
        return
    query = query_of(access.href)
    if is_cut(query):
        report.leave_out(f"of a query, the first {PARAMETERS_MAX} parameters are read")
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
        report.add((*holder.path, "href"), told(*found[0]))


RULES = (
    CatalogRule(
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
        example=protected_item(
            {"type": "s3"},
            "https://bucket.s3.us-west-2.amazonaws.com/scene.tif?X-Amz-Algorithm=AWS4-HMAC-SHA256"
            "&X-Amz-Expires=300&X-Amz-SignedHeaders=host&X-Amz-Signature=0123456789abcdef",
        ),
    ),
    CatalogRule(
        id="X02",
        name="credentials-in-url",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="A URL has a user or a password in it.",
        why="Everybody who reads the document has them.",
        source="RFC 3986, 3.2.1 and 7.5; RFC 9110, 4.2.4.",
        repair="Remove them from the URL, change the password, and describe the login as a scheme.",
        check=_urls_have_no_user,
        example=protected_item(
            client_credentials(tokenUrl="https://client:pa55word@login.example.com/")
        ),
    ),
    CatalogRule(
        id="X05",
        name="secret-in-query",
        severity=Severity.WARNING,
        subject=Subject.ACCESS,
        says="The query of an href has a value that looks like a secret.",
        why="Everybody who reads the document has it; it stands in logs, too.",
        source="RFC 9700, 4.3.2; RFC 6750, 5.3.",
        repair="Remove it from the href, and describe it as a scheme of type apiKey.",
        check=_query_has_no_secret,
        example=protected_item(
            {"type": "s3"},
            "https://tiles.example.com/5/1/2.png?access_token=0123456789abcdef",
            has_refs=False,
        ),
    ),
)
