"""A check as the page asks for it: repairs applied, the judgement, and the ways to each asset."""

from dataclasses import replace
from importlib.resources import files

from serve.catalog_auth.decoding import UnreadableError, decode
from serve.catalog_auth.desk import Desk
from serve.catalog_auth.envelopes import Asked, with_asked
from serve.catalog_auth.findings import JsonValue
from serve.catalog_auth.judging import judge_value
from serve.catalog_auth.locating import locate
from serve.catalog_auth.page_targets import shown_targets
from serve.catalog_auth.page_view import ShownProblem, View, problem_at, result_of
from serve.catalog_auth.report import Options
from serve.catalog_auth.rule import Profile

ALL = "all"
NAME = "document"


def checked(desk: Desk, text: str, profile: str | None, repair: str | None) -> View:
    """The page for this text. `repair`: which repair to apply before, by its number, or all."""
    known = Profile(profile) if profile in tuple(Profile) else desk.options.profile
    options = with_asked(desk.options, Asked(profile=known))
    # (a form sends the ends of lines as the network writes them)
    text = text.replace("\r\n", "\n")
    view = View(text=text, profile=known.value)
    raw = text.encode(errors="replace")
    if len(raw) > desk.document_bytes_max:
        told = f"The document is larger than {desk.document_bytes_max:,} bytes."
        return replace(view, problem=ShownProblem(told))
    try:
        root = decode(raw)
    except UnreadableError as error:
        told = f"It is not JSON: {error.reason} (line {error.line}, column {error.column})."
        return replace(view, problem=problem_at(told, text, error.line, error.column))
    return _judged(view, root, raw, options)


def example_text() -> str:
    """A document to try the page with: it has something to find, to repair and to get at."""
    return files("serve.catalog_auth").joinpath("page", "example.json").read_text("utf-8")


def _judged(view: View, root: JsonValue, raw: bytes, options: Options) -> View:
    judged = judge_value(root, raw, NAME, options)
    document = locate(root, version=options.version, raw=raw)
    targets, targets_in_all = shown_targets(document, judged.verdict.findings)
    return replace(view, result=result_of(judged, view.text, targets, targets_in_all))
