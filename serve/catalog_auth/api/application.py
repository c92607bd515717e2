"""The catalog-auth service over HTTP: FastAPI around the routes, problem documents for whatever is
wrong with a call, and the API's document with a page to browse it.
"""

from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.api_page import files as api_page
from tollgate.serve.catalog_auth.api.bulk import encode_json
from tollgate.serve.catalog_auth.api.call_descriptions import JSON, with_components
from tollgate.serve.catalog_auth.api.context import CatalogContext
from tollgate.serve.catalog_auth.api.cross_origin import CrossOrigin
from tollgate.serve.catalog_auth.api.held_bytes import HeldBytes
from tollgate.serve.catalog_auth.api.problems import (
    NotFoundProblem,
    Problem,
    ProblemCause,
    Unprocessable,
    WrongMethodProblem,
    problem_response,
    unforeseen,
)
from tollgate.serve.catalog_auth.api.routes import crawl, fix, page, resolve, rules, sign, validate
from tollgate.serve.catalog_auth.api.schemas import MODELS

TITLE = "Tollgate catalog auth"
DESCRIPTION = """\
Judges, repairs, explains and signs what the STAC authentication extension describes. Two verdicts
are never merged: `schema_valid` is exactly what the official schema of the declared version says,
and `valid` is that no finding is as bad as `fail_on`. What is wrong with a document is a finding,
in a reply of status 200; what is wrong with a call is a problem document (RFC 9457).
"""
TAGS = {
    "judging": "Documents, one or many",
    "repairing": "Repairs and other versions, as JSON Patches",
    "reaching": "The requests that lead to an asset",
    "signing": "Signed URLs of objects",
    "rules": "What the service knows",
}
ROUTERS: tuple[APIRouter, ...] = (
    validate.router,
    crawl.router,
    fix.router,
    resolve.router,
    sign.router,
    rules.router,
)


def catalog_application(context: CatalogContext) -> ASGIApp:
    """The service at the root of its prefix."""
    app = FastAPI(
        title=TITLE,
        version=context.version,
        description=DESCRIPTION,
        openapi_tags=[{"name": name, "description": told} for name, told in TAGS.items()],
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.context = context
    for router in ROUTERS:
        app.include_router(router)
    app.include_router(page.router, include_in_schema=False)
    described = described_api(app)
    app.openapi = lambda: described  # type: ignore[method-assign]  # (as FastAPI documents it)
    for answer, path in PAGE_PATHS.items():
        app.add_route(path, answer, include_in_schema=False)
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _unforeseen)
    metered = CallMeter(app, context.tallies, context.clock)
    entered = CrossOrigin(metered, context.origins, context.trusted_origins)
    return Entrance(entered, context.held)


# (docs/operations.md, Metrics)
REQUESTS = "catalog.requests"
TIMES = "catalog.request.duration"
# Of a call that nothing was answered to: its caller has hung up.
GONE_STATUS = 499


class CallMeter:
    """Counts calls by the route that answered and their status, never by what a caller sent. Stands
    directly around the routes, which leave in the scope which of them it was."""

    def __init__(self, app: ASGIApp, tallies: Tallies, clock: Clock) -> None:
        self._app = app
        self._tallies = tallies
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun_s, status = self._clock.monotonic_s(), GONE_STATUS

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            self._note(scope, status, self._clock.monotonic_s() - begun_s)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        # (FastAPI's own routes leave themselves in the scope, Starlette's only what they call)
        known = getattr(scope.get("route"), "path", "")
        route = known or PAGE_PATHS.get(scope.get("endpoint"), "none")
        method = "other" if route == "none" else scope["method"]
        if status == 405:
            method = "other"
        of_route = f".__method={method}.__route={route}"
        self._tallies.count(f"{REQUESTS}{of_route}.__status={status}")
        self._tallies.observe(f"{TIMES}{of_route}", 1, seconds)


class Entrance:
    """The way in of every call. HEAD is GET without its body (RFC 9110, 9.3.2), which the server
    around drops; and the page's links are relative to its folder, so the prefix alone leads there.
    The call's bytes are counted from here (`request.state.held`).
    """

    def __init__(self, app: ASGIApp, held: HeldBytes) -> None:
        self.app = app
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            prefix = scope.get("root_path", "")
            if prefix and scope["path"] == prefix:
                await RedirectResponse(f"{prefix}/", 308)(scope, receive, send)
                return
            if scope["method"] == "HEAD":
                scope = {**scope, "method": "GET"}
        with self._held.call() as held:
            scope = {**scope, "state": {**scope.get("state", {}), "held": held}}
            await self.app(scope, receive, held.sending(send))


def described_api(app: FastAPI) -> dict[str, Any]:
    """The API's document."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        tags=app.openapi_tags,
        routes=app.routes,
    )
    return with_components(document, {model.__name__: model for model in MODELS})


async def _healthy(_: Request) -> Response:
    """It keeps nothing and asks nobody: whoever answers is well."""
    return Response("OK", media_type="text/plain")


async def _document(request: Request) -> Response:
    servers = {"servers": [{"url": request.scope.get("root_path", "") or "/"}]}
    return Response(encode_json(request.app.openapi() | servers), media_type=JSON)


async def _docs(_: Request) -> Response:
    return _answer(api_page.index(TITLE))


async def _asset(request: Request) -> Response:
    file = api_page.asset(request.path_params["name"])
    if not file:
        raise NotFoundProblem("there is no such page")
    return _answer(file)


def _answer(file: api_page.PageFile) -> Response:
    return Response(file.body, 200, api_page.HEADERS, file.media_type)


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem), "the handler of these"
    return problem_response(error)


async def _invalid(_: Request, error: Exception) -> Response:
    """A problem for what FastAPI found wrong with parameters."""
    assert isinstance(error, RequestValidationError), "the handler of these"
    causes = [
        ProblemCause(".".join(str(step) for step in each["loc"][1:]), each["msg"])
        for each in error.errors()
    ]
    return problem_response(Unprocessable("a parameter is not as it should be", causes))


async def _refused(_: Request, error: Exception) -> Response:
    """A problem for what the routing refuses."""
    assert isinstance(error, HTTPException), "the handler of these"
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        return problem_response(WrongMethodProblem(allowed))
    assert error.status_code == 404, "the routing refuses in no other way"
    return problem_response(NotFoundProblem("there is no such path; /docs lists what there is"))


async def _unforeseen(_: Request, error: Exception) -> Response:
    del error  # (logged by whoever runs the application, where it arrives next)
    return unforeseen()


# The pages beside the API's calls.
PAGE_PATHS: dict[Any, str] = {
    _healthy: "/healthcheck",
    _document: "/openapi.json",
    _docs: "/docs",
    _asset: "/docs/{name}",
}
