"""One front that borrows, against the same front that asks for every hit: nobody can tell them
apart by codes, remainders, resets, headers, statistics or counters."""

from hypothesis import given
from hypothesis import strategies as st

from tests.property.ratelimit.test_decider import RULES, Traffic, seen, traffic
from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.borrowed_counters import Branch
from tests.support.ratelimit.engine import Engine, RecordedCounters, rule_stats, rules_from
from tollgate.actors.kernel.hashing import stable_hash
from tollgate.actors.ratelimit.counting.counters import LimitedHits
from tollgate.actors.ratelimit.decision.policy import HeaderNames, Policy
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.rules.rule_set import RuleSet

START_S = 1_000_000
POLICIES = st.builds(
    Policy,
    is_shadow_mode=st.booleans(),
    is_quota_mode=st.booleans(),
    stops_when_over=st.booleans(),
    local_cache_bytes=st.sampled_from([0, 0, 500, 65_536]),
    headers=st.just(HeaderNames()),
)
TERMS = st.sampled_from(
    [
        Terms(),
        Terms(handed_over_max=-1),  # nothing is lent whole
        Terms(items_per_message_max=1, reported_max=1),
    ]
)
PARTITIONS = st.sampled_from([1, 2, 3])
# What the requests of `traffic` ask for, under limits of all kinds.
_RULE = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["a", "b", "shady", "quota", "files", "named", "other", "detail"]),
        "unit": st.sampled_from(["second", "minute", "hour", "day", "week", "month", "year"]),
        "requests_per_unit": st.sampled_from([0, 1, 2, 5, 1_000]),
        "shadow_mode": st.booleans(),
        "quota_mode": st.booleans(),
    }
)
RULE_SETS = st.lists(_RULE, min_size=1, max_size=6, unique_by=lambda rule: rule["key"])


def rule_set(rules: list[dict[str, object]]) -> RuleSet:
    lines = [
        "  - {{key: {key}, shadow_mode: {shadow_mode}, quota_mode: {quota_mode}, rate_limit: "
        "{{unit: {unit}, requests_per_unit: {requests_per_unit}}}}}".format(**rule)
        for rule in rules
    ]
    return rules_from("\n".join(["domain: d", "descriptors:", *lines, ""]))


class Twins:
    """The same engine twice, with what it is asked and what it says."""

    def __init__(self, rules: RuleSet, policy: Policy, partitions: int, terms: Terms) -> None:
        self._counters = RecordedCounters(partitions)
        self._direct = Engine(
            rules, policy=policy, store=self._counters, clock=ManualClock(START_S)
        )
        self._branch = Branch(ManualClock(START_S), partitions=partitions, terms=terms)
        (self._front,) = self._branch.fronts
        self._lent = Engine(rules, policy=policy, store=self._front, clock=self._branch.clock)
        self._branch.exchange()

    def run(self, requests: Traffic) -> None:
        for wait_s, batch in requests:
            self._direct.clock.advance(wait_s)
            self._branch.rest(wait_s)
            asked = [self._direct.decide(*batch), self._lent.decide(*batch)]
            direct, lent = [[seen(answer) for answer in answers] for answers in asked]
            assert lent == direct
            assert self._statistics(self._lent) == self._statistics(self._direct)
        self._compare_counters()

    def _statistics(self, engine: Engine) -> object:
        delta, cache = engine.tallies.drain(), engine.decider.cache
        gauges = None if cache is None else (len(cache), str(cache.gauges))
        return rule_stats(delta), delta.unknown_domains, delta.counts, gauges

    def _compare_counters(self) -> None:
        now_s = int(self._direct.clock.now_s())
        for (end_s, key), count in self._counters.counts(now_s).items():
            partition = stable_hash(key) % self._front.partitions
            look = [LimitedHits(end_s, [key], [0], [1])]
            assert self._front.hit({partition: look}, now_s)[partition] == [[count]]


@given(traffic(), POLICIES, PARTITIONS, TERMS)
def test_borrowing_changes_nothing_that_can_be_seen(
    requests: Traffic, policy: Policy, partitions: int, terms: Terms
) -> None:
    Twins(RULES, policy, partitions, terms).run(requests)


@given(RULE_SETS, traffic(), POLICIES, PARTITIONS, TERMS)
def test_borrowing_changes_nothing_whatever_the_rules(
    rules: list[dict[str, object]],
    requests: Traffic,
    policy: Policy,
    partitions: int,
    terms: Terms,
) -> None:
    Twins(rule_set(rules), policy, partitions, terms).run(requests)
