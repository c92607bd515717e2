"""The application: FastAPI around the dispatcher, with the API's document and a page to browse it.

The dispatcher answers whatever is not the document, so its own errors are the only ones there are,
and no call is matched against one route after another.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tollgate.serve.api_page import files as api_page
from tollgate.serve.payments.api.asgi import Dispatcher, internal_error
from tollgate.serve.payments.api.health import BooksHealth
from tollgate.serve.payments.api.openapi.document import document
from tollgate.serve.payments.api.rejections import NotFound, WrongMethod
from tollgate.serve.payments.api.replies import Reply, accepts_json, encode_json, rejected
from tollgate.serve.payments.api.routes.payment_page import PaymentPages

DOCUMENT_PATH = "/openapi.json"
DOCS_PATH = "/docs"
HEALTH_PATH = "/healthcheck"
TITLE = "Tollgate payments"


def payments_application(
    dispatcher: Dispatcher, version: str, health: BooksHealth | None = None
) -> FastAPI:
    """The API at the root of its prefix; `/docs` to browse it, `/openapi.json` to read it, `/pay/`
    for customers, and `/healthcheck` for whoever watches it."""
    app = FastAPI(
        title=TITLE,
        version=version,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    # (made when somebody reads it: no start waits for it)
    described = cache(partial(document, dispatcher.routes, version, dispatcher.fundable))
    app.openapi = described  # type: ignore[method-assign]  # (as FastAPI documents it)
    pages = DocumentPages(dispatcher, described)
    for path, answer in (
        (DOCUMENT_PATH, pages.document),
        (DOCS_PATH, pages.page),
        (f"{DOCS_PATH}/{{name}}", pages.asset),
    ):
        app.router.routes.append(Route(path, answer, methods=["GET"]))
    if dispatcher.is_for_customers:
        app.router.routes.extend(PaymentPages(dispatcher).routes)
    if health is not None:
        app.router.routes.append(Route(HEALTH_PATH, health.answer, methods=["GET"]))
    app.router.default = partial(_through, dispatcher)
    app.add_exception_handler(Exception, pages.failed)
    app.add_exception_handler(HTTPException, pages.refused)
    return app


async def _through(dispatcher: Dispatcher, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers all paths but the document's; a redirect is no answer for a trailing slash."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
        return
    await dispatcher(scope, receive, send)


class DocumentPages:
    """Pages beside the dispatcher's calls, with the request id that every reply carries."""

    def __init__(self, dispatcher: Dispatcher, described: Callable[[], dict[str, Any]]) -> None:
        self._dispatcher = dispatcher
        self._described = described

    async def document(self, request: Request) -> Response:
        servers = {"servers": [{"url": request.scope.get("root_path", "") or "/"}]}
        return self._answer(request, encode_json(self._described() | servers), "application/json")

    async def page(self, request: Request) -> Response:
        return self._answer(request, *api_page.index(TITLE))

    async def asset(self, request: Request) -> Response:
        file = api_page.asset(request.path_params["name"])
        if not file:
            raise HTTPException(404)
        return self._answer(request, *file)

    async def failed(self, request: Request, error: Exception) -> Response:
        del error  # (logged by whoever runs the application, where it arrives next)
        request_id = self._dispatcher.request_id(request.scope)
        return self._response(internal_error(request.scope, request_id), request_id)

    async def refused(self, request: Request, error: Exception) -> Response:
        """A refusal of these pages, in the API's words."""
        assert isinstance(error, HTTPException), "the handler of these"
        is_there = error.status_code == 405
        rejection = WrongMethod(["GET", "HEAD"]) if is_there else NotFound("there is no such page")
        wants_json = accepts_json(request.headers.get("accept", ""))
        request_id = self._dispatcher.request_id(request.scope)
        reply = rejected(rejection, accepts_json=wants_json, request_id=request_id)
        return self._response(reply, request_id)

    def _answer(self, request: Request, body: bytes, media_type: str) -> Response:
        headers = api_page.HEADERS | self._added(self._dispatcher.request_id(request.scope))
        return Response(body, 200, headers, media_type)

    def _response(self, reply: Reply, request_id: str) -> Response:
        headers = {name.decode(): value.decode() for name, value in reply.headers}
        media_type = reply.media_type.decode() if reply.body else None
        return Response(reply.body, reply.status, headers | self._added(request_id), media_type)

    def _added(self, request_id: str) -> dict[str, str]:
        added = self._dispatcher.added(request_id)
        return {"X-Request-ID": added} if added else {}
