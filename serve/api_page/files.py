"""The files of the page and their headers; the page asks for `openapi.json` beside itself."""

from importlib.resources import files
from typing import NamedTuple

# Swagger UI's own files, from the package that brings them: the page needs no other server.
_ASSETS = {
    "swagger-ui-bundle.js": ("fastapi_offline", "static/swagger-ui-bundle.js"),
    "swagger-ui.css": ("fastapi_offline", "static/swagger-ui.css"),
    "start.js": ("tollgate.serve.api_page", "start.js"),
}
_TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


class PageFile(NamedTuple):
    body: bytes
    media_type: str


def index(title: str) -> PageFile:
    """The page itself, at `docs` beside the document; `title` names the service."""
    text = files("tollgate.serve.api_page").joinpath("index.html").read_text("utf-8")
    return PageFile(text.replace("{title}", title).encode(), "text/html; charset=utf-8")


def asset(name: str) -> PageFile | None:
    """The file that the page loads from `docs/<name>`; None when there is no such file."""
    if name not in _ASSETS:
        return None
    package, path = _ASSETS[name]
    return PageFile(files(package).joinpath(path).read_bytes(), _TYPES[path.rpartition(".")[2]])
