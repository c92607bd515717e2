"""The API's document (OpenAPI 3.1), made of the routes and the schemas, so that it cannot forget
one. It is true of every call: both media types, every status, the headers.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.payments.api.bodies import checkout_requests, requests
from tollgate.serve.payments.api.bodies.model_reader import RequestBody
from tollgate.serve.payments.api.bodies.readers import FORM
from tollgate.serve.payments.api.bodies.wire_types import ID_PATTERN
from tollgate.serve.payments.api.call import IDEMPOTENCY_KEY_LENGTH_MAX
from tollgate.serve.payments.api.openapi import checkout_schemas, reply_schemas, report_schemas
from tollgate.serve.payments.api.openapi.checkout_schemas import (
    PATH_WORDS,
    VERSION_WORD,
    browser_responses,
)
from tollgate.serve.payments.api.openapi.reply_schemas import SUFFIX, ReplyBody
from tollgate.serve.payments.api.paging import LIMIT_MAX
from tollgate.serve.payments.api.parameters import filter_name
from tollgate.serve.payments.api.rejections import (
    Forbidden,
    KeyReused,
    LostRace,
    NotFound,
    Rejection,
    TooMany,
    Unauthorised,
    Unavailable,
)
from tollgate.serve.payments.api.router import Access, Route, Voice

JSON = "application/json"
REF = "#/components/schemas/{model}"
_REFERENCE = re.compile(REF.format(model="([A-Za-z]+)"))
TITLE = "Tollgate payments"
DESCRIPTION = """\
Amounts are whole numbers of minor units. Lists are arrays with one element per line, the newest
first; page with `before`, poll with `after`. Bodies are JSON, or forms with bracket nesting
(`company[country]=DK`) in which booleans are `yes` and `no`. A parameter or a member that a call
does not have is refused. Errors other than 400 have a body only if `Accept` names JSON.
"""
TAGS = {
    "apps": "Machine identities and their keys",
    "merchants": "Whose transactions these are",
    "members": "Who has access to a merchant",
    "transactions": "Authorisations, and what became of them",
    "cards": "Saved cards (deprecated: use the id of an earlier transaction)",
    "disputes": "Charged back, then won or lost",
    "frauds": "Fraud reports",
    "lines": "The history of a merchant's balance",
    "books": "Balance and audit",
    "events": "What has happened",
    "webhooks": "Events by HTTP",
    "checkout": "Customers' payments in their browsers, without credentials",
    "sandbox": "What the world does to test merchants",
    "operator": "Calls with the operator's key, at a port of their own",
}
_MEANINGS: Mapping[int, tuple[type[Rejection], str]] = {
    401: (Unauthorised, "No credentials, unknown ones, or a key that has expired"),
    403: (Forbidden, "Credentials without access"),
    404: (NotFound, "Nothing has this id"),
    409: (LostRace, "Valid when it was checked; another call came first"),
    422: (KeyReused, "The Idempotency-Key belongs to another request"),
    429: (TooMany, "Too many calls; nothing was done"),
    500: (Rejection, "A failure of the service"),
    503: (Unavailable, "Busy, or the outcome is unknown: repeat with the same Idempotency-Key"),
}
# A boolean in a form.
_BOOLEAN: Json = {"type": "string", "enum": ["yes", "no"]}
_REQUEST_ID = {"X-Request-ID": {"$ref": "#/components/headers/X-Request-ID"}}
_RETRY_AFTER = {"Retry-After": {"$ref": "#/components/headers/Retry-After"}}
_NEWER_KEY = {"Tollgate-Newer-Key": {"$ref": "#/components/headers/Tollgate-Newer-Key"}}
_KEY_EXPIRES = {"Tollgate-Key-Expires": {"$ref": "#/components/headers/Tollgate-Key-Expires"}}
_REPLAYED = {"Idempotency-Replayed": {"$ref": "#/components/headers/Idempotency-Replayed"}}


def document(routes: Sequence[Route[Any]], version: str, fundable: Sequence[str]) -> Json:
    """The whole document. `fundable`: the currencies that accounts can be kept in."""
    paths: Json = {}
    used = {route.tag for route in routes}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": version, "description": DESCRIPTION},
        "tags": [
            {"name": name, "description": text} for name, text in TAGS.items() if name in used
        ],
        "paths": paths,
        "components": {
            "schemas": _used_schemas(paths, fundable),
            "headers": _HEADERS,
            "responses": {_problem_name(status): _problem(status) for status in _MEANINGS},
            "securitySchemes": {
                "appKey": _basic("The user name is empty, the password an app's key"),
                "operatorKey": _basic("The user name is empty, the password the operator's key"),
            },
        },
    }


_HEADERS: Json = {
    "X-Request-ID": {
        "description": "The caller's, or one of ours; it finds the request in logs and audit",
        "required": True,
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "Seconds",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    },
    "Tollgate-Newer-Key": {
        "description": "The app has a newer key than the one that was used: its last four "
        "characters, and when it was made. If you did not make it, recover the app",
        "schema": {"type": "string"},
    },
    "Tollgate-Key-Expires": {
        "description": "The key that was used expires then, within two weeks",
        "schema": {"type": "string", "format": "date-time"},
    },
    "Idempotency-Replayed": {
        "description": "The reply of an earlier request with the same Idempotency-Key",
        "schema": {"type": "string", "const": "true"},
    },
}


def _basic(description: str) -> Json:
    return {"type": "http", "scheme": "basic", "description": description}


def _operation(route: Route[Any]) -> Json:
    operation: Json = {
        "operationId": _operation_id(route),
        "tags": [route.tag],
        "summary": route.summary,
        "parameters": list(_parameters(route)),
        "responses": _responses(route),
    }
    if route.description:
        operation["description"] = route.description
    if route.request:
        operation["requestBody"] = _request_body(route.request)
    security = {Access.APP: "appKey", Access.OPERATOR: "operatorKey"}.get(route.access)
    operation["security"] = [{security: []}] if security else []
    return operation


def _operation_id(route: Route[Any]) -> str:
    steps = route.path.strip("/").replace(".", "/").split("/")
    words = ["by" if step.startswith("{") else step for step in steps]
    return "-".join((route.method.lower(), *words))


def _parameters(route: Route[Any]) -> Iterator[Json]:
    for step in route.path.split("/"):
        if step.startswith("{"):
            name = step[1:-1]
            yield _parameter("path", name, PATH_WORDS.get(name, _ID), is_required=True)
    own = dict(route.query)
    for name in route.parameters:
        # (a call that says what a parameter means may mean something else by it)
        schema = dict(_QUERY.get(name, {"type": "string"}) if name in own else _LISTS[name])
        is_required = name in route.required or (route.is_paged and name == "limit")
        meaning = own.get(name) or _BOUNDS.get(name, "")
        yield _parameter("query", name, schema, meaning, is_required=is_required)
    if route.voice is Voice.BROWSERS:
        yield _parameter("header", "Accept-Version", VERSION_WORD, is_required=True)
    if _is_write(route) and route.takes_key:
        key = {"type": "string", "maxLength": IDEMPOTENCY_KEY_LENGTH_MAX, "pattern": "^[ -~]*$"}
        yield _parameter("header", "Idempotency-Key", key, "one effect, however often it is sent")


_ID: Json = {"type": "string", "pattern": ID_PATTERN}
_BOUND: Json = {"type": "string", "pattern": "^([0-9a-f]{24})?$"}
_BOUNDS = {
    "before": "older than this id, newest first",
    "after": "newer than this id, oldest first",
}
_LIMIT: Json = {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX}
_QUERY: Mapping[str, Json] = {
    "at": {"type": "string", "format": "date-time"},
    "limit": _LIMIT,
    "before": _BOUND,
}
_FLAG: Json = {"type": "string", "enum": ["yes", "no", "y", "n", "1", "0", "true", "false"]}
_LISTS: Mapping[str, Json] = {
    "limit": _LIMIT,
    "sort": {"type": "string", "enum": ["id", "-id"]},
    "before": _BOUND,
    "after": _BOUND,
    filter_name("merchantId"): _ID,
    filter_name("transactionId"): _ID,
    filter_name("test"): _FLAG,
    filter_name("successful"): _FLAG,
}


def _parameter(
    place: str, name: str, schema: Json, description: str = "", *, is_required: bool = False
) -> Json:
    parameter = {"in": place, "name": name, "schema": schema, "required": is_required}
    return parameter | ({"description": description} if description else {})


def _is_write(route: Route[Any]) -> bool:
    return route.method != "GET"


def _request_body(name: str) -> Json:
    schema = _schemas()[name]
    return {
        "required": bool(schema.get("required")),
        "content": {
            JSON: {"schema": {"$ref": REF.format(model=name)}},
            FORM: {"schema": _form_schema(schema, _schemas())},
        },
    }


def _form_schema(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """The same fields as `schema`, by the names that they have in a form. What may hold anything
    (custom data) is left out: there a form's names are the caller's."""
    required: list[str] = []
    properties: Json = {}
    for name, field, is_required in _form_fields(schema, definitions, "", is_required=True):
        properties[name] = field
        if is_required:
            required.append(name)
    flat: Json = {"type": "object", "properties": properties}
    return flat | ({"required": required} if required else {})


def _form_fields(
    schema: Json, definitions: Mapping[str, Json], prefix: str, *, is_required: bool
) -> Iterator[tuple[str, Json, bool]]:
    needed = schema.get("required", ())
    for name, field in schema["properties"].items():
        place = f"{prefix}[{name}]" if prefix else name
        is_needed = is_required and name in needed
        kind = _resolved(field, definitions)
        if "properties" in kind:
            yield from _form_fields(kind, definitions, place, is_required=is_needed)
        elif kind.get("type") == "boolean":
            yield place, dict(_BOOLEAN), is_needed
        elif kind.get("type") in ("string", "integer"):
            yield place, kind, is_needed


def _resolved(field: Json, definitions: Mapping[str, Json]) -> Json:
    """Without references, and of alternatives the first: the others say that it is absent."""
    if "anyOf" in field:
        return _resolved(field["anyOf"][0], definitions)
    reference = field.get("$ref")
    if reference is not None:
        return _resolved(definitions[reference.rpartition("/")[2]], definitions)
    return {name: value for name, value in field.items() if name not in ("default", "title")}


def _responses(route: Route[Any]) -> Json:
    statuses = {429, 500, 503} | set(route.statuses)
    if route.access is not Access.NOBODY:
        statuses.add(401)
    if _is_write(route) and route.takes_key:
        statuses.add(422)
    responses = {str(route.status): _success(route), "400": _bad_request(route)}
    if route.voice is Voice.BROWSERS:
        return browser_responses(responses, sorted(statuses))
    for status in sorted(statuses):
        responses[str(status)] = {"$ref": f"#/components/responses/{_problem_name(status)}"}
    return responses


def _success(route: Route[Any]) -> Json:
    response: Json = {"description": route.summary, "headers": dict(_REQUEST_ID)}
    if route.access is Access.APP:
        response["headers"] |= _NEWER_KEY | _KEY_EXPIRES
    if _is_write(route) and route.takes_key:
        response["headers"] |= _REPLAYED
    if route.reply:
        response["content"] = {route.media_type: {"schema": _reply_schema(route)}}
    elif route.media_type != JSON:
        response["content"] = {route.media_type: {"schema": {"type": "string"}}}
    return response


def _reply_schema(route: Route[Any]) -> Json:
    name = route.reply.removesuffix("[]")
    reference = {"$ref": REF.format(model=name)}
    return reference if name == route.reply else {"type": "array", "items": reference}


def _bad_request(route: Route[Any]) -> Json:
    fields: Json = {
        "type": "array",
        "minItems": 1,
        "items": {"$ref": REF.format(model="FieldProblem")},
    }
    is_payment = route.reply == "TransactionCreated"
    processing = {"$ref": REF.format(model="ProcessingProblem")}
    schema = {"oneOf": [fields, processing]} if is_payment else fields
    example = [{"field": "company.country", "message": "is required"}]
    return {
        "description": "Malformed, missing or refused; or a payment that failed"
        if is_payment
        else "Malformed, missing or refused, field by field",
        "headers": dict(_REQUEST_ID),
        "content": {JSON: {"schema": schema, "example": example}},
    }


def _problem_name(status: int) -> str:
    return _MEANINGS[status][0].__name__


def _problem(status: int) -> Json:
    kind, meaning = _MEANINGS[status]
    headers = dict(_REQUEST_ID) | (_RETRY_AFTER if status in (429, 503) else {})
    example = {"code": kind.code, "message": meaning.lower(), "requestId": "6a1f…"}
    schema = {"$ref": REF.format(model="Problem")}
    return {
        "description": f"{meaning}. Without a body unless `Accept` names JSON",
        "headers": headers,
        "content": {JSON: {"schema": schema, "example": example}},
    }


@cache
def _models() -> Mapping[str, type[BaseModel]]:
    """The models of requests and replies, by their names in the document."""
    return {
        name.removesuffix(SUFFIX): each
        for module in (
            requests,
            checkout_requests,
            reply_schemas,
            report_schemas,
            checkout_schemas,
        )
        for name, each in vars(module).items()
        if isinstance(each, type)
        and issubclass(each, RequestBody | ReplyBody)
        and each not in (RequestBody, ReplyBody)
    }


class _Components(GenerateJsonSchema):
    """Names the schemas as the document does."""

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(name).removesuffix(SUFFIX)


@cache
def _schemas() -> Mapping[str, Json]:
    _, found = models_json_schema(
        [(model, "validation") for model in _models().values()],
        ref_template=REF,
        by_alias=True,
        schema_generator=_Components,
    )
    definitions: Json = found["$defs"]
    return definitions


def _used_schemas(paths: Json, fundable: Sequence[str]) -> Json:
    """The schemas that these calls lead to."""
    schemas = deepcopy(dict(_schemas()))
    schemas["MerchantCreate"]["properties"]["currency"]["enum"] = list(fundable)
    used: Json = {}
    found = {"Problem", *_referred(paths)}
    while found:
        used |= {name: schemas[name] for name in found}
        found = {each for name in found for each in _referred(schemas[name])} - used.keys()
    return dict(sorted(used.items()))


def _referred(document: Json) -> set[str]:
    return set(_REFERENCE.findall(json.dumps(document)))
