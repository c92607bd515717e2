"""The lines of the debug port's dump (B18)."""

from tollgate.actors.ratelimit.rules.builder import RuleFile, load_rules
from tollgate.actors.ratelimit.rules.rule_set import RuleSet, dump


def dumped(text: str) -> str:
    return dump(load_rules([RuleFile("f", text)], merge_domains=False))


def test_rules_without_limits_dump_nothing() -> None:
    assert dump(RuleSet({})) == ""
    assert dumped("domain: d\ndescriptors: [{key: k}]") == ""


def test_a_limit_is_one_line() -> None:
    text = (
        "domain: foo\n"
        "descriptors: [{key: k1, value: v1, rate_limit: {unit: minute, requests_per_unit: 3}}]"
    )
    line = "foo.k1_v1: unit=MINUTE requests_per_unit=3, shadow_mode: false, quota_mode: false\n"
    assert dumped(text) == line


def test_an_unlimited_rule_has_an_unknown_unit() -> None:
    text = "domain: foo\ndescriptors: [{key: k, rate_limit: {unlimited: true}}]"
    line = "foo.k: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false\n"
    assert dumped(text) == line


def test_every_limit_of_every_level_in_order() -> None:
    lines = dumped(
        """
        domain: d
        descriptors:
          - key: z
            shadow_mode: true
            rate_limit: {unit: week, requests_per_unit: 1}
            descriptors:
              - {key: b, value: x*, quota_mode: true, rate_limit: {unit: day}}
              - {key: a}
          - {key: a, rate_limit: {unit: second, requests_per_unit: 4294967295}}
        """
    ).splitlines()
    assert lines == [
        "d.a: unit=SECOND requests_per_unit=4294967295, shadow_mode: false, quota_mode: false",
        "d.z.b_x*: unit=DAY requests_per_unit=0, shadow_mode: false, quota_mode: true",
        "d.z: unit=WEEK requests_per_unit=1, shadow_mode: true, quota_mode: false",
    ]
