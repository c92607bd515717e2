"""The decision engine on a test bench: questions and answers are values, the clock stands still."""

import pickle
from collections.abc import Mapping
from threading import Lock

from actors.kernel.clock import ManualClock
from actors.ratelimit.decision import Decider
from actors.ratelimit.descriptors import Entries, Request
from actors.ratelimit.local_counters import LocalCounters
from actors.ratelimit.policy import Policy
from actors.ratelimit.refusals import Refusal
from actors.ratelimit.rounds import CounterStore
from actors.ratelimit.rule_building import load_rules
from actors.ratelimit.rule_files import RuleFile
from actors.ratelimit.rules import RuleSet
from actors.ratelimit.tallies import RULE_STATS, StatisticsDelta, Tallies
from actors.ratelimit.verdict import Decision
from actors.ratelimit.windows import Unit

DEFAULT_POLICY = Policy()


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
    ) -> None:
        self.clock = clock or ManualClock(1_000_000)
        self.store = store or LocalCounters(partitions)
        self.tallies = Tallies("test")
        self._decisions: dict[bytes, Decision] = {}
        self._lock = Lock()
        self.decider = Decider(
            policy=policy,
            store=self.store,
            tallies=self.tallies,
            clock=self.clock,
            decode=pickle.loads,
            render_limit=rendered_limit,
            encode=self._keep,
        )
        if rules is not None:
            self.use(rules)

    def use(self, rules: RuleSet | str) -> None:
        self.decider.use_rules(rules_from(rules) if isinstance(rules, str) else rules)

    def decide(self, *requests: Request) -> list[Decision | Refusal]:
        """One batch."""
        answers = self.decider.decide_batch([pickle.dumps(request) for request in requests])
        with self._lock:
            return [
                answer if isinstance(answer, Refusal) else self._decisions.pop(answer)
                for answer in answers
            ]

    def ask(self, request: Request) -> Decision:
        """One request that must be decided."""
        (answer,) = self.decide(request)
        assert isinstance(answer, Decision), answer
        return answer

    def _keep(self, decision: Decision) -> bytes:
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
