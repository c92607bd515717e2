"""`docs/catalog-auth.md` is true: its examples are run, its tables and rules are the code's."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.catalog_auth.api import PREFIX, CatalogApi
from tests.support.catalog_auth.rule_table import DOCUMENT, anchors, rule_text, written
from tests.support.console_blocks import Answer, Story, curl_call, examples
from tollgate.serve.catalog_auth.api.problems import KINDS
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.rule import CatalogRule
from tollgate.serve.catalog_auth.rules.source_links import LAW_BOOK, segments
from tollgate.serve.commands.catalog.command import catalog

TEXT = DOCUMENT.read_text(encoding="utf-8")
# Where the examples say that the service is.
BASE = f"http://localhost:8080{PREFIX}"


def test_the_rules_are_those_of_the_code() -> None:
    anew = "run `python -m tests.support.catalog_auth.rule_table`, and read what it has changed"
    assert written() == rule_text(), anew


def test_the_problems_are_those_of_the_code() -> None:
    told = re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \|$", TEXT, re.MULTILINE)
    assert told == [(kind.kind, str(kind.status)) for kind in KINDS]


def test_the_examples_are_what_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCUMENT.parents[1])
    api = CatalogApi()

    def run(arguments: list[str]) -> Answer:
        program, *arguments = arguments
        if program == "curl":
            call = curl_call(arguments)
            path = call.url.removeprefix(BASE)
            response = api.call(call.method, path, headers=call.headers, content=call.body)
            return Answer(response.text, response.status_code, response.reason_phrase)
        assert (program, arguments.pop(0)) == ("tollgate", "catalog"), program
        return Answer(CliRunner().invoke(catalog, arguments).output)

    story = Story(run, {})
    found = list(examples(TEXT))
    assert len(found) >= 5
    for example in found:
        try:
            story.tell(example)
        except (AssertionError, LookupError, TypeError, ValueError) as error:
            place = f"{Path(LAW_BOOK).name}:{example.line}"
            raise AssertionError(f"{place}: {example.command}") from error


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_the_source_of_a_rule_can_be_read_somewhere(rule: CatalogRule) -> None:
    found = [each for each in segments(rule.source) if each.url or each.label]
    assert found or rule.source == "CEOS-STAC-REQ-8510.", rule.source
    assert "".join(each.text for each in segments(rule.source)) == rule.source
    for each in found:
        assert each.url.startswith("https://") or each.label in anchors(TEXT), each


def test_the_page_of_a_rule_leads_to_its_source() -> None:
    page = CatalogApi().call("GET", "/rules/R15", headers={"accept": "text/html"}).text
    assert '<a href="https://www.rfc-editor.org/rfc/rfc8693#section-2.1">RFC 8693, 2.1</a>' in page
