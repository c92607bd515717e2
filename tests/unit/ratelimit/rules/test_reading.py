"""Rule text to drafts: known keys, then types (docs/ratelimit.md, B1, steps 2 and 3)."""

import math

import pytest

from tollgate.actors.ratelimit.rules.draft_reader import read_rule_file
from tollgate.actors.ratelimit.rules.drafts import DomainDraft, LimitDraft, Remark, RuleDraft
from tollgate.actors.ratelimit.rules.rule_file import RuleFile, RuleFileError

WHOLE = """\
domain: d
descriptors:
  - key: k
    value: v
    shadow_mode: yes
    quota_mode: true
    detailed_metric: on
    value_to_metric: y
    share_threshold: True
    metadata:
      a: [1, 2.5, null, {b: text}]
    rate_limit:
      unit: minute
      requests_per_unit: 0x10
      name: n
      replaces:
        - name: other
        - {}
    descriptors:
      - key: child
        rate_limit:
          unlimited: true
"""


def read(text: str) -> DomainDraft:
    return read_rule_file(RuleFile("f.yaml", text))


def refusal(text: str) -> RuleFileError:
    with pytest.raises(RuleFileError) as raised:
        read(text)
    return raised.value


def test_every_field_of_a_file_is_read() -> None:
    child = RuleDraft("child", limit=LimitDraft(is_unlimited=True, line=22), line=20)
    rule = RuleDraft(
        key="k",
        value="v",
        limit=LimitDraft("minute", 16, False, "n", ("other", ""), line=13),
        is_shadow=True,
        is_quota=True,
        has_detailed_metric=True,
        has_value_to_metric=True,
        shares_threshold=True,
        metadata={"a": [1, 2.5, None, {"b": "text"}]},
        children=(child,),
        line=3,
    )
    assert read(WHOLE) == DomainDraft("f.yaml", "d", (rule,), line=1)


@pytest.mark.parametrize("text", ["", "~", "# nothing", "{}", "domain:", "domain: ''"])
def test_a_missing_domain_reads_as_empty(text: str) -> None:
    assert read(text).domain == ""


def test_null_fields_are_as_good_as_absent() -> None:
    fields = ("key", "value", "rate_limit", "descriptors", "shadow_mode", "metadata")
    lines = "".join(f"    {field}: ~\n" for field in fields).replace("    key", "  - key", 1)
    assert read(f"domain: d\ndescriptors:\n{lines}").rules == (RuleDraft("", line=3),)
    limits = "{unit: , requests_per_unit: ~, unlimited: null, name: , replaces: }"
    draft = read(f"domain: d\ndescriptors: [{{key: k, rate_limit: {limits}}}]")
    assert draft.rules[0].limit == LimitDraft(line=2)


@pytest.mark.parametrize("text", ["404", "yes", "1_0", "0x1f", "x", "'~'"])
def test_strings_keep_their_source_text(text: str) -> None:
    draft = read(f"domain: {text}\ndescriptors: [{{key: {text}, value: {text}}}]")
    raw = text.strip("'")
    assert (draft.domain, draft.rules[0].key, draft.rules[0].value) == (raw, raw, raw)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("domains: d", 1, "unknown key 'domains'"),
        ("domain: d\nDomain: d", 2, "unknown key 'Domain'"),
        ("0.25: x", 1, "key is not of type string: 0.25"),
        ("1.0: x", 1, "key is not of type string: 1"),
        ("404: x", 1, "key is not of type string: 404"),
        ("yes: x", 1, "key is not of type string: true"),
        ("off: x", 1, "key is not of type string: false"),
        ("~: x", 1, "key is not of type string: <nil>"),
        ("? [a, {b: 1}]\n: x", 1, "key is not of type string: [a map[b:1]]"),
        ("descriptors: [a]", 1, "yaml file contains list of type other than map: a"),
        ("descriptors: [~]", 1, "yaml file contains list of type other than map: <nil>"),
        ("descriptors:\n- [a, 1]", 2, "yaml file contains list of type other than map: [a 1]"),
        ("unit:\n- 1.5", 2, "yaml file contains list of type other than map: 1.5"),
        ("key: {value: {nope: 1}}", 1, "unknown key 'nope'"),
        ("descriptors:\n- key: k\n  nope: 1.5", 3, "unknown key 'nope'"),
    ],
)
def test_the_key_walk(text: str, line: int, reason: str) -> None:
    error = refusal(text)
    assert str(error) == f"f.yaml: config error, {reason}"
    assert error.located == f"f.yaml:{line}: config error, {reason}"


@pytest.mark.parametrize("value", ["1.5", "1e3", ".inf", "08", "9223372036854775808"])
def test_leaves_of_other_types(value: str) -> None:
    error = refusal(f"domain: d\ndescriptors:\n  - key: k\n    value: {value}\n")
    assert str(error) == "f.yaml: error checking config"
    assert error.line == 4


def test_the_largest_integer_is_a_string_like_any_other() -> None:
    draft = read("domain: d\ndescriptors: [{key: k, value: 9223372036854775807}]")
    assert draft.rules[0].value == "9223372036854775807"


def test_the_key_walk_comes_before_types() -> None:
    assert "unknown key" in refusal("domain: [{}]\nnope: 1").reason


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "line 1: cannot unmarshal !!seq into a mapping"),
        ("text", "line 1: cannot unmarshal !!str `text` into a mapping"),
        ("\n1.5", "line 2: cannot unmarshal !!float `1.5` into a mapping"),
        ("domain: {}", "line 1: cannot unmarshal !!map into a string"),
        ("domain: d\ndescriptors: {}", "line 2: cannot unmarshal !!map into a list"),
        ("domain: d\ndescriptors: x", "line 2: cannot unmarshal !!str `x` into a list"),
        ("descriptors: [{key: []}]", "line 1: cannot unmarshal !!seq into a string"),
        ("descriptors: [{rate_limit: []}]", "line 1: cannot unmarshal !!seq into a mapping"),
        ("descriptors: [{rate_limit: no}]", "line 1: cannot unmarshal !!bool `no` into a mapping"),
        (
            "descriptors: [{shadow_mode: 'true'}]",
            "line 1: cannot unmarshal !!str `true` into a boolean",
        ),
        ("descriptors: [{quota_mode: 1}]", "line 1: cannot unmarshal !!int `1` into a boolean"),
        (
            "descriptors: [{rate_limit: {replaces: {name: x}}}]",
            "line 1: cannot unmarshal !!map into a list",
        ),
        *(
            (
                f"descriptors: [{{rate_limit: {{requests_per_unit: {written}}}}}]",
                f"line 1: cannot unmarshal {found} into an integer from 0 to 4294967295",
            )
            for written, found in [
                ("-1", "!!int `-1`"),
                ("4294967296", "!!int `4294967296`"),
                ("'10'", "!!str `10`"),
                ("yes", "!!bool `yes`"),
                ("{}", "!!map"),
            ]
        ),
    ],
)
def test_wrong_types_are_refused_in_the_references_words(text: str, problem: str) -> None:
    reason = f"error loading config file: yaml: unmarshal errors: {problem}"
    assert str(refusal(text)) == f"f.yaml: {reason}"


def test_the_extremes_of_requests_per_unit() -> None:
    for amount in (0, 2**32 - 1):
        text = f"descriptors: [{{rate_limit: {{requests_per_unit: {amount}}}}}]"
        assert read(text).rules[0].limit == LimitDraft(requests_per_unit=amount, line=1)


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ("text", "line 1: metadata is not a mapping"),
        ("[1]", "line 1: metadata is not a mapping"),
        ("{1: a}", "line 1: key is not of type string: 1"),
        ("{a: [{true: b}]}", "line 1: key is not of type string: true"),
        ("{a: .nan}", "line 1: .nan is not a number that JSON has"),
        ("{a: {b: -.inf}}", "line 1: -.inf is not a number that JSON has"),
    ],
)
def test_metadata_that_is_not_json(metadata: str, problem: str) -> None:
    rule = read(f"descriptors: [{{key: k, metadata: {metadata}}}]").rules[0]
    assert rule.metadata is None
    assert rule.metadata_problem == problem


def test_under_metadata_nothing_is_checked() -> None:
    text = "metadata: {any: [1, a], 1.5: x}\ndescriptors: [{metadata: {f: 1.5, l: [1, [2]]}}]"
    rule = read(text).rules[0]
    assert rule.metadata == {"f": 1.5, "l": [1, [2]]}
    assert isinstance(rule.metadata["f"], float)
    assert not math.isnan(rule.metadata["f"])


def test_keys_out_of_place_are_remarked_on() -> None:
    draft = read(
        "domain: d\n"
        "unit: minute\n"
        "descriptors:\n"
        "  - key: k\n"
        "    key: l\n"
        "    name: n\n"
        "    rate_limit:\n"
        "      shadow_mode: not even a boolean\n"
        "      unit: minute\n"
        "      replaces: [{name: a, key: x}]\n"
        "---\n"
        "nope\n"
    )
    assert draft.rules[0].key == "l"
    assert sorted(draft.remarks, key=lambda remark: remark.line or 0) == [
        Remark(2, "'unit' is ignored in the root of the file: it belongs in rate_limit"),
        Remark(4, "'key' is written again below in a descriptor: the last counts, mappings merge"),
        Remark(
            6,
            "'name' is ignored in a descriptor: it belongs in rate_limit or an entry of replaces",
        ),
        Remark(8, "'shadow_mode' is ignored in rate_limit: it belongs in a descriptor"),
        Remark(10, "'key' is ignored in an entry of replaces: it belongs in a descriptor"),
        Remark(11, "only the first document of a file is read: what follows here is ignored"),
    ]


def test_anchors_and_merges_serve_rules() -> None:
    text = (
        "domain: d\n"
        "descriptors:\n"
        "  - key: a\n"
        "    rate_limit: &often {unit: second, requests_per_unit: 9}\n"
        "  - key: b\n"
        "    rate_limit: *often\n"
        "  - key: c\n"
        "    rate_limit: {<<: *often, requests_per_unit: 1}\n"
    )
    limits = [rule.limit for rule in read(text).rules]
    amounts = [(limit.unit, limit.requests_per_unit) for limit in limits if limit is not None]
    assert amounts == [("second", 9), ("second", 9), ("second", 1)]


def test_a_block_that_is_written_twice_is_one() -> None:
    draft = read_rule_file(
        RuleFile(
            "twice.yaml",
            """
domain: d
descriptors:
- key: k
  rate_limit: {unit: hour, requests_per_unit: 3, name: first}
  rate_limit: {unit: day, name: second}
""",
        )
    )
    (rule,) = draft.rules
    assert rule.limit is not None
    assert (rule.limit.unit, rule.limit.requests_per_unit, rule.limit.name) == ("day", 3, "second")
