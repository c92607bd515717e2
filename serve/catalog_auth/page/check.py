"""A check as the page asks for it: repairs applied, the judgement, and the ways to each asset."""

import json
from dataclasses import replace
from importlib.resources import files

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.api.context import CatalogContext
from tollgate.serve.catalog_auth.api.envelopes import Asked, with_asked
from tollgate.serve.catalog_auth.document.decoding import (
    TooMuchError,
    UnreadableError,
    decode_foreign,
)
from tollgate.serve.catalog_auth.document.locator import locate
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

ALL = "all"
NAME = "document"


def page_view(context: CatalogContext, text: str, profile: str | None, repair: str | None) -> View:
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
    text = json.dumps(root, ensure_ascii=False, indent=2)
    view = replace(view, text=text, repaired=said)
    return _judged(view, root, text.encode(errors="replace"), options)


def example_document() -> str:
    """A document to try the page with: it has something to find, to repair and to get at."""
    return files("tollgate.serve.catalog_auth.page").joinpath("example.json").read_text("utf-8")


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
