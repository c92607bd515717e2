"""Signed URLs of objects, in the two shapes that are in use, and the scheme that describes them.

    POST /sign  {"bucket", "key"}       200 {"signed_url"}; else 400 {"error"}, whatever it is
    GET /sign?href=&duration=&_id=      200 {"href", "expires"}; else a problem document

The first is for clients that know these two answers and no others.
"""

import hmac
import logging
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from msgspec import Struct
from pydantic import Field
from starlette.responses import Response

from tollgate.serve.catalog_auth.api.bodies import whole_body
from tollgate.serve.catalog_auth.api.bulk import encode_json
from tollgate.serve.catalog_auth.api.call_descriptions import JSON, OF_QUERIES, answers, body
from tollgate.serve.catalog_auth.api.context import CatalogContext
from tollgate.serve.catalog_auth.api.problems import (
    NotSigned,
    Problem,
    SwitchedOff,
    UnauthorisedProblem,
)
from tollgate.serve.catalog_auth.api.queries import QueryParameters as Parameters
from tollgate.serve.catalog_auth.api.queries import SchemeQuery
from tollgate.serve.catalog_auth.api.schemas import (
    SchemeReply,
    SignedHref,
    SignedObject,
    SignError,
    SignRequest,
    component,
)

if TYPE_CHECKING:
    # (botocore is imported where something is signed, and only there)
    from tollgate.serve.catalog_auth.sign.file import SigningService

LOG = logging.getLogger("tollgate.catalog_auth")
BODY_BYTES_MAX = 64 * 1024
KEY_HEADER = "X-API-Key"
HREF_LENGTH_MAX = 8_192
_NOT_KEPT = {"Cache-Control": "no-store"}
SCHEME_KEPT_FOR = "public, max-age=300"
router = APIRouter(tags=["signing"])


class ObjectBody(Struct, forbid_unknown_fields=True):
    """An object to be signed."""

    bucket: str
    key: str


class SignQuery(Parameters):
    """An object to be signed, as an href."""

    href: str = Field(max_length=HREF_LENGTH_MAX, description="The object's URL.")
    duration: int | None = Field(None, description="Minutes of validity; kept within bounds.")
    caller_id: str | None = Field(
        None, alias="_id", max_length=200, description="Your identifier, for metrics."
    )


_POST_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Signed", "content": {JSON: {"schema": component(SignedObject)}}},
    400: {"description": "Not signed", "content": {JSON: {"schema": component(SignError)}}},
}


@router.post(
    "/sign",
    summary="Sign an object's URL, by bucket and key",
    responses=_POST_ANSWERS,
    openapi_extra=body(component(SignRequest), (JSON,), "Bucket and key."),
    response_model=None,
)
async def sign(request: Request) -> Response:
    """The key of the caller, where one is asked for, is in X-API-Key, or in Authorization as a
    Bearer token."""
    context: CatalogContext = request.app.state.context
    try:
        door = _door(context, request)
        sent = await whole_body(request, (JSON,), BODY_BYTES_MAX)
        wanted = msgspec.json.decode(sent.content(), type=ObjectBody)
    except Problem as problem:
        return _refused(problem.detail)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _refused(f"the body is not as it should be: {error}")
    signed = door.signer.sign(wanted.bucket, wanted.key)
    if isinstance(signed, StrEnum):
        return _refused(signed.value)
    return Response(encode_json({"signed_url": signed.url}), 200, _NOT_KEPT, JSON)


@router.get(
    "/sign",
    summary="Sign an object's URL, by its href",
    responses=answers(401, 403, *OF_QUERIES, schema=component(SignedHref)),
    response_model=None,
)
async def sign_href(request: Request, query: Annotated[SignQuery, Query()]) -> Response:
    """Any way to write the object's URL will do: `s3://`, virtual-hosted, path."""
    door = _door(request.app.state.context, request)
    signed = door.signer.sign_href(query.href, query.duration, query.caller_id)
    if isinstance(signed, StrEnum):
        raise NotSigned(signed.value)
    if signed.caller_id is not None:
        LOG.info("signed a URL for %s", ascii(signed.caller_id))
    members = {"href": signed.url, "expires": signed.expires.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return Response(encode_json(members), 200, _NOT_KEPT, JSON)


@router.get(
    "/scheme",
    summary="The scheme that describes /sign",
    responses=answers(*OF_QUERIES, schema=component(SchemeReply)),
    response_model=None,
)
async def scheme(request: Request, query: Annotated[SchemeQuery, Query()]) -> Response:
    """An entry for `auth:schemes`, ready to be copied. Its address is whole where the operator has
    said what it is (CATALOG_PUBLIC_URL); else it is a path on this host, for you to complete: what
    a call says of the host is no address to publish."""
    from tollgate.serve.catalog_auth.sign.signer import (
        signed_url_scheme,  # (botocore takes its time)
    )

    context: CatalogContext = request.app.state.context
    told = signed_url_scheme(context.public_url or request.scope.get("root_path", ""))
    flows = told["flows"]
    assert isinstance(flows, dict), "made so"
    chosen = {name: flow for name, flow in flows.items() if flow["method"] == query.method}
    if context.signing is not None and context.signing.keys:
        for flow in chosen.values():
            flow["parameters"][KEY_HEADER] = {
                "in": "header",
                "required": True,
                "description": "The key that you were given",
                "schema": {"type": "string"},
            }
    kept = {"Cache-Control": SCHEME_KEPT_FOR}
    return Response(encode_json(told | {"flows": chosen}), 200, kept, JSON)


def _door(context: CatalogContext, request: Request) -> "SigningService":
    """The service that signs for this caller. Raises SwitchedOff, UnauthorisedProblem."""
    if context.signing is None:
        raise SwitchedOff("nothing is signed here (CATALOG_SIGNING)")
    if context.signing.keys and not _shows_key(request, context.signing.keys):
        raise UnauthorisedProblem(f"show your key in {KEY_HEADER}, or as a Bearer token")
    return context.signing


def _shows_key(request: Request, keys: tuple[str, ...]) -> bool:
    given = request.headers.get(KEY_HEADER, "")
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if not given and kind.lower() == "bearer":
        given = token.strip()
    # Every key is compared, in the same time whatever was given.
    matches = [hmac.compare_digest(given.encode(), key.encode()) for key in keys]
    return any(matches)


def _refused(reason: str) -> Response:
    return Response(encode_json({"error": reason}), 400, _NOT_KEPT, JSON)
