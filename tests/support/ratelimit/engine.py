"""The decision engine on a test bench: questions and answers are values, the clock stands still."""

import pickle
from collections.abc import Mapping, Sequence
from itertools import repeat
from threading import Lock
from typing import TypeVar

from tests.support.manual_clock import ManualClock
from tollgate.actors.ratelimit.counting.counters import (
    Conditional,
    CounterStore,
    Hits,
    LimitedHits,
    LocalCounters,
    Unreachable,
)
from tollgate.actors.ratelimit.counting.routes import Route
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.counter_keys import UNIT_SLOTS
from tollgate.actors.ratelimit.decision.decider import Decider
from tollgate.actors.ratelimit.decision.plan import PlannedHit, Refusal
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.decision.response import RateLimitDecision
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.rules.descriptors import Entries, RateLimitRequest
from tollgate.actors.ratelimit.rules.rule_file import RuleFile
from tollgate.actors.ratelimit.rules.rule_set import RuleSet
from tollgate.actors.ratelimit.statistics.tallies import (
    RULE_STATS,
    RuleTally,
    StatisticsDelta,
    Tallies,
)

DEFAULT_POLICY = Policy()
PartitionAnswers = dict[int, list[list[int]] | Unreachable]
Batch = TypeVar("Batch")


def rules_from(text: str | Mapping[str, str], *, merge_domains: bool = False) -> RuleSet:
    """The rule set of one file's text, or of several by name."""
    files = {"rules.yaml": text} if isinstance(text, str) else text
    return load_rules(
        [RuleFile(name, content) for name, content in files.items()], merge_domains=merge_domains
    )


class Engine:
    """A decider with everything it needs. Several may share a store and a clock."""

    def __init__(
        self,
        rules: RuleSet | str | None,
        *,
        policy: Policy = DEFAULT_POLICY,
        store: CounterStore | None = None,
        partitions: int = 1,
        clock: ManualClock | None = None,
        route: Route | None = None,
    ) -> None:
        self.clock = clock or ManualClock(1_000_000)
        self.store = store or LocalCounters(partitions)
        self.tallies = Tallies("test")
        self._decisions: dict[bytes, RateLimitDecision] = {}
        self._lock = Lock()
        self.decider = Decider(
            policy=policy,
            store=self.store,
            tallies=self.tallies,
            clock=self.clock,
            decode=self._decode,
            render_limit=rendered_limit,
            encode=self._keep,
            route=route,
        )
        if rules is not None:
            self.use(rules)

    def use(self, rules: RuleSet | str) -> None:
        self.decider.use_rules(rules_from(rules) if isinstance(rules, str) else rules)

    def decide(self, *requests: RateLimitRequest) -> list[RateLimitDecision | Refusal]:
        """One batch."""
        answers = self.decider.decide_batch([pickle.dumps(request) for request in requests])
        tokens = {answer for answer in answers if isinstance(answer, bytes)}  # (some share one)
        with self._lock:
            kept = {token: self._decisions.pop(token) for token in tokens}
        return [answer if isinstance(answer, Refusal) else kept[answer] for answer in answers]

    def ask(self, request: RateLimitRequest) -> RateLimitDecision:
        """One request that must be decided."""
        (answer,) = self.decide(request)
        assert isinstance(answer, RateLimitDecision), answer
        return answer

    def _decode(self, payload: bytes) -> RateLimitRequest:
        decoded = pickle.loads(payload)
        assert isinstance(decoded, RateLimitRequest)
        return decoded

    def _keep(self, decision: RateLimitDecision) -> bytes:
        with self._lock:
            token = id(decision).to_bytes(8, "big")
            self._decisions[token] = decision
            return token


def rendered_limit(requests_per_unit: int, unit: Unit, name: str) -> bytes:
    """A limit as test expectations write it: `10/MINUTE`, and the name if there is one."""
    return f"{requests_per_unit}/{unit.name} {name}".rstrip().encode()


def entries(text: str) -> Entries:
    """`k=v,k2=v2` as entries; without `=`, the value is empty."""
    pairs = (entry.partition("=") for entry in text.split(",") if entry)
    return tuple((key, value) for key, _, value in pairs)


def rule_stats(delta: StatisticsDelta) -> dict[str, dict[str, int]]:
    """What was counted per metric key and statistic, zeros left out."""
    named = {
        key: {stat: by for stat, by in zip(RULE_STATS, counts, strict=True) if by}
        for key, counts in {**delta.rules, **delta.dynamic_rules}.items()
    }
    return {key: stats for key, stats in named.items() if stats}


def planned_hit(
    key: bytes = b"k",
    *,
    partition: int = 0,
    unit: Unit = Unit.MINUTE,
    limit: int = 10,
    addend: int = 1,
    is_refund: bool = False,
    is_quota: bool = False,
    metadata: Mapping[str, object] | None = None,
) -> PlannedHit:
    """A hit as the planner makes it."""
    return PlannedHit(
        key=key,
        bucket=partition * UNIT_SLOTS + unit,
        unit=unit,
        limit=limit,
        near=limit,
        addend=addend,
        is_refund=is_refund,
        is_shadow=False,
        is_quota=is_quota,
        tally=RuleTally("d.k", is_dynamic=False),
        limit_wire=rendered_limit(limit, unit, ""),
        metadata=metadata,
    )


class RecordedCounters(LocalCounters):
    """Counters that remember how they were asked, with partitions that can be out of reach.

    Thread-safe.
    """

    def __init__(self, partitions: int = 1) -> None:
        super().__init__(partitions)
        self.calls: list[tuple[str, dict[int, list[LimitedHits] | list[Conditional]]]] = []
        self.unreachable: dict[int, str] = {}
        self._lock = Lock()

    def hit(self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int) -> PartitionAnswers:
        with self._lock:
            self.calls.append(("hit", {number: list(batch) for number, batch in batches.items()}))
            return self._cut_off(batches, super().hit(self._reachable(batches), now_s))

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> PartitionAnswers:
        with self._lock:
            self.calls.append(("conditional", {number: list(b) for number, b in batches.items()}))
            answers = super().hit_conditionally(self._reachable(batches), now_s)
            return self._cut_off(batches, answers)

    def counts(self, now_s: int) -> dict[tuple[int, bytes], int]:
        """What is counted, by window end and key, in windows that have not ended."""
        return {
            (end_s, key): self.tables[number].hit([Hits(end_s, [key], [0])], now_s)[0][0]
            for number, end_s, key in self._asked()
            if end_s > now_s
        }

    def _asked(self) -> set[tuple[int, int, bytes]]:
        asked = set()
        for _, batches in self.calls:
            for number, batch in batches.items():
                for each in batch:
                    ends_s = each.end_s if isinstance(each.end_s, list) else repeat(each.end_s)
                    asked |= {(number, *pair) for pair in zip(ends_s, each.keys, strict=False)}
        return asked

    def _reachable(self, batches: Mapping[int, Batch]) -> dict[int, Batch]:
        return {number: b for number, b in batches.items() if number not in self.unreachable}

    def _cut_off(
        self, batches: Mapping[int, object], answers: PartitionAnswers
    ) -> PartitionAnswers:
        lost = self.unreachable.keys() & batches.keys()
        return answers | {number: Unreachable(self.unreachable[number]) for number in lost}
