"""Ways through the rules are kept for texts of the rules, and for no text of requests."""

import pytest

from tests.support.ratelimit.engine import rendered_limit, rules_from
from tollgate.actors.ratelimit.decision import rule_paths
from tollgate.actors.ratelimit.decision.hit_templates import TemplateWriter
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.decision.rule_paths import DomainPaths
from tollgate.actors.ratelimit.statistics.tallies import Tallies

RULES = rules_from("""
domain: d
descriptors:
  - {key: any, rate_limit: {unit: minute, requests_per_unit: 1}}
  - {key: path, value: /exact, rate_limit: {unit: minute, requests_per_unit: 2}}
  - {key: path, value: /w*, rate_limit: {unit: minute, requests_per_unit: 3}}
  - {key: loose*, rate_limit: {unit: minute, requests_per_unit: 4}}
""")


def domain_paths() -> DomainPaths:
    writer = TemplateWriter(Policy(), Tallies("test"), rendered_limit)
    return DomainPaths("d", RULES.domains["d"], writer.of_rules)


def limit(paths: DomainPaths, key: str, value: str) -> int | None:
    path = paths.root.after(key, value)
    return None if path is None or path.template is None else path.template.limit


def test_a_path_is_made_once_for_all_values_of_a_key() -> None:
    root = domain_paths().root
    assert root.after("any", "1") is root.after("any", "2")
    assert root.after("path", "/exact") is root.after("path", "/exact")
    assert root.after("path", "/w1") is root.after("path", "/w2")
    assert root.after("path", "/exact") is not root.after("path", "/w1")


@pytest.mark.parametrize(
    ("key", "expected", "kept"),
    [
        pytest.param("any", 1, 1, id="a rule's key"),
        pytest.param("loose-{}", 4, 0, id="a key that a pattern reaches into"),
        pytest.param("unknown-{}", None, 0, id="a key that meets nothing"),
    ],
)
def test_keys_of_requests_are_not_kept(key: str, expected: int | None, kept: int) -> None:
    paths = domain_paths()
    for number in range(100):
        assert limit(paths, key.format(number), str(number)) == expected
    assert paths.kept == kept


def test_beyond_the_maximum_ways_are_looked_up_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_paths, "PATHS_MAX", 1)
    paths = domain_paths()
    for _ in range(2):
        assert limit(paths, "any", "1") == 1
        assert limit(paths, "path", "/exact") == 2
        assert limit(paths, "path", "/w") == 3
    assert paths.kept == 1
