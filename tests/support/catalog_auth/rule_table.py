"""The rules as `docs/catalog-auth.md` shows them, made from the rules in the code.

`python -m tests.support.catalog_auth.rule_table` writes that part of the document anew.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, Profile
from tollgate.serve.catalog_auth.rules.source_links import segments

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "catalog-auth.md"
BEGIN, END = "<!-- rules: begin -->\n", "<!-- rules: end -->"


def rule_text() -> str:
    """What stands between the two marks."""
    return "\n".join([*_table(), "", *_sections()])


def written() -> str:
    """What stands there now."""
    return DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def anchors(document: str) -> dict[str, str]:
    """The anchor of each labelled heading, as GitHub makes it."""
    return {
        found[1]: re.sub(r"[^\w -]", "", found[0].lstrip("# ").lower()).replace(" ", "-")
        for found in re.finditer(r"^#{1,4} ([A-Z]\d*)\. .+$", document, re.MULTILINE)
    }


def _table() -> Iterator[str]:
    sections = anchors(DOCUMENT.read_text(encoding="utf-8"))
    yield "| rule | level | what is wrong | source |"
    yield "|---|---|---|---|"
    for rule in RULES.values():
        link = f"[{rule.id}](#{_anchor(rule)})"
        yield f"| {link} | {_level(rule)} | {_cell(rule.says)} | {_source(rule, sections)} |"


def _sections() -> Iterator[str]:
    for rule in RULES.values():
        yield f"#### {rule.id}. {rule.name}"
        yield f"{_plain(rule.why)} *Repair:* {_plain(rule.repair)}"
        others = _profiles(rule)
        if others:
            yield f"*{others}.*"
        yield ""


def _anchor(rule: CatalogRule) -> str:
    return f"{rule.id.lower()}-{rule.name}"


def _level(rule: CatalogRule) -> str:
    return rule.severity.value if rule.is_on_by_default else "off"


def _profiles(rule: CatalogRule) -> str:
    """Where its findings are as bad as nowhere else, and since when it holds."""
    told = [
        f"{profile.value}: {severity.value}"
        for profile in Profile
        if (severity := rule.profiles.get(profile)) is not None
    ]
    if rule.since is not None:
        told.append(f"demanded since v{rule.since}")
    return "; ".join(told)


def _source(rule: CatalogRule, sections: dict[str, str]) -> str:
    return "".join(
        f"[{each.text}]({each.url or '#' + sections[each.label]})"
        if each.url or each.label
        else _cell(each.text)
        for each in segments(rule.source)
    )


def _plain(text: str) -> str:
    """A text that Markdown leaves as it is."""
    return re.sub(r"(?<!`)(<[A-Z]+>\w*)", r"`\1`", text)


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


if __name__ == "__main__":
    before, begin, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    DOCUMENT.write_text(before + begin + rule_text() + rest[rest.index(END) :], encoding="utf-8")
