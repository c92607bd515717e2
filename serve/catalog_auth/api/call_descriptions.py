"""Descriptions of calls for the API's document, beyond what FastAPI reads off signatures."""

from collections.abc import Mapping
from http import HTTPStatus

from pydantic import BaseModel

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.catalog_auth.api.bodies import JSON_TYPES, NDJSON_TYPES
from tollgate.serve.catalog_auth.api.problems import PROBLEM_JSON
from tollgate.serve.catalog_auth.api.schemas import (
    Envelope,
    FixEnvelope,
    ProblemDocument,
    Verdict,
    component,
)
from tollgate.serve.catalog_auth.verdict.formats.sarif import MEDIA_TYPE as SARIF

JSON = "application/json"
NDJSON = "application/x-ndjson"
TEXT = "text/plain; charset=utf-8"
# Refusals that a call may meet by what it takes.
OF_QUERIES = (422,)
OF_BODIES = (400, 408, 413, 415, 422, 503)
ANYWHERE = (500,)


def answers(
    *refusals: int, schema: Json | None = None, others: Json | None = None
) -> dict[int | str, Json]:
    """The replies of a call: 200 with JSON of `schema`, and problem documents. `others`: the 200 in
    further media types."""
    content: Json = {} if schema is None else {JSON: {"schema": schema}}
    content |= others or {}
    found: dict[int | str, Json] = {200: {"description": "Done", "content": content}}
    for status in sorted({*refusals, *ANYWHERE}):
        found[status] = {
            "description": HTTPStatus(status).phrase,
            "content": {PROBLEM_JSON: {"schema": component(ProblemDocument)}},
        }
    return found


def body(schema: Json, media_types: tuple[str, ...], what: str) -> Json:
    """A request's body, for a route's `openapi_extra`."""
    content = {media_type: {"schema": schema} for media_type in media_types}
    return {"requestBody": {"required": True, "description": what, "content": content}}


DOCUMENT: Json = {
    "description": "A catalog, a collection, an item, a FeatureCollection; or an envelope.",
    "anyOf": [component(Envelope), {"type": "object", "additionalProperties": True}],
}
DOCUMENT_BODY = body(DOCUMENT, JSON_TYPES, "A document, or an envelope. It may be gzip.")
FIX_BODY = body(
    {**DOCUMENT, "anyOf": [component(FixEnvelope), {"type": "object"}]},
    JSON_TYPES,
    "A document, or an envelope. It may be gzip.",
)
BULK_BODY = body(
    {"type": "string", "description": "A document, or an envelope, per line."},
    NDJSON_TYPES,
    "Any number of lines. They may be gzip.",
)
JUDGED = answers(
    *OF_BODIES,
    schema=component(Verdict),
    others={
        SARIF: {"schema": {"type": "object", "description": "A SARIF 2.1.0 log."}},
        TEXT: {"schema": {"type": "string", "description": "For people."}},
    },
)
BULK_ANSWERS = answers(
    *OF_BODIES,
    others={
        NDJSON: {
            "schema": {
                "type": "string",
                "description": "A verdict with `line`, or an `error`, per line; then a `summary`.",
            }
        }
    },
)


def with_components(document: Json, models: Mapping[str, type[BaseModel]]) -> Json:
    """The document with the shapes that only our own references name."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name, model in models.items():
        described = model.model_json_schema(ref_template="#/components/schemas/{model}")
        for inner, schema in described.pop("$defs", {}).items():
            schemas.setdefault(inner, schema)
        schemas[name] = described
    return document
