"""What the service knows: the rules, each with an example and its repair, and the versions."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from serve.catalog_auth.bulk import encode_json
from serve.catalog_auth.catalogue import RULES
from serve.catalog_auth.described import JSON, OF_QUERIES, answers
from serve.catalog_auth.problems import NotFound
from serve.catalog_auth.queries import NoQuery
from serve.catalog_auth.rule_documents import rule_in_full, rule_members
from serve.catalog_auth.schemas import RuleInFull, RuleReply, VersionReply, component
from serve.catalog_auth.versions import LATEST, Version

RULES_KEPT_FOR = "public, max-age=300"
router = APIRouter(tags=["rules"])


@router.get(
    "/rules",
    summary="All rules",
    responses=answers(*OF_QUERIES, schema={"type": "array", "items": component(RuleReply)}),
    response_model=None,
)
async def rules(query: Annotated[NoQuery, Query()]) -> Response:
    """In the order of their ids."""
    del query
    return _answer([rule_members(rule) for rule in RULES.values()])


@router.get(
    "/rules/{rule_id}",
    summary="A rule, with an example",
    responses=answers(404, *OF_QUERIES, schema=component(RuleInFull)),
    response_model=None,
)
async def rule(
    rule_id: Annotated[str, Path(examples=["R01"])], query: Annotated[NoQuery, Query()]
) -> Response:
    """With a document that breaks it, what is found there, and that document repaired."""
    del query
    found = RULES.get(rule_id)
    if found is None:
        raise NotFound(f"there is no rule {rule_id[:40]!r}; /rules lists them")
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


def _answer(value: object) -> Response:
    return Response(encode_json(value), 200, {"Cache-Control": RULES_KEPT_FOR}, JSON)
