"""The page for people: a document in, both verdicts out, with repairs and ways to each asset.

The page works as a plain form. Its script only saves the reloads, so both have the same answers.
"""

from importlib.resources import files

from fastapi import APIRouter, Request
from starlette.responses import Response

from tollgate.serve.catalog_auth.api.bodies import whole_body
from tollgate.serve.catalog_auth.api.context import CatalogContext
from tollgate.serve.catalog_auth.api.problems import BadBody, NotFoundProblem
from tollgate.serve.catalog_auth.page.check import example_document, page_view
from tollgate.serve.catalog_auth.page.rendering import HEADERS, rendered
from tollgate.serve.catalog_auth.page.view import View
from tollgate.serve.net.form_values import form_text

FORM = "application/x-www-form-urlencoded"
# A form writes most characters of JSON as three.
FORM_GROWTH = 3
FIELDS_MAX = 10
PAGE = "page.html"
_FILES = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
}
router = APIRouter()


@router.get("/")
async def page(request: Request) -> Response:
    """The page; with `?example`, there is a document in it."""
    is_example = "example" in request.query_params
    return rendered(PAGE, view=View(text=example_document()) if is_example else View())


@router.post("/")
async def check(request: Request) -> Response:
    """The page with its result, for a form that was sent."""
    context: CatalogContext = request.app.state.context
    sent = await whole_body(request, (FORM,), context.document_bytes_max * FORM_GROWTH)

    def work() -> Response:
        fields = _fields(sent.content())
        document = fields.get("document", "")
        view = page_view(context, document, fields.get("profile"), fields.get("repair"))
        return rendered(PAGE, view=view)

    return await context.threads.run(sent.size, work)


@router.get("/page/{name}")
async def part(name: str) -> Response:
    """A file that the page is made of."""
    if name not in _FILES:
        raise NotFoundProblem("there is no such page")
    text = files("tollgate.serve.catalog_auth.page").joinpath(name).read_bytes()
    return Response(text, 200, HEADERS | {"Cache-Control": "no-cache"}, _FILES[name])


def _fields(raw: bytes) -> dict[str, str]:
    """The fields of a form; of one that is there twice, the first."""
    pairs = [pair.partition(b"=") for pair in raw.split(b"&", FIELDS_MAX) if pair]
    try:
        if not raw.isascii() or len(pairs) > FIELDS_MAX:
            raise ValueError
        # (of names that repeat, the one that is put last stays)
        return {form_text(name): form_text(value) for name, _, value in reversed(pairs)}
    except ValueError:
        raise BadBody("the form is not one that the page sends") from None
