"""Judging a whole catalog, from one of its documents on."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from msgspec import Meta, Struct
from starlette.responses import Response

from tollgate.serve.catalog_auth.api.bodies import JSON_TYPES, whole_body
from tollgate.serve.catalog_auth.api.call_descriptions import JSON, NDJSON, OF_BODIES, answers, body
from tollgate.serve.catalog_auth.api.context import CatalogContext
from tollgate.serve.catalog_auth.api.envelopes import shape_problem, with_asked
from tollgate.serve.catalog_auth.api.problems import (
    NotJson,
    ProblemCause,
    SwitchedOff,
    Unprocessable,
)
from tollgate.serve.catalog_auth.api.queries import OptionsQuery
from tollgate.serve.catalog_auth.api.schemas import CrawlRequest, component
from tollgate.serve.catalog_auth.api.streaming import Streamed, takes_gzip
from tollgate.serve.catalog_auth.crawl.crawler import Crawl, CrawlBounds, CrawlSetup, refusal_text
from tollgate.serve.catalog_auth.document.decoding import UnreadableError, decode
from tollgate.serve.catalog_auth.verdict.report import Options
from tollgate.serve.net.guarded_client import GuardedClient, target_refusal
from tollgate.serve.net.work_threads import WorkThreads

BODY_BYTES_MAX = 64 * 1024
ANSWERS = answers(
    *OF_BODIES,
    403,
    others={
        NDJSON: {
            "schema": {
                "type": "string",
                "description": "A verdict or an `error` per document, with its `href`; then a "
                "`summary`.",
            }
        }
    },
)
router = APIRouter(tags=["judging"])


class CrawlBody(Struct, forbid_unknown_fields=True):
    """The beginning of a crawl, and its end: no further than is configured."""

    href: str
    depth: Annotated[int, Meta(ge=0)] | None = None
    documents: Annotated[int, Meta(ge=1)] | None = None


@router.post(
    "/validate/crawl",
    summary="Judge a catalog",
    responses=ANSWERS,
    openapi_extra=body(component(CrawlRequest), (JSON,), "Where to begin."),
    response_model=None,
)
async def crawl(request: Request, query: Annotated[OptionsQuery, Query()]) -> Response:
    """Follows the links root, child, item, collection, items and next; what collections and
    catalogs define is inherited. It is off unless it is switched on (CATALOG_CRAWL)."""
    context: CatalogContext = request.app.state.context
    if context.crawling is None:
        raise SwitchedOff("no catalog is followed here (CATALOG_CRAWL)")
    sent = await whole_body(request, JSON_TYPES, BODY_BYTES_MAX)
    asked = _read(sent.content())
    if refusal := target_refusal(asked.href, context.crawling.policy):
        reason = refusal_text(refusal)
        raise Unprocessable(reason, [ProblemCause("/href", reason)])
    return Streamed(
        _results(
            asked, context.crawling, with_asked(context.options, query.asked()), context.threads
        ),
        NDJSON,
        is_compressed=takes_gzip(request),
        slot=context.slots.one(),
    )


async def _results(
    asked: CrawlBody, setup: CrawlSetup, options: Options, threads: WorkThreads
) -> AsyncGenerator[bytes, None]:
    async with GuardedClient(setup.policy, setup.call_timeout_s) as client:
        crawl = Crawl(asked.href, client, options, _within(setup.bounds, asked), threads)
        async for line in crawl.results():
            yield line


def _within(bounds: CrawlBounds, asked: CrawlBody) -> CrawlBounds:
    depth = bounds.depth_max if asked.depth is None else asked.depth
    documents = bounds.documents_max if asked.documents is None else asked.documents
    return replace(
        bounds,
        depth_max=min(depth, bounds.depth_max),
        documents_max=min(documents, bounds.documents_max),
    )


def _read(raw: bytes) -> CrawlBody:
    try:
        return msgspec.convert(decode(raw), CrawlBody)
    except UnreadableError as error:
        raise NotJson(error.reason, error.line, error.column) from None
    except msgspec.ValidationError as error:
        raise shape_problem(error) from None
