"""K: API keys, where they are sent and where they leak (part C)."""

from tollgate.serve.catalog_auth.document.document import AccessGroup, Scheme
from tollgate.serve.catalog_auth.document.shown_values import redacted, shown
from tollgate.serve.catalog_auth.document.urls import (
    is_placeholder,
    query_items,
    query_of,
    without_parameters,
)
from tollgate.serve.catalog_auth.registries.http_schemes import is_token
from tollgate.serve.catalog_auth.rules.examples.items import protected_item
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity, suggestion
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject

_API_KEY = frozenset({"apiKey"})
PLACES = ("query", "header", "cookie")


def key_parameters(access: AccessGroup) -> dict[str, Scheme]:
    """The query parameters that carry an API key to this access, each with its scheme."""
    found: dict[str, Scheme] = {}
    if access.references is not None:
        for scheme in access.references.schemes:
            name = scheme.value.get("name")
            is_in_query = scheme.type == "apiKey" and scheme.value.get("in") == "query"
            if is_in_query and isinstance(name, str) and name:
                found[name] = scheme
    return found


def _place_is_known(scheme: Scheme, report: FindingReport) -> None:
    place = scheme.value.get("in")
    if not isinstance(place, str) or place in PLACES:
        return
    path = (*scheme.path, "in")
    usual = place.strip().lower()
    fix = (Operation("replace", path, usual),) if usual in PLACES else None
    hint = f"{usual} is meant" if fix else f"a key is sent in a {', '.join(PLACES[:2])} or cookie"
    report.add(path, f"{shown(place)} is no place for a key: {hint}", fix)


def _name_can_be_sent(scheme: Scheme, report: FindingReport) -> None:
    name, place = scheme.value.get("name"), scheme.value.get("in")
    if not isinstance(name, str):
        return
    path = (*scheme.path, "name")
    if not name:
        report.add(path, "the name is empty: nobody can send a key under it")
    elif isinstance(place, str) and place in ("header", "cookie") and not is_token(name):
        report.add(path, f"{shown(name)} cannot be the name of a {place}")


def _is_not_authorization(scheme: Scheme, report: FindingReport) -> None:
    name = scheme.value.get("name")
    is_header = scheme.value.get("in") == "header"
    if is_header and isinstance(name, str) and name.lower() == "authorization":
        report.add(
            (*scheme.path, "name"),
            f"the header {shown(name)} is that of HTTP authentication: without a scheme's name in "
            f"front, servers and proxies cannot read it",
        )


def _is_not_in_query(scheme: Scheme, report: FindingReport) -> None:
    if scheme.value.get("in") == "query":
        report.add(
            (*scheme.path, "in"),
            "a key in the query stands in the logs of every server and proxy on the way",
        )


def _is_not_filled_in(access: AccessGroup, report: FindingReport) -> None:
    if "?" not in access.href:
        return
    schemes = key_parameters(access)
    if not schemes:
        return
    for name, value in query_items(query_of(access.href)):
        if name not in schemes or not value or is_placeholder(value):
            continue
        report.hide(value)
        for holder in access.holders:
            path = (*holder.path, "href")
            rest = without_parameters(access.href, frozenset({name}))
            report.add(
                path,
                f"the key {redacted(value)} of {shown(schemes[name].name)} stands in the href, as "
                f"the value of {shown(name)}",
                suggestions=suggestion(
                    "take the key out of the href", Operation("replace", path, rest)
                ),
            )


RULES = (
    CatalogRule(
        id="K01",
        name="api-key-place-unknown",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        types=_API_KEY,
        says="The place of the key is neither query nor header nor cookie.",
        why="Clients cannot know where to put it.",
        source=(
            "Authentication extension, Authentication Scheme Object: `in` is `query`, "
            "`header` or `cookie`."
        ),
        repair="Write one of the three, in lower case.",
        check=_place_is_known,
        example=protected_item({"type": "apiKey", "in": "Header", "name": "X-API-Key"}),
    ),
    CatalogRule(
        id="K02",
        name="api-key-name-unusable",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        types=_API_KEY,
        says="The key is to be sent under a name that is empty, or no header or cookie can have.",
        why="Clients cannot send it.",
        source="RFC 9110, 5.1 and RFC 6265, 4.1.1: names of headers and cookies are tokens.",
        repair="Write the name as the server expects it.",
        check=_name_can_be_sent,
        example=protected_item({"type": "apiKey", "in": "header", "name": "API key"}),
    ),
    CatalogRule(
        id="K03",
        name="api-key-in-authorization",
        severity=Severity.WARNING,
        subject=Subject.SCHEME,
        types=_API_KEY,
        says="The key is sent in the header Authorization, as it is.",
        why="That header begins with the name of an HTTP authentication scheme.",
        source="RFC 9110, 11.6.2.",
        repair='Describe it with "type": "http" and the scheme, such as bearer.',
        check=_is_not_authorization,
        example=protected_item({"type": "apiKey", "in": "header", "name": "Authorization"}),
    ),
    CatalogRule(
        id="K04",
        name="api-key-in-query",
        severity=Severity.INFO,
        subject=Subject.SCHEME,
        types=_API_KEY,
        says="The key is sent in the query.",
        why="URLs are logged, cached and shared; a header is not.",
        source="RFC 9700, 4.3.2, for access tokens.",
        repair="Accept the key in a header as well, and describe that.",
        check=_is_not_in_query,
        example=protected_item({"type": "apiKey", "in": "query", "name": "api_key"}),
    ),
    CatalogRule(
        id="K05",
        name="api-key-published",
        severity=Severity.ERROR,
        subject=Subject.GATED_ACCESS,
        says="The href has a key in it already, where clients would put theirs.",
        why="Everybody who reads the document has that key.",
        source=(
            "Authentication extension, Authentication Scheme Object: the client sends the key."
        ),
        repair="Remove the parameter from the href, and replace the key: it is known now.",
        check=_is_not_filled_in,
        example=protected_item(
            {"type": "apiKey", "in": "query", "name": "api_key"},
            "https://tiles.example.com/5/1/2.png?api_key=pk.0123456789",
        ),
    ),
)
