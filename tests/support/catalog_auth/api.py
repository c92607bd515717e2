"""The catalog-auth service in process: what a test sees of a reply is what was put on the wire."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.catalog_auth.api.application import catalog_application
from tollgate.serve.catalog_auth.api.context import CatalogContext
from tollgate.serve.catalog_auth.wiring import catalog_context
from tollgate.serve.settings import Settings

PREFIX = "/catalog-auth"
IDENTIFIER = "https://stac-extensions.github.io/authentication/v1.1.0/schema.json"
LOGIN = {
    "type": "openIdConnect",
    "openIdConnectUrl": "https://id.example.com/.well-known/openid-configuration",
}


def item(
    refs: list[str] | None = None,
    schemes: Mapping[str, Any] | None = None,
    href: str = "https://data.example.com/scene.tif",
    **members: Any,
) -> Json:
    """An item with one asset; as it comes, valid and without findings."""
    return {
        "type": "Feature",
        "stac_version": "1.1.0",
        "stac_extensions": [IDENTIFIER],
        "id": "scene",
        "geometry": None,
        "properties": {
            "datetime": "2026-01-01T00:00:00Z",
            "auth:schemes": {"login": dict(LOGIN)} if schemes is None else dict(schemes),
        },
        "links": [],
        "assets": {"data": {"href": href, "auth:refs": ["login"] if refs is None else refs}},
        **members,
    }


DANGLING = item(["Login"])


class Prefixed:
    """Serve's way to tell an application its prefix."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "root_path": PREFIX}, receive, send)


class CatalogApi:
    """The service with these settings."""

    def __init__(self, context: CatalogContext | None = None, **environment: str) -> None:
        self.context = context or catalog_context(Settings.from_environment(environment))
        self.app = Prefixed(catalog_application(self.context))

    def call(self, method: str, path: str, **request: Any) -> httpx.Response:
        async def exchange() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, f"{PREFIX}{path}", **request)

        return asyncio.run(exchange())

    def post(self, path: str, value: object, **request: Any) -> httpx.Response:
        headers = {"content-type": "application/json"} | request.pop("headers", {})
        return self.call("POST", path, content=json.dumps(value), headers=headers, **request)

    def bulk(self, chunks: list[bytes], **request: Any) -> list[Json]:
        """The lines of the reply to a bulk call whose body comes in these pieces."""
        headers = {"content-type": "application/x-ndjson"} | request.pop("headers", {})

        async def body() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        response = self.call("POST", "/validate/bulk", content=body(), headers=headers, **request)
        assert response.status_code == 200, response.text
        return [json.loads(line) for line in response.text.splitlines()]


def problem(response: httpx.Response, status: int, kind: str) -> Json:
    """The problem document of a reply that has one."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    members: Json = response.json()
    assert members["type"] == f"urn:tollgate:catalog-auth:{kind}"
    assert members["status"] == status
    assert members["title"]
    assert members["detail"]
    return members
