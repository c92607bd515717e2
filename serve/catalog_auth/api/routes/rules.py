"""The rules, each with an example and its repair, and the versions of the extension."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from tollgate.serve.catalog_auth.api.bulk import encode_json
from tollgate.serve.catalog_auth.api.call_descriptions import JSON, OF_QUERIES, answers
from tollgate.serve.catalog_auth.api.content_negotiation import wanted_type
from tollgate.serve.catalog_auth.api.problems import NotFoundProblem
from tollgate.serve.catalog_auth.api.queries import NoQuery
from tollgate.serve.catalog_auth.api.rule_descriptions import (
    as_lines,
    example_text,
    judged_example,
    repaired_example,
    rule_in_full,
    rule_members,
)
from tollgate.serve.catalog_auth.api.schemas import RuleInFull, RuleReply, VersionReply, component
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.versions import LATEST, Version
from tollgate.serve.catalog_auth.page.rendering import HTML, rendered
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.rule import CatalogRule
from tollgate.serve.catalog_auth.rules.source_links import segments

RULES_KEPT_FOR = "public, max-age=300"
PAGE = {f"{HTML}; charset=utf-8": {"schema": {"type": "string", "description": "For people."}}}
router = APIRouter(tags=["rules"])


@router.get(
    "/rules",
    summary="All rules",
    responses=answers(
        *OF_QUERIES, schema={"type": "array", "items": component(RuleReply)}, others=PAGE
    ),
    response_model=None,
)
async def rules(request: Request, query: Annotated[NoQuery, Query()]) -> Response:
    """In the order of their ids; as a page for browsers."""
    del query
    members = [rule_members(rule) for rule in RULES.values()]
    if _wants_page(request):
        return rendered("rules.html", rules=members)
    return _answer(members)


@router.get(
    "/rules/{rule_id}",
    summary="A rule, with an example",
    responses=answers(404, *OF_QUERIES, schema=component(RuleInFull), others=PAGE),
    response_model=None,
)
async def rule(
    request: Request,
    rule_id: Annotated[str, Path(examples=["R01"])],
    query: Annotated[NoQuery, Query()],
) -> Response:
    """With a document that breaks it, what is found there, and that document repaired."""
    del query
    found = RULES.get(rule_id)
    if found is None:
        raise NotFoundProblem(f"there is no rule {rule_id[:40]!r}; /rules lists them")
    if _wants_page(request):
        return _page_of(found)
    return _answer(rule_in_full(found))


@router.get(
    "/versions",
    summary="The versions of the extension",
    responses=answers(*OF_QUERIES, schema={"type": "array", "items": component(VersionReply)}),
    response_model=None,
)
async def versions(query: Annotated[NoQuery, Query()]) -> Response:
    """Those that documents may declare."""
    del query
    return _answer(
        [
            {
                "version": f"v{version}",
                "identifier": version.identifier,
                "is_latest": version is LATEST,
            }
            for version in Version
        ]
    )


def _wants_page(request: Request) -> bool:
    return wanted_type(request.headers.get("accept", ""), (JSON, HTML)) == HTML


def _page_of(rule: CatalogRule) -> Response:
    judged = judged_example(rule)
    findings = [each for each in judged.verdict.findings if each.rule == rule.id]
    repaired = repaired_example(rule)
    return rendered(
        "rule.html",
        rule=rule_members(rule),
        source=tuple(segments(rule.source)),
        findings=[{"pointer": pointer(each.path), "message": each.message} for each in findings],
        marked={judged.places[each.path].line for each in findings},
        example=example_text(rule).splitlines(),
        repaired=None if repaired is None else as_lines(repaired),
    )


def _answer(value: object) -> Response:
    return Response(
        encode_json(value), 200, {"Cache-Control": RULES_KEPT_FOR, "Vary": "Accept"}, JSON
    )
