"""The page for people: a document in, both verdicts out, with repairs and ways to each asset.

The page works as a plain form. Its script only saves the reloads, so both have the same answers.
"""

import json
from dataclasses import replace
from importlib.resources import files

from fastapi import APIRouter, Request
from starlette.responses import Response

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.api.bodies import whole_body
from tollgate.serve.catalog_auth.api.context import CatalogContext
from tollgate.serve.catalog_auth.api.envelopes import Asked, with_asked
from tollgate.serve.catalog_auth.api.problems import BadBody, NotFoundProblem
from tollgate.serve.catalog_auth.document.decoding import (
    TooMuchError,
    UnreadableError,
    decode_foreign,
)
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.page.rendering import HEADERS, rendered
from tollgate.serve.catalog_auth.page.targets import shown_targets
from tollgate.serve.catalog_auth.page.view import (
    ShownProblem,
    View,
    problem_at,
    repair_name,
    result_of,
)
from tollgate.serve.catalog_auth.repair.fixes import fix
from tollgate.serve.catalog_auth.repair.json_patch import patched
from tollgate.serve.catalog_auth.rules.rule import Profile
from tollgate.serve.catalog_auth.verdict.formats.text import counted
from tollgate.serve.catalog_auth.verdict.judgement import judge_value, located
from tollgate.serve.catalog_auth.verdict.report import Options, verdict_on
from tollgate.serve.net.form_values import form_text

FORM = "application/x-www-form-urlencoded"
# A form writes most characters of JSON as three.
FORM_GROWTH = 3
FIELDS_MAX = 10
PAGE = "page.html"
NAME = "document"
# The word for all repairs at once.
ALL = "all"
# A repaired text is indented if that gives no more than so many characters, and so many times those
# of the one that came in. (A document without any blanks grows to twice its length, or less.)
INDENTED_FREE, INDENTED_GROWTH_MAX = 16 * 1024, 4
_FILES = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
}
router = APIRouter()


@router.get("/")
async def page(request: Request) -> Response:
    """The page; with `?example`, there is a document in it."""
    is_example = "example" in request.query_params
    return rendered(PAGE, view=View(text=_file("example.json").decode()) if is_example else View())


@router.post("/")
async def check(request: Request) -> Response:
    """The page with its result, for a form that was sent."""
    context: CatalogContext = request.app.state.context
    sent = await whole_body(request, (FORM,), context.document_bytes_max * FORM_GROWTH)

    def work() -> Response:
        fields = _fields(sent.content())
        document = fields.get("document", "")
        view = _view(context, document, fields.get("profile"), fields.get("repair"))
        return rendered(PAGE, view=view)

    return await context.threads.run(sent.size, work)


@router.get("/page/{name}")
async def part(name: str) -> Response:
    """A file that the page is made of."""
    if name not in _FILES:
        raise NotFoundProblem("there is no such page")
    return Response(_file(name), 200, HEADERS | {"Cache-Control": "no-cache"}, _FILES[name])


def _file(name: str) -> bytes:
    return files("tollgate.serve.catalog_auth.page").joinpath(name).read_bytes()


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


def _view(context: CatalogContext, text: str, profile: str | None, repair: str | None) -> View:
    """The page for this text. `repair`: which repair to make before, by its name, or all."""
    known = Profile(profile) if profile in tuple(Profile) else context.options.profile
    options = with_asked(context.options, Asked(profile=known)).for_text_of(len(text))
    # (a form sends the ends of lines as the network writes them)
    text = text.replace("\r\n", "\n")
    view = View(text=text, profile=known.value)
    raw = text.encode(errors="replace")
    if len(raw) > context.document_bytes_max:
        told = f"The document is larger than {context.document_bytes_max:,} bytes."
        return replace(view, problem=ShownProblem(told))
    try:
        root = decode_foreign(raw)
    except TooMuchError as error:
        return replace(view, problem=ShownProblem(f"The document is too large: {error.reason}."))
    except UnreadableError as error:
        told = f"It is not JSON: {error.reason} (line {error.line}, column {error.column})."
        return replace(view, problem=problem_at(told, text, error.line, error.column))
    if not repair:
        return _judged(view, root, raw, options)
    root, said = _repaired(root, raw, options, repair)
    # (a repaired document is written anew: a patch knows nothing of blanks)
    text = _written(root, INDENTED_FREE + INDENTED_GROWTH_MAX * len(text))
    view = replace(view, text=text, repaired=said)
    return _judged(view, root, text.encode(errors="replace"), options)


def _written(root: JsonValue, length_max: int) -> str:
    """The text of a value: with an indentation, unless that makes it longer than `length_max`, as
    with what is nested a hundred levels deep."""
    pieces: list[str] = []
    length = 0
    for piece in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(root):
        pieces.append(piece)
        length += len(piece)
        if length > length_max:
            return json.dumps(root, ensure_ascii=False)
    return "".join(pieces)


def _repaired(root: JsonValue, raw: bytes, options: Options, repair: str) -> tuple[JsonValue, str]:
    """The document after all repairs, or after the one of this name; and what was done."""
    if repair == ALL:
        made = fix(root, options)
        rules = ", ".join(dict.fromkeys(each.rule for each in made.repairs))
        count = counted(len(made.repairs), "repair")
        more = "" if made.is_complete else " There are more: apply them as well."
        return (
            made.document,
            f"{count} made ({rules}).{more}" if rules else "There was nothing to repair.",
        )
    findings = judge_value(root, raw, NAME, options).verdict.findings
    for finding in findings:
        if finding.fix and repair_name(finding) == repair:
            return patched(root, finding.fix), f"Repaired: {finding.rule}."
        for index, each in enumerate(finding.suggestions):
            if repair_name(finding, index) == repair:
                return patched(root, each.steps), f"Done for {finding.rule}: {each.title}."
    return root, "That repair is not there any more: the document has changed since."


def _judged(view: View, root: JsonValue, raw: bytes, options: Options) -> View:
    document = locate(root, version=options.version, raw=raw)
    judged = located(NAME, verdict_on(document, options, raw), raw)
    targets, targets_in_all = shown_targets(document, judged.verdict.findings)
    return replace(view, result=result_of(judged, view.text, targets, targets_in_all))
