"""G: parameters of the call for a signed URL (part C)."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from tollgate.serve.catalog_auth.document.document import Parameter
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.urls import PARAMETERS_MAX, http_url, is_cut
from tollgate.serve.catalog_auth.registries.http_schemes import is_token
from tollgate.serve.catalog_auth.registries.secret_shapes import is_secret_name
from tollgate.serve.catalog_auth.rules.examples.items import protected_item, query_parameter, signed
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject

_SIGNED = frozenset({"signedUrl"})
PLACES = ("query", "header", "body")
_WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE"})
# What a client knows of the thing it wants to fetch, by plain name (letters and digits).
DERIVABLE = frozenset(
    {
        *("bucket", "container", "key", "path", "object", "href", "url", "uri"),
        *("asset", "assethref", "asseturl", "assetkey", "assetid", "assetname"),
        *("item", "itemid", "collection", "collectionid", "catalogid", "duration", "id"),
    }
)
# Fields that belong to the connection or the message, not to the caller (RFC 9110, 7.6.1 and 8.6;
# the Fetch standard's forbidden request headers).
_NOT_THE_CALLERS = frozenset(
    {
        *("connection", "keep-alive", "proxy-connection", "proxy-authenticate", "te", "trailer"),
        *("proxy-authorization", "transfer-encoding", "upgrade", "host", "content-length"),
        *("expect", "via", "date"),
    }
)


def _body_has_a_method(parameter: Parameter, report: FindingReport) -> None:
    method = parameter.flow.value.get("method")
    is_without = isinstance(method, str) and method.upper() in _WITHOUT_BODY
    if is_without and parameter.value.get("in") == "body":
        report.add(
            (*parameter.path, "in"),
            f"{shown(parameter.name)} is to be sent in the body, and {method} has none",
        )


def _place_is_known(parameter: Parameter, report: FindingReport) -> None:
    place = parameter.value.get("in")
    if not isinstance(place, str) or place in PLACES:
        return
    path = (*parameter.path, "in")
    usual = place.strip().lower()
    fix = (Operation("replace", path, usual),) if usual in PLACES else None
    hint = f"{usual} is meant" if fix else "it is one of query, header and body"
    report.add(path, f"{shown(place)} is no place for a parameter: {hint}", fix)


def _value_is_known(parameter: Parameter, report: FindingReport) -> None:
    if parameter.value.get("required") is not True:
        return
    name = "".join(c for c in parameter.name.lower() if c.isalnum())
    if name in DERIVABLE or name == "authorization" or is_secret_name(parameter.name):
        return
    schema = parameter.value.get("schema")
    if isinstance(schema, dict) and ("default" in schema or "const" in schema):
        return
    report.add(
        parameter.path,
        f"{shown(parameter.name)} is required, and a client cannot know its value by itself",
    )


def _schema_agrees_with_itself(parameter: Parameter, report: FindingReport) -> None:
    schema = parameter.value.get("schema")
    if not isinstance(schema, dict):
        return
    path = (*parameter.path, "schema")
    types = _types(schema)
    if not types:
        return
    listed = " or ".join(types)
    for name in ("default", "const"):
        if name in schema and not _is_of(schema[name], types):
            report.add((*path, name), f"the {name} {shown(schema[name])} is not of type {listed}")
    values = schema.get("enum")
    for index, value in enumerate(values if isinstance(values, list) else ()):
        if not _is_of(value, types):
            report.add((*path, "enum", index), f"{shown(value)} is not of type {listed}")


def _types(schema: Mapping[str, object]) -> tuple[str, ...]:
    """The types that a schema allows; none when it says nothing, or nothing known."""
    value = schema.get("type")
    types = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) and each in _PYTHON_TYPES for each in types):
        return ()
    return tuple(types)


_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}


def _is_of(value: object, types: tuple[str, ...]) -> bool:
    """Tells whether a value has one of these types of JSON Schema (1.0 is an integer)."""
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, float) and value.is_integer() and "integer" in types:
        return True
    return any(isinstance(value, _PYTHON_TYPES[each]) for each in types)


def _query_has_it_once(parameter: Parameter, report: FindingReport) -> None:
    api = parameter.flow.value.get("authorizationApi")
    if parameter.value.get("in") != "query" or not isinstance(api, str) or "?" not in api:
        return
    url = http_url(api)
    if url is None:
        return
    if is_cut(url.query):
        report.leave_out(f"of a query, the first {PARAMETERS_MAX} parameters are read")
    query = "&".join(url.query.split("&", PARAMETERS_MAX)[:PARAMETERS_MAX])
    if any(name == parameter.name for name, _ in parse_qsl(query, keep_blank_values=True)):
        report.add(
            parameter.path,
            f"{shown(parameter.name)} stands in the query of authorizationApi already: it would be "
            f"sent twice",
        )


def _header_can_be_set(parameter: Parameter, report: FindingReport) -> None:
    if parameter.value.get("in") != "header":
        return
    name = parameter.name
    if not is_token(name):
        report.add(parameter.path, f"{shown(name)} cannot be the name of a header")
    elif name.lower() in _NOT_THE_CALLERS:
        report.add(
            parameter.path,
            f"the header {name} belongs to the connection: clients cannot choose its value",
        )


RULES = (
    CatalogRule(
        id="G02",
        name="body-without-method",
        severity=Severity.WARNING,
        subject=Subject.PARAMETER,
        types=_SIGNED,
        says="A parameter is to be sent in the body of a request that has none.",
        why="Clients and proxies drop the body of such a request.",
        source="RFC 9110, 9.3.1, 9.3.2 and 9.3.5: content has no meaning there.",
        repair="Send it in the query, or use POST.",
        check=_body_has_a_method,
        example=protected_item(signed({"href": query_parameter(**{"in": "body"})})),
    ),
    CatalogRule(
        id="G03",
        name="parameter-place-unknown",
        severity=Severity.ERROR,
        subject=Subject.PARAMETER,
        types=_SIGNED,
        says="The place of a parameter is neither query nor header nor body.",
        why="Clients cannot know where to put it.",
        source=("Authentication extension, Parameter Object: `in` is `query`, `header` or `body`."),
        repair="Write one of the three, in lower case.",
        check=_place_is_known,
        example=protected_item(signed({"href": query_parameter(**{"in": "path"})})),
    ),
    CatalogRule(
        id="G05",
        name="parameter-not-derivable",
        severity=Severity.INFO,
        subject=Subject.PARAMETER,
        types=_SIGNED,
        says="A required parameter is none that a client can fill in by itself.",
        why="It has to ask its user.",
        source="catalog-auth.md, D: bucket and key, or href, come from the asset.",
        repair="Describe it well, give it a default, or make it optional.",
        check=_value_is_known,
        example=protected_item(signed({"href": query_parameter(), "project": query_parameter()})),
    ),
    CatalogRule(
        id="G08",
        name="parameter-schema-contradictory",
        severity=Severity.WARNING,
        subject=Subject.PARAMETER,
        types=_SIGNED,
        says="A default, const or enum of a parameter's schema is not of the schema's own type.",
        why="No value can satisfy it, or the suggested one does not.",
        source="JSON Schema draft-07 (validation), 6.1 and 10.2.",
        repair="Change the type, or the value.",
        check=_schema_agrees_with_itself,
        example=protected_item(
            signed(
                {
                    "href": query_parameter(),
                    "duration": query_parameter(schema={"type": "integer", "default": "60"}),
                }
            )
        ),
    ),
    CatalogRule(
        id="G09",
        name="parameter-sent-twice",
        severity=Severity.WARNING,
        subject=Subject.PARAMETER,
        types=_SIGNED,
        says="A query parameter stands in the query of `authorizationApi` already.",
        why="Servers differ in which of two values they take.",
        source="RFC 3986, 3.4: the query belongs to the URL as it is.",
        repair="Remove it from one of the two.",
        check=_query_has_it_once,
        example=protected_item(signed(authorizationApi="https://sign.example.com/v1?href=none")),
    ),
    CatalogRule(
        id="G11",
        name="header-not-settable",
        severity=Severity.ERROR,
        subject=Subject.PARAMETER,
        types=_SIGNED,
        says="A parameter is a header that clients cannot set, or no header at all.",
        why="Their HTTP libraries set it or refuse it.",
        source="RFC 9110, 5.1, 7.2, 7.6.1 and 8.6.",
        repair="Take another header, or the query.",
        check=_header_can_be_set,
        example=protected_item(
            signed({"href": query_parameter(), "Host": query_parameter(**{"in": "header"})})
        ),
    ),
)
