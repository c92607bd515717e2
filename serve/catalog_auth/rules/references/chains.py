"""R: chains, where a scheme names those that obtain its input (v1.2.0, part B2): R13 to R17.

References of a scheme are alternatives for obtaining its input; references of an asset or link are
alternatives for access. What is a sequence is the chain, never the list.
"""

from collections.abc import Mapping

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.catalog_auth.document.document import (
    REFS,
    Document,
    References,
    Scheme,
    inputs_of,
)
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, item, scene
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject

# A chain has at most so many links before it is remarked upon: log in, exchange, sign.
CHAIN_LENGTH_UNREMARKED_MAX = 3
# Schemes that put nothing into a client's hands that could be exchanged for a token.
_WITHOUT_TOKEN = ("s3", "apiKey", "signedUrl")
_HTTP_WITH_TOKEN = ("bearer", "dpop", "gnap", "oauth", "privatetoken")


def _is_exchange(scheme: Scheme) -> bool:
    flows = scheme.value.get("flows")
    return scheme.type == "oauth2" and isinstance(flows, dict) and "tokenExchange" in flows


def _input_exists(scheme: Scheme, report: FindingReport) -> None:
    document = report.document
    names = inputs_of(scheme)
    if not names and REFS in scheme.value and not isinstance(scheme.value[REFS], list):
        return  # (it is no list, which is another rule's)
    if not names and _is_exchange(scheme):
        if document.version not in (Version.V1_0_0, Version.V1_1_0):
            report.add(
                (*scheme.path, REFS),
                f"the token exchange {shown(scheme.name)} does not say which scheme the token to "
                "exchange comes from: name it in auth:refs of the scheme",
            )
        return
    by_name = report.shared(_by_name) if names else {}
    for index, name in enumerate(names):
        if name not in by_name:
            report.add(
                (*scheme.path, REFS, index),
                f"the input of {shown(scheme.name)} comes from {shown(name)}, and there is no such "
                "scheme",
            )


def _by_name(document: Document) -> Mapping[str, Scheme]:
    return {**document.inherited, **{scheme.name: scheme for scheme in document.schemes}}


def _depths(document: Document) -> tuple[Mapping[str, int], list[str]]:
    """The number of schemes to go through before each one, counting itself; and one scheme of
    each cycle. Takes no stack: chains may be long."""
    by_name = _by_name(document)
    depths: dict[str, int] = {}
    on_the_way: set[str] = set()
    cycles: list[str] = []
    for start in document.schemes:
        rest = [start.name]
        while rest:
            name = rest[-1]
            if name in depths:
                rest.pop()
                continue
            inputs = [ref for ref in inputs_of(by_name[name]) if ref in by_name]
            if name not in on_the_way:
                on_the_way.add(name)
                for ref in inputs:
                    if ref in on_the_way and ref not in depths:
                        cycles.append(name)
                        break
                rest += [ref for ref in inputs if ref not in on_the_way]
                continue
            depths[name] = 1 + max((depths.get(ref, 0) for ref in inputs), default=0)
            rest.pop()
    return depths, cycles


def _chains_end(document: Document, report: FindingReport) -> None:
    if not _has_chains(document):
        return
    by_name = _by_name(document)
    for name in report.shared(_depths)[1]:
        report.add(
            (*by_name[name].path, REFS),
            f"the input of {shown(name)} comes from itself, directly or by way of others: nobody "
            "can begin",
        )


def _chains_are_short(document: Document, report: FindingReport) -> None:
    if not _has_chains(document):
        return
    by_name = _by_name(document)
    depths, cycles = report.shared(_depths)
    if cycles:
        return
    for name, depth in depths.items():
        if depth == CHAIN_LENGTH_UNREMARKED_MAX + 1:
            report.add(
                (*by_name[name].path, REFS),
                f"before {shown(name)} a client has to go through {depth - 1} other schemes",
            )


def _has_chains(document: Document) -> bool:
    return any(REFS in scheme.value for scheme in document.schemes)


def _input_yields_a_token(scheme: Scheme, report: FindingReport) -> None:
    if REFS not in scheme.value or not _is_exchange(scheme):
        return
    by_name = report.shared(_by_name)
    for index, name in enumerate(inputs_of(scheme)):
        source = by_name.get(name)
        if source is not None and _yields_no_token(source):
            report.add(
                (*scheme.path, REFS, index),
                f"the token exchange {shown(scheme.name)} needs a token, and {shown(name)}, of "
                f"type {source.type}, yields none",
            )


def _yields_no_token(scheme: Scheme) -> bool:
    if scheme.type == "http":
        name = scheme.value.get("scheme")
        return isinstance(name, str) and name.lower() not in _HTTP_WITH_TOKEN
    return scheme.type in _WITHOUT_TOKEN


def _alternatives_are_no_sequence(references: References, report: FindingReport) -> None:
    if len(references.names) < 2:
        return
    names = set(references.names)
    for scheme in references.schemes:
        for name in inputs_of(scheme):
            if name in names and name != scheme.name:
                _report_sequence(references, name, scheme.name, report)
                return


def _report_sequence(
    references: References, first: str, second: str, report: FindingReport
) -> None:
    for holder in references.holders:
        path: Path = (*holder.path, REFS)
        report.add(
            path,
            f"{shown(first)} is what {shown(second)} begins with, and both are listed: a list "
            f"means either of them. If {shown(first)} alone is not enough, list {shown(second)} "
            "alone",
        )


def _exchange(*refs: str) -> Json:
    return {
        "type": "oauth2",
        "flows": {"tokenExchange": {"tokenUrl": "https://login.example.com/token", "scopes": {}}},
        "auth:refs": list(refs),
    }


_V1_2_0 = Version.V1_2_0

RULES = (
    CatalogRule(
        id="R13",
        name="chain-input-missing",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        says="The input of a scheme comes from a scheme that does not exist, or a token exchange "
        "says nothing of its input.",
        why="The chain has no beginning.",
        source="catalog-auth.md, B2: auth:refs of a scheme, required for tokenExchange.",
        repair="Name a scheme that exists in auth:refs of the scheme.",
        check=_input_exists,
        example=item({"x": _exchange("login")}, version=_V1_2_0),
        since=_V1_2_0,
    ),
    CatalogRule(
        id="R14",
        name="chain-cycle",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="A scheme needs itself as input.",
        why="Nobody can begin.",
        source="catalog-auth.md, B2: a chain must not be a circle.",
        repair="Take one of the references out.",
        check=_chains_end,
        example=item({"x": _exchange("y"), "y": _exchange("x")}, version=_V1_2_0),
        since=_V1_2_0,
    ),
    CatalogRule(
        id="R15",
        name="chain-input-yields-no-token",
        severity=Severity.WARNING,
        subject=Subject.SCHEME,
        types=frozenset({"oauth2"}),
        says="The input of a token exchange is a scheme without a token.",
        why="There is nothing to exchange.",
        source="RFC 8693, 2.1: subject_token is required.",
        repair="Name a scheme of type openIdConnect or oauth2.",
        check=_input_yields_a_token,
        example=item({"s3": {"type": "s3"}, "x": _exchange("s3")}, {"data": scene("x")}, _V1_2_0),
    ),
    CatalogRule(
        id="R16",
        name="identity-and-exchange-as-alternatives",
        severity=Severity.WARNING,
        subject=Subject.REFERENCES,
        says="A list of references has both a scheme and the scheme that it begins with.",
        why="Clients read it as a choice, people as a sequence.",
        source=("Authentication extension, Fields: any one of the referenced schemes may be used."),
        repair="List the last scheme of the chain alone.",
        check=_alternatives_are_no_sequence,
        example=item(
            {"login": LOGIN, "x": _exchange("login")}, {"data": scene("login", "x")}, _V1_2_0
        ),
    ),
    CatalogRule(
        id="R17",
        name="chain-deep",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says=f"A chain has more than {CHAIN_LENGTH_UNREMARKED_MAX} links.",
        why="Each one is a request that can fail, and few clients follow so far.",
        source="Tollgate's own advice (catalog-auth.md, C).",
        repair="Shorten the chain.",
        check=_chains_are_short,
        example=item(
            {"login": LOGIN, "x": _exchange("login"), "y": _exchange("x"), "z": _exchange("y")},
            {"data": scene("z")},
            _V1_2_0,
        ),
    ),
)
