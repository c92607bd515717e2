"""The requests that lead to an asset, an alternate or a link."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from msgspec import Struct
from starlette.responses import Response

from tollgate.serve.catalog_auth.api.bodies import JSON_TYPES, whole_body
from tollgate.serve.catalog_auth.api.bulk import encode_json
from tollgate.serve.catalog_auth.api.call_descriptions import JSON, OF_BODIES, answers, body
from tollgate.serve.catalog_auth.api.context import CatalogContext
from tollgate.serve.catalog_auth.api.envelopes import opened, shape_problem
from tollgate.serve.catalog_auth.api.problems import ProblemCause, Unprocessable
from tollgate.serve.catalog_auth.api.queries import OptionsQuery
from tollgate.serve.catalog_auth.api.schemas import ResolutionReply, ResolveEnvelope, component
from tollgate.serve.catalog_auth.resolve.available_credentials import (
    HELD_MAX,
    AvailableCredential,
    AvailableCredentials,
)
from tollgate.serve.catalog_auth.resolve.resolution import resolve as resolved
from tollgate.serve.catalog_auth.resolve.target import AccessTarget, By, NoTarget
from tollgate.serve.catalog_auth.resolve.wire import no_target_text, resolution_json
from tollgate.serve.catalog_auth.verdict.report import verdict_on

KNOWN = frozenset({"target", "available", "base", "recipes"})
DOMAINS_MAX = 100
router = APIRouter(tags=["reaching"])


class TargetBody(Struct, forbid_unknown_fields=True):
    """Exactly one of the two is there."""

    pointer: str | None = None
    href: str | None = None


class HeldBody(Struct, forbid_unknown_fields=True):
    """Something that the caller holds."""

    name: str
    domains: list[str] = []


class ResolveBody(Struct):
    """The members that `/resolve` takes beside those that every envelope has."""

    target: TargetBody
    available: list[str | HeldBody] = []
    base: str | None = None
    recipes: bool = False


@router.post(
    "/resolve",
    summary="How to get at an asset",
    responses=answers(*OF_BODIES, schema=component(ResolutionReply)),
    openapi_extra=body(component(ResolveEnvelope), JSON_TYPES, "A document, and what of it."),
    response_model=None,
)
async def resolve(request: Request, query: Annotated[OptionsQuery, Query()]) -> Response:
    """The exact requests, as alternatives in the order in which to try them. What the caller holds
    is told by name, never by value: no secret is taken, and none is in the reply."""
    context: CatalogContext = request.app.state.context
    sent = await whole_body(request, JSON_TYPES, context.document_bytes_max)
    return await context.threads.run(sent.size, lambda: _resolve(context, sent.content(), query))


def _resolve(context: CatalogContext, raw: bytes, query: OptionsQuery) -> Response:
    envelope = opened(raw, context.options, query.asked(), KNOWN)
    asked = _read(envelope.rest)
    document = envelope.located()
    verdict = verdict_on(document, envelope.options, envelope.text)
    found = resolved(
        document,
        _target(asked.target),
        AvailableCredentials(tuple(map(_held, asked.available))),
        verdict.findings,
        asked.base,
    )
    if isinstance(found, NoTarget):
        told = no_target_text(found)
        raise Unprocessable(told, [ProblemCause(f"/target/{found.target.by.value}", told)])
    return Response(encode_json(resolution_json(found, asked.recipes)), media_type=JSON)


def _read(rest: Any) -> ResolveBody:
    try:
        asked = msgspec.convert(rest, ResolveBody)
    except msgspec.ValidationError as error:
        raise shape_problem(error) from None
    if len(asked.available) > HELD_MAX:
        told = f"there are more than {HELD_MAX}"
        raise Unprocessable(f"of `available`, {told}", [ProblemCause("/available", told)])
    for index, held in enumerate(asked.available):
        if isinstance(held, HeldBody) and len(held.domains) > DOMAINS_MAX:
            told = f"there are more than {DOMAINS_MAX}"
            cause = ProblemCause(f"/available/{index}/domains", told)
            raise Unprocessable(f"of the domains of something in `available`, {told}", [cause])
    return asked


def _target(asked: TargetBody) -> AccessTarget:
    if asked.pointer is not None and asked.href is None:
        return AccessTarget(By.POINTER, asked.pointer)
    if asked.href is not None and asked.pointer is None:
        return AccessTarget(By.HREF, asked.href)
    told = "name the target by its pointer, or by its href"
    raise Unprocessable(told, [ProblemCause("/target", told)])


def _held(given: str | HeldBody) -> AvailableCredential:
    if isinstance(given, str):
        return AvailableCredential(given)
    return AvailableCredential(given.name, tuple(given.domains))
