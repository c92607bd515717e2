"""What a control plane sends, as drafts (B20), and through the same checks as files (B1)."""

from functools import partial
from typing import Any

import pytest
from google.protobuf import any_pb2, struct_pb2

from tests.support.ratelimit.sent_rules import (
    TYPE_URL,
    SentLimit,
    SentRule,
    limited,
    resource,
    written,
)
from tollgate.actors.ratelimit.rules import builder
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.rules.drafts import DomainDraft, LimitDraft, RuleDraft
from tollgate.actors.ratelimit.rules.rule_file import RuleFile, RuleFileError
from tollgate.actors.ratelimit.rules.rule_set import dump
from tollgate.serve.ratelimit.rule_sources import resources
from tollgate.serve.ratelimit.rule_sources.resources import read_resource, resource_files

LOAD = partial(load_rules, merge_domains=False, read=read_resource)


def read(*rules: SentRule) -> DomainDraft:
    return read_resource(RuleFile("edge", written("edge", "shop", *rules)))


def refusal(*packed: any_pb2.Any) -> str:
    with pytest.raises(RuleFileError) as caught:
        LOAD(resource_files(packed))
    return str(caught.value)


def test_every_field_is_read() -> None:
    limit = SentLimit(7, "week", name="mine", replaces=("a", "b"))
    child = SentRule("sub", "v", SentLimit(is_unlimited=True), is_quota=True)
    rule = SentRule(
        *("k", "x*", limit, [child]), is_shadow=True, has_detailed_metric=True, metadata={"a": "b"}
    )
    assert read(rule, limited("other", 1, "second")) == DomainDraft(
        "edge",
        "shop",
        (
            RuleDraft(
                "k",
                "x*",
                LimitDraft("WEEK", 7, name="mine", replaces=("a", "b")),
                is_shadow=True,
                has_detailed_metric=True,
                metadata={"a": "b"},
                children=(
                    RuleDraft(
                        "sub",
                        "v",
                        LimitDraft("", 0, is_unlimited=True),
                        is_quota=True,
                    ),
                ),
            ),
            RuleDraft("other", limit=LimitDraft("SECOND", 1)),
        ),
    )


@pytest.mark.parametrize(
    ("number", "name"),
    list(enumerate(("SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "WEEK"), start=1)),
)
def test_units_have_the_numbers_of_the_wire(number: int, name: str) -> None:
    packed = resource("edge", "shop", SentRule("k", limit=SentLimit(3, number)))
    assert f"shop.k: unit={name} requests_per_unit=3," in dump(LOAD(resource_files([packed])))


def test_a_rule_without_a_limit_and_one_of_zero() -> None:
    draft = read(SentRule("k"), SentRule("z", limit=SentLimit(0, "minute")))
    assert [rule.limit for rule in draft.rules] == [None, LimitDraft("MINUTE", 0)]


def test_metadata_is_what_json_has() -> None:
    sent = {"n": 1, "f": 1.5, "t": True, "none": None, "in": {"list": [1, {"x": "y"}]}}
    (rule,) = read(SentRule("k", metadata=sent)).rules
    assert (rule.metadata, rule.metadata_problem) == (sent, "")


def test_all_shapes_of_rules() -> None:
    shapes = [
        limited("k1", 3, "minute", "v1"),
        SentRule("k2", children=[limited("sub", 5, "second"), limited("sub", 6, "second", "v")]),
        SentRule("k3", limit=SentLimit(is_unlimited=True)),
        SentRule("k4", limit=SentLimit(1, "day"), is_shadow=True),
        SentRule("k5", limit=SentLimit(2, "day"), is_quota=True),
        SentRule("k6", "a", SentLimit(9, "hour"), [limited("deep", 8, "month")]),
    ]
    assert dump(LOAD(resource_files([resource("edge", "foo", *shapes)]))).splitlines() == [
        "foo.k1_v1: unit=MINUTE requests_per_unit=3, shadow_mode: false, quota_mode: false",
        "foo.k2.sub: unit=SECOND requests_per_unit=5, shadow_mode: false, quota_mode: false",
        "foo.k2.sub_v: unit=SECOND requests_per_unit=6, shadow_mode: false, quota_mode: false",
        "foo.k3: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false",
        "foo.k4: unit=DAY requests_per_unit=1, shadow_mode: true, quota_mode: false",
        "foo.k5: unit=DAY requests_per_unit=2, shadow_mode: false, quota_mode: true",
        "foo.k6_a.deep: unit=MONTH requests_per_unit=8, shadow_mode: false, quota_mode: false",
        "foo.k6_a: unit=HOUR requests_per_unit=9, shadow_mode: false, quota_mode: false",
    ]


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        ([resource("edge", "")], "edge: config file cannot have empty domain"),
        ([resource("edge", "d", SentRule(""))], "edge: descriptor has empty key"),
        (
            [resource("edge", "d", SentRule("k", limit=SentLimit(0, 0)))],
            "edge: invalid rate limit unit 'UNKNOWN'",
        ),
        (
            [resource("edge", "d", SentRule("k", limit=SentLimit(1, 9)))],
            "edge: invalid rate limit unit '9'",
        ),
        (
            [resource("edge", "d", SentRule("k", limit=SentLimit(0, "day", is_unlimited=True)))],
            "edge: should not specify rate limit unit when unlimited",
        ),
        (
            [resource("b", "d", limited("k", 1)), resource("a", "d", limited("k", 2))],
            "b: duplicate domain 'd' in config file",
        ),
        (
            [resource("edge", "d", limited("k", 1), limited("k", 2))],
            "edge: duplicate descriptor composite key 'd.k'",
        ),
        (
            [resource("a", "d"), any_pb2.Any(type_url=TYPE_URL, value=b"\x0a")],
            "resource 2 of 2: cannot be decoded as ratelimit.config.ratelimit.v3.RateLimitConfig",
        ),
        (
            [any_pb2.Any(type_url="type.googleapis.com/other", value=b"")],
            f"resource 1 of 1: is of type 'type.googleapis.com/other', and not '{TYPE_URL}'",
        ),
    ],
)
def test_what_is_wrong_is_refused_by_name(packed: list[any_pb2.Any], text: str) -> None:
    assert refusal(*packed) == text


def test_a_number_that_json_has_not() -> None:
    struct = struct_pb2.Struct()
    struct.fields["x"].number_value = float("nan")
    content = written("edge", "d")
    inner = b"\x0a\x01k\x42" + bytes([len(struct.SerializeToString())])
    inner += struct.SerializeToString()
    content += b"\x1a" + bytes([len(inner)]) + inner
    with pytest.raises(RuleFileError, match=r"edge: error parsing metadata: .*NaN"):
        LOAD([RuleFile("edge", content)])


def test_several_domains_and_merged_ones() -> None:
    packed = [resource("a", "d", limited("k", 1)), resource("b", "d", limited("j", 2))]
    files = resource_files([*packed, resource("c", "e")])
    rules = load_rules(files, merge_domains=True, read=read_resource)
    assert {domain: sorted(level.exact) for domain, level in rules.domains.items()} == {
        "d": ["j", "k"],
        "e": [],
    }


def nested(depth: int) -> Any:
    rule = SentRule("k", limit=SentLimit(1, "day"))
    for _ in range(depth - 1):
        rule = SentRule("k", children=[rule])
    return resource("edge", "d", rule)


def test_nesting_has_an_end() -> None:
    assert len(dump(LOAD(resource_files([nested(90)]))).splitlines()) == 1
    assert "cannot be decoded" in refusal(nested(120))


def test_there_are_not_more_resources_and_descriptors_than_are_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for each in (resources, builder):
        monkeypatch.setattr(each, "DESCRIPTORS_MAX", 3)
    monkeypatch.setattr(resources, "RESOURCES_MAX", 2)
    three = [SentRule("k", children=[SentRule("a")]), SentRule("j")]
    assert LOAD(resource_files([resource("edge", "d", *three)])).domains.keys() == {"d"}
    four = [*three, SentRule("i")]
    assert refusal(resource("edge", "d", *four)) == "edge: has more than 3 descriptors"
    together = [resource("edge", "d", *three), resource("fair", "e", SentRule("k"))]
    assert refusal(*together) == (
        "fair: the files so far have more than 3 descriptors together: take some out"
    )
    packed = [resource(name, name) for name in "abc"]
    assert refusal(*packed) == "the response: has more than 2 resources"
