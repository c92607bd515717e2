"""Whatever a control plane sends, it is rules or a refusal: reading it gives nothing else."""

from functools import partial

from google.protobuf import any_pb2
from hypothesis import given
from hypothesis import strategies as st

from tests.support.ratelimit.sent_rules import TYPE_URL, SentLimit, SentRule, written
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.rules.rule_file import RuleFileError
from tollgate.actors.ratelimit.rules.rule_set import dump
from tollgate.serve.ratelimit.rule_sources.resources import read_resource, resource_files

LOAD = partial(load_rules, merge_domains=True, read=read_resource)
WORDS = st.text("ab*_. \x00ä😀", max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
LIMITS = st.builds(
    SentLimit,
    requests=st.integers(0, 2**32 - 1),
    unit=st.integers(0, 9) | st.just(2**31 - 1),
    is_unlimited=st.booleans(),
    name=WORDS,
    replaces=st.lists(WORDS, max_size=2),
)
RULES = st.recursive(
    st.builds(SentRule, WORDS, WORDS, st.none() | LIMITS),
    lambda inner: st.builds(
        SentRule,
        *(WORDS, WORDS, st.none() | LIMITS, st.lists(inner, max_size=3)),
        is_shadow=st.booleans(),
        is_quota=st.booleans(),
        has_detailed_metric=st.booleans(),
        metadata=st.none() | st.dictionaries(WORDS, JSON, max_size=3),
    ),
    max_leaves=8,
)
CONFIGS = st.builds(
    lambda name, domain, rules: written(name, domain, *rules),
    *(WORDS,) * 2,
    (st.lists(RULES, max_size=4)),
)


def taken(contents: list[bytes]) -> bool:
    """Whether these resources are rules: then they can be shown. Anything but a refusal raises."""
    packed = [any_pb2.Any(type_url=TYPE_URL, value=content) for content in contents]
    try:
        rules = LOAD(resource_files(packed))
    except RuleFileError as error:
        error.located.encode()
        return False
    dump(rules).encode()
    return True


@given(st.lists(CONFIGS, max_size=3))
def test_well_formed_resources(contents: list[bytes]) -> None:
    taken(contents)


@given(CONFIGS, st.integers(0), st.binary(max_size=3), st.integers(0, 3))
def test_damaged_resources(content: bytes, at: int, patch: bytes, cut: int) -> None:
    position = at % (len(content) + 1)
    taken([content[:position] + patch + content[position + cut :]])


@given(st.binary(max_size=200))
def test_noise(content: bytes) -> None:
    taken([content])


def test_what_is_right_is_taken() -> None:
    assert taken([written("a", "d", SentRule("k", limit=SentLimit(1, "day")))])
