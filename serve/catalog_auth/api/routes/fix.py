"""Repairs of documents, as JSON Patches with the patched document."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from msgspec import Meta, Struct
from pydantic import Field
from starlette.responses import Response

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.catalog_auth.api.bodies import JSON_TYPES, whole_body
from tollgate.serve.catalog_auth.api.bulk import encode_json
from tollgate.serve.catalog_auth.api.call_descriptions import (
    DOCUMENT_BODY,
    FIX_BODY,
    JSON,
    OF_BODIES,
    answers,
)
from tollgate.serve.catalog_auth.api.context import CatalogContext
from tollgate.serve.catalog_auth.api.envelopes import opened, shape_problem, version_named
from tollgate.serve.catalog_auth.api.problems import ProblemCause, Unprocessable
from tollgate.serve.catalog_auth.api.queries import RULES_LENGTH_MAX, VERSION_PATTERN, OptionsQuery
from tollgate.serve.catalog_auth.api.queries import QueryParameters as Parameters
from tollgate.serve.catalog_auth.api.schemas import FixedReply, MigratedReply, component
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.repair.fixes import Fixed, SuggestionChoice
from tollgate.serve.catalog_auth.repair.fixes import fix as fixed
from tollgate.serve.catalog_auth.repair.migration import NotMigrated
from tollgate.serve.catalog_auth.repair.migration import migrate as migrated
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.verdict.judgement import Judged, judgement_reply, patch_of

NAME = "document"
KNOWN = frozenset({"choices"})
CHOICES_MAX = 1_000
router = APIRouter(tags=["repairing"])


class FixQuery(OptionsQuery):
    """The options of a call, and what to repair."""

    only: str | None = Field(
        None,
        max_length=RULES_LENGTH_MAX,
        description="Repair what these rules find, as `R05,E01`; without it, all of them.",
        examples=["R05"],
    )

    def chosen(self) -> frozenset[str] | None:
        """The rules to repair by. Raises Unprocessable."""
        if self.only is None:
            return None
        rules = frozenset(rule.strip() for rule in self.only.split(","))
        causes = [
            ProblemCause("only", f"there is no rule {rule[:40]!r}") for rule in rules - RULES.keys()
        ]
        if causes:
            raise Unprocessable("of the rules to repair by, some are not there", causes)
        return rules


class ChoiceBody(Struct, forbid_unknown_fields=True):
    """A suggestion of a finding: `number` counts from 0."""

    rule: str
    pointer: str
    number: int


class ChoicesBody(Struct):
    """The suggestions to apply, beside what every envelope has."""

    choices: Annotated[list[ChoiceBody], Meta(max_length=CHOICES_MAX)] = []


class MigrateQuery(Parameters):
    """The version to move a document to."""

    to: str = Field(pattern=VERSION_PATTERN, description="The version.", examples=["v1.1.0"])


@router.post(
    "/fix",
    summary="Repair a document",
    responses=answers(*OF_BODIES, schema=component(FixedReply)),
    openapi_extra=FIX_BODY,
    response_model=None,
)
async def fix(request: Request, query: Annotated[FixQuery, Query()]) -> Response:
    """Makes every mechanical repair until there is none left, and judges the result. A mechanical
    repair loses no value and guesses nothing; of all others, which findings have as `suggestions`,
    those named in `choices` are made."""
    context: CatalogContext = request.app.state.context
    sent = await whole_body(request, JSON_TYPES, context.document_bytes_max)
    return await context.threads.run(sent.size, lambda: _fix(context, sent.content(), query))


def _fix(context: CatalogContext, raw: bytes, query: FixQuery) -> Response:
    envelope = opened(raw, context.options, query.asked(), KNOWN)
    choices = _choices(envelope.rest)
    made = fixed(envelope.root, envelope.options, envelope.ancestors, query.chosen(), choices)
    if made.unmet:
        told = "no finding has such a suggestion"
        causes = [ProblemCause("/choices", f"{told}: {each}") for each in made.unmet]
        raise Unprocessable(f"of the choices, {told}", causes)
    return Response(encode_json(fixed_reply(made)), media_type=JSON)


@router.post(
    "/migrate",
    summary="Move a document to another version",
    responses=answers(*OF_BODIES, schema=component(MigratedReply)),
    openapi_extra=DOCUMENT_BODY,
    response_model=None,
)
async def migrate(request: Request, query: Annotated[MigrateQuery, Query()]) -> Response:
    """A loss, or something that only the author knows, is a reason to refuse it: 422."""
    context: CatalogContext = request.app.state.context
    sent = await whole_body(request, JSON_TYPES, context.document_bytes_max)
    return await context.threads.run(sent.size, lambda: _migrate(context, sent.content(), query))


def _migrate(context: CatalogContext, raw: bytes, query: MigrateQuery) -> Response:
    envelope = opened(raw, context.options)
    to, length_max = version_named(query.to), envelope.options.length_max
    made = migrated(envelope.root, to, envelope.ancestors, length_max)
    if isinstance(made, NotMigrated):
        causes = [ProblemCause(pointer(each.path), each.message) for each in made.obstacles]
        raise Unprocessable(f"the document cannot be one of v{made.version}", causes)
    reply = {
        "version": f"v{made.version}",
        "patch": patch_of(made.patch),
        "document": made.document,
        "verdict": judgement_reply(Judged(NAME, made.verdict, {})),
    }
    return Response(encode_json(reply), media_type=JSON)


def _choices(rest: Mapping[str, Any]) -> frozenset[SuggestionChoice]:
    try:
        asked = msgspec.convert(rest, ChoicesBody)
    except msgspec.ValidationError as error:
        raise shape_problem(error) from None
    return frozenset(
        SuggestionChoice(each.rule, each.pointer, each.number) for each in asked.choices
    )


def fixed_reply(made: Fixed) -> Json:
    """A repaired document as it is answered."""
    return {
        "patch": patch_of(made.patch),
        "document": made.document,
        "repairs": [
            {"rule": repair.rule, "pointer": pointer(repair.path)} for repair in made.repairs
        ],
        "complete": made.is_complete,
        "verdict": judgement_reply(Judged(NAME, made.verdict, {})),
    }
