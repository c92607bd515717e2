"""Judging documents: one at a time, or as many as come."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.catalog_auth.api.bodies import (
    JSON_TYPES,
    NDJSON_TYPES,
    SentCount,
    body_chunks,
    check_media_type,
    whole_body,
)
from tollgate.serve.catalog_auth.api.bulk import bulk_results, encode_json
from tollgate.serve.catalog_auth.api.call_descriptions import (
    BULK_ANSWERS,
    BULK_BODY,
    DOCUMENT_BODY,
    JSON,
    JUDGED,
    NDJSON,
    TEXT,
)
from tollgate.serve.catalog_auth.api.content_negotiation import wanted_type
from tollgate.serve.catalog_auth.api.context import CatalogContext
from tollgate.serve.catalog_auth.api.envelopes import Envelope, opened
from tollgate.serve.catalog_auth.api.queries import OptionsQuery
from tollgate.serve.catalog_auth.api.streaming import Streamed, takes_gzip
from tollgate.serve.catalog_auth.verdict.formats.sarif import MEDIA_TYPE as SARIF
from tollgate.serve.catalog_auth.verdict.formats.sarif import sarif_log
from tollgate.serve.catalog_auth.verdict.formats.text import as_text
from tollgate.serve.catalog_auth.verdict.judgement import Judged, judgement_reply, located
from tollgate.serve.catalog_auth.verdict.report import Verdict, verdict_on

# What a document from the wire is called where files have names.
NAME = "document"
PLAIN = "text/plain"
router = APIRouter(tags=["judging"])


@router.post(
    "/validate",
    summary="Judge a document",
    responses=JUDGED,
    openapi_extra=DOCUMENT_BODY,
    response_model=None,
)
async def validate(request: Request, query: Annotated[OptionsQuery, Query()]) -> Response:
    """200 whatever the verdict is. `Accept` chooses between JSON, SARIF and plain text."""
    context: CatalogContext = request.app.state.context
    sent = await whole_body(request, JSON_TYPES, context.document_bytes_max)
    wanted = wanted_type(request.headers.get("accept", ""), (JSON, SARIF, PLAIN))
    return await context.threads.run(
        sent.size, lambda: _validate(context, sent.content(), query, wanted)
    )


def _validate(context: CatalogContext, raw: bytes, query: OptionsQuery, wanted: str) -> Response:
    judged = judged_envelope(opened(raw, context.options, query.asked()), raw)
    if wanted == SARIF:
        return Response(encode_json(sarif_log([judged], context.version)), media_type=SARIF)
    if wanted == PLAIN:
        return Response("\n".join(as_text(judged)) + "\n", media_type=TEXT)
    return Response(encode_json(judgement_reply(judged)), media_type=JSON)


@router.post(
    "/validate/bulk",
    summary="Judge many documents",
    responses=BULK_ANSWERS,
    openapi_extra=BULK_BODY,
    response_model=None,
)
async def validate_bulk(request: Request, query: Annotated[OptionsQuery, Query()]) -> Response:
    """Results come while documents are still sent: whoever sends many has to read meanwhile. A line
    that cannot be judged gets a line that says why; the last line sums up. Findings have pointers
    and no places."""
    context: CatalogContext = request.app.state.context
    check_media_type(request, NDJSON_TYPES)
    asked = query.asked()

    def judge(line: bytes) -> Json:
        # (to find a place in a line takes longer than to judge it, and tells a machine nothing)
        return judgement_reply(
            Judged(NAME, envelope_verdict(opened(line, context.options, asked)), {})
        )

    sent = SentCount()
    lumps = bulk_results(
        body_chunks(request, sent),
        lambda line: context.threads.run(len(line), lambda: judge(line)),
        context.document_bytes_max,
        context.patience_s,
        sent,
    )
    return Streamed(lumps, NDJSON, is_compressed=takes_gzip(request), slot=context.slots.one())


def judged_envelope(envelope: Envelope, raw: bytes) -> Judged:
    """The judgement of an envelope; places are those in the whole body."""
    return located(NAME, envelope_verdict(envelope), raw, envelope.within)


def envelope_verdict(envelope: Envelope) -> Verdict:
    """The verdict on what is in an envelope."""
    return verdict_on(envelope.located(), envelope.options, envelope.text)
