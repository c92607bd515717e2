"""The decider: batches of requests in, answers out, in the same order and of the same length.

    plan every request -> place its hits in a round -> count the round, one call per partition
      -> judge the counts in order (B7) -> statuses, overall code, headers (B12, B13) -> encode

Several threads may call it. What they share, the tallies and the local over-limit cache, has a
lock, which nobody holds for more than HELD_REQUESTS_MAX requests: not while requests are planned,
counted or encoded, so a small batch never waits for a large one to be through.
"""

from collections.abc import Callable, Sequence
from threading import Lock

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.counters import CounterStore, Unreachable
from tollgate.actors.ratelimit.counting.overlimit_cache import OverLimitCache
from tollgate.actors.ratelimit.counting.routes import Route, spread_over
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.increment_stop import count_conditionally
from tollgate.actors.ratelimit.decision.judge import (
    CACHED_OVER,
    SERVICE_ERROR,
    Decided,
    HitSlot,
    Judge,
    Planned,
)
from tollgate.actors.ratelimit.decision.plan import (
    NOT_CONFIGURED,
    PlannedHit,
    Refusal,
    RequestPlan,
    refused_outright,
)
from tollgate.actors.ratelimit.decision.planner import RequestPlanner
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.decision.response import RateLimitDecision
from tollgate.actors.ratelimit.decision.round import Bucket, Round, WindowEnds
from tollgate.actors.ratelimit.rules.descriptors import RateLimitRequest
from tollgate.actors.ratelimit.rules.rule_set import RuleSet
from tollgate.actors.ratelimit.statistics.tallies import Tallies

HELD_REQUESTS_MAX = 128

DecidedAnswer = bytes | Refusal


class Decider:
    """Decides batches under the rules in force. `route`: to the counters in the store; None: they
    are spread over its partitions."""

    def __init__(
        self,
        *,
        policy: Policy,
        store: CounterStore,
        tallies: Tallies,
        clock: Clock,
        decode: Callable[[bytes], RateLimitRequest | Refusal],
        render_limit: Callable[[int, Unit, str], bytes],
        encode: Callable[[RateLimitDecision], bytes | Refusal],
        route: Route | None = None,
    ) -> None:
        self._policy = policy
        self._store = store
        self._tallies = tallies
        self._clock = clock
        self._decode = decode
        self._render_limit = render_limit
        self._encode = encode
        self._route = route or spread_over(store.partitions)
        self._lock = Lock()
        self.batches = 0
        """Roughly, for several threads count here."""
        self._planner: RequestPlanner | None = None
        self._cache = OverLimitCache(policy.local_cache_bytes) if policy.local_cache_bytes else None
        self._window_ends = WindowEnds(0, has_calendar_months=policy.has_calendar_months)
        self._judge = Judge(policy, tallies, self._cache)

    @property
    def cache(self) -> OverLimitCache | None:
        """The local over-limit cache, when there is one."""
        return self._cache

    def forget_over_limit(self) -> None:
        """Ask for every counter again: some may not be over their limit any more."""
        if self._cache is not None:
            with self._lock:
                self._cache.clear()

    def use_rules(self, rules: RuleSet) -> None:
        """Put a rule set in force for every batch that begins from now on."""
        planner = RequestPlanner(
            rules,
            policy=self._policy,
            route=self._route,
            tallies=self._tallies,
            decode=self._decode,
            render_limit=self._render_limit,
        )
        self._planner = planner

    def decide_batch(self, payloads: Sequence[bytes]) -> list[DecidedAnswer]:
        """Decide serialised requests. Blocks for the store, no longer than its deadline (twice that
        where counting is conditional)."""
        self.batches += 1
        round_ = Round(self._ends_s())
        planner = self._planner
        if planner is None:
            plans = list(map(self._plan_without_rules, payloads))
        else:
            plans = planner.plan_all(payloads)
        if self._policy.stops_when_over:
            places = self._count_conditionally(plans, round_)
        else:
            places = self._place(plans, round_)
            round_.count(self._store)
        answers: list[DecidedAnswer] = []
        judged = 0
        for share in _shares(plans):
            with self._lock:
                decided, judged = self._judge.judge(share, places, judged, round_)
            # Encoding takes as long as judging: time enough for another thread to get the lock.
            self._answer_all(decided, answers)
        assert judged == len(places), "every hit was placed once and judged once"
        return answers

    def _ends_s(self) -> WindowEnds:
        now_s = int(self._clock.now_s())
        ends_s = self._window_ends
        if ends_s.now_s != now_s:
            has_months = self._policy.has_calendar_months
            ends_s = self._window_ends = WindowEnds(now_s, has_calendar_months=has_months)
        return ends_s

    def _answer_all(self, decided: Sequence[Decided], answers: list[DecidedAnswer]) -> None:
        """Encode decisions; equal ones that stand beside each other are one object (see `Judge`),
        and are encoded once."""
        note = answers.append
        last: Decided | None = None
        answer: DecidedAnswer = b""
        for each in decided:
            if each is not last:
                answer, last = self._answer(each), each
            note(answer)

    def _answer(self, decided: Decided) -> DecidedAnswer:
        if type(decided) is not RateLimitDecision:
            assert isinstance(decided, Refusal), "a request is decided or refused"
            return decided
        answer = self._encode(decided)
        if type(answer) is Refusal:
            self._tallies.count(SERVICE_ERROR)
        return answer

    def _plan_without_rules(self, payload: bytes) -> RequestPlan | Refusal:
        request = self._decode(payload)
        if isinstance(request, Refusal):
            return request
        return refused_outright(request) or NOT_CONFIGURED

    def _place(self, plans: Sequence[Planned], round_: Round) -> list[HitSlot]:
        """Put every hit in its bucket: (bucket, slot) per hit, in the order of the plans."""
        places: list[HitSlot] = []
        if self._cache is None:
            self._place_share(plans, round_, places)
            return places
        for share in _shares(plans):
            with self._lock:
                self._place_share(share, round_, places)
        return places

    def _place_share(self, plans: Sequence[Planned], round_: Round, places: list[HitSlot]) -> None:
        cache = self._cache
        last: RequestPlan | None = None
        again: Sequence[HitSlot] = ()
        for plan in plans:
            if type(plan) is not RequestPlan:
                continue
            if plan is not last:
                last, again = plan, ()
            elif again or (cache is None and _is_repeatable(plan)):
                again = again or places[-len(plan.hits) :]
                for (bucket, slot), hit in zip(again, plan.hits, strict=True):
                    assert bucket is not None, "without a cache every hit has a bucket"
                    bucket.addends[slot] += hit.addend
                places += again
                continue
            for hit in plan.hits:
                if cache is not None and self._is_cached_over(cache, hit, round_):
                    places.append((None, CACHED_OVER))
                    continue
                bucket = round_.bucket(hit)
                places.append((bucket, bucket.place(hit)))
        if cache is not None:
            # What is given back from now on may come after the count that follows.
            round_.drops = cache.drops

    def _is_cached_over(self, cache: OverLimitCache, hit: PlannedHit, round_: Round) -> bool:
        if hit.is_refund:
            cache.drop(hit.key)
            return False
        return cache.holds(hit.key, round_.end_s(hit.unit), hit.limit)

    def _count_conditionally(self, plans: Sequence[Planned], round_: Round) -> list[HitSlot]:
        """B9: like `_place` and the count together, with requests kept whole."""
        places: list[HitSlot | None] = []
        requests: list[list[PlannedHit]] = []
        addends: list[list[int]] = []
        for share in _shares(plans):
            with self._lock:
                self._spare(share, round_, places, requests, addends)
        counts = count_conditionally(requests, addends, round_, self._store)
        outcomes = (
            _counted_place(hit, after, round_)
            for hits, afters in zip(requests, counts, strict=True)
            for hit, after in zip(hits, afters, strict=True)
        )
        return [next(outcomes) if place is None else place for place in places]

    def _spare(
        self,
        plans: Sequence[Planned],
        round_: Round,
        places: list[HitSlot | None],
        requests: list[list[PlannedHit]],
        addends: list[list[int]],
    ) -> None:
        """Divide the hits of each request into those known to be over and those to count."""
        cache = self._cache
        for plan in plans:
            if type(plan) is not RequestPlan:
                continue
            counted = []
            for hit in plan.hits:
                is_cached = cache is not None and self._is_cached_over(cache, hit, round_)
                places.append((None, CACHED_OVER) if is_cached else None)
                if not is_cached:
                    counted.append(hit)
            # A counter known to be over spares all the others of its request (B9).
            is_spared = len(counted) < len(plan.hits)
            requests.append(counted)
            addends.append(
                [0 if is_spared and not hit.is_refund else hit.signed_addend for hit in counted]
            )
        if cache is not None:
            round_.drops = cache.drops


def _is_repeatable(plan: RequestPlan) -> bool:
    """Whether the hits of an equal request right behind go where those of the first one went."""
    hits = plan.hits
    return 0 < len(hits) == len({hit.key for hit in hits}) and not any(
        hit.is_refund for hit in hits
    )


def _shares(plans: Sequence[Planned]) -> Sequence[Sequence[Planned]]:
    """The plans in order, divided for one hold of the lock each."""
    if len(plans) <= HELD_REQUESTS_MAX:
        return (plans,)
    starts = range(0, len(plans), HELD_REQUESTS_MAX)
    return [plans[start : start + HELD_REQUESTS_MAX] for start in starts]


def _counted_place(hit: PlannedHit, after: int | Unreachable, round_: Round) -> HitSlot:
    """A counter's outcome as a bucket of its own, in the form that `_status` reads."""
    bucket = Bucket(round_.end_s(hit.unit))
    if isinstance(after, Unreachable):
        bucket.counts.append(after)
        round_.has_failures = True
    else:
        bucket.counts.append(after if hit.is_refund else after - hit.addend)
    return bucket, 0
