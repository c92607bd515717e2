"""X: secrets in schemes (part C). What is found is hidden, as in `leaking_urls`.

What a secret looks like is not said here but in `registries/secret_shapes.py`.
"""

from collections.abc import Iterator

from tollgate.serve.catalog_auth.document.document import Parameter, Scheme
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.shown_values import redacted, shown
from tollgate.serve.catalog_auth.document.urls import PARAMETERS_MAX, is_cut, query_of
from tollgate.serve.catalog_auth.registries.secret_shapes import (
    TEXT_LENGTH_MAX,
    Secret,
    find_in_query,
    find_secrets,
    has_mark,
    is_secret_name,
    looks_random,
)
from tollgate.serve.catalog_auth.rules.examples.items import protected_item, query_parameter, signed
from tollgate.serve.catalog_auth.rules.exposure.leaking_urls import told
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity, suggestion
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject
from tollgate.serve.catalog_auth.rules.schemes.endpoints import endpoints_of

# The members of a parameter's schema that hold values.
_VALUES = ("default", "const", "example", "examples")
# A document is walked so deep, and so much of a scheme.
DEPTH_MAX = 32
TEXTS_MAX = 10_000
_CUT = (
    f"of a scheme, {TEXTS_MAX:,} values are searched for secrets, {DEPTH_MAX} levels deep, and "
    f"{TEXT_LENGTH_MAX:,} characters of each"
)

_EXAMPLE_JWT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJleGFtcGxlIn0.c2lnbmF0dXJl"


def _scheme_has_no_token(scheme: Scheme, report: FindingReport) -> None:
    for path, url in endpoints_of(scheme):
        if is_cut(url):
            report.leave_out(f"of a query, the first {PARAMETERS_MAX} parameters are read")
        for name, secret in find_in_query(query_of(url)) if "?" in url else ():
            report.hide(secret.value)
            if not find_secrets(secret.value):  # (those are told below)
                report.add(path, told(name, secret))
    if not _may_have_secret(scheme.value, DEPTH_MAX):
        return
    for path, text in _texts(scheme.value, scheme.path, report):
        secrets = find_secrets(text)
        for secret in secrets:
            report.hide(secret.value)
        if secrets:
            first = secrets[0]
            report.add(path, f"this looks like {first.what}: {redacted(first.value)}")


def _may_have_secret(value: object, depth: int) -> bool:
    """Tells whether a text below has the mark of a token, or is out of sight: no paths are made to
    find out."""
    if isinstance(value, str):
        return has_mark(value)
    if not isinstance(value, dict | list) or not depth:
        return bool(value) and not depth
    inner = value.values() if isinstance(value, dict) else value
    return any(_may_have_secret(each, depth - 1) for each in inner)


def _texts(value: object, path: Path, report: FindingReport) -> Iterator[tuple[Path, str]]:
    """All texts below, but for the schemas of parameters, which have a rule of their own."""
    rest: list[tuple[Path, object]] = [(path, value)]
    left = TEXTS_MAX
    while rest and left:
        left -= 1
        here, inner = rest.pop()
        if isinstance(inner, str):
            if len(inner) > TEXT_LENGTH_MAX:
                report.leave_out(_CUT)
            yield here, inner
        elif isinstance(inner, dict | list) and len(here) >= DEPTH_MAX:
            report.leave_out(_CUT)
        elif isinstance(inner, dict):
            is_parameter = len(here) > 2 and here[-2] == "parameters"
            rest += [
                ((*here, name), each)
                for name, each in inner.items()
                if isinstance(each, str | dict | list) and not (is_parameter and name == "schema")
            ]
        elif isinstance(inner, list):
            rest += [((*here, index), each) for index, each in enumerate(inner)]
    if rest:
        report.leave_out(_CUT)


def _parameter_has_no_secret(parameter: Parameter, report: FindingReport) -> None:
    schema = parameter.value.get("schema")
    if not isinstance(schema, dict):
        return
    is_secret = is_secret_name(parameter.name) or parameter.name.lower() == "authorization"
    for name in _VALUES:
        if name not in schema:
            continue
        path = (*parameter.path, "schema", name)
        found: list[Secret] = []
        for _, text in _texts(schema[name], (), report):
            is_named = is_secret and looks_random(text)
            found += find_secrets(text) or ([Secret("a secret", text)] if is_named else [])
        for secret in found:
            report.hide(secret.value)
        if found:
            report.add(
                path,
                f"the {name} of {shown(parameter.name)} looks like {found[0].what}: "
                f"{redacted(found[0].value)}",
                suggestions=suggestion(f"remove the {name}", Operation("remove", path)),
            )


RULES = (
    CatalogRule(
        id="X03",
        name="token-published",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        says="There is a token or a key in the description of a scheme.",
        why="Everybody who reads the document has it.",
        source=(
            "Authentication extension, Authentication Scheme Object: it describes how "
            "to get access; credentials stay with clients."
        ),
        repair="Remove it, and revoke it where it is from.",
        check=_scheme_has_no_token,
        example=protected_item(
            {"type": "http", "scheme": "bearer", "description": f"Use {_EXAMPLE_JWT}"}
        ),
    ),
    CatalogRule(
        id="X04",
        name="secret-as-default",
        severity=Severity.ERROR,
        subject=Subject.PARAMETER,
        types=frozenset({"signedUrl"}),
        says="The default or the example of a parameter is a secret.",
        why="Everybody who reads the document has it, and clients send it for everybody.",
        source=(
            "Authentication extension, Authentication Scheme Object: it describes how "
            "to get access; credentials stay with clients."
        ),
        repair="Remove it, and revoke it where it is from.",
        check=_parameter_has_no_secret,
        example=protected_item(
            signed(
                {
                    "href": query_parameter(),
                    "token": query_parameter(schema={"type": "string", "default": _EXAMPLE_JWT}),
                }
            )
        ),
    ),
)
