"""The decider: batches of requests in, answers out, in the same order and of the same length.

    plan every request -> place its hits in a round -> count the round, one call per partition
      -> judge the counts in order (B7) -> statuses, overall code, headers (B12, B13) -> encode

Planning and judging are plain and quick and happen under one lock; waiting for the partitions does
not, so the next batch is planned while the last is being counted. Several threads may call it.
"""

from collections.abc import Callable, Sequence
from threading import Lock

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.counters import CounterStore, Unreachable
from tollgate.actors.ratelimit.counting.overlimit_cache import OverLimitCache
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.accounting import judge_count, shadowed_hits
from tollgate.actors.ratelimit.decision.increment_stop import count_conditionally
from tollgate.actors.ratelimit.decision.plan import (
    NOT_CONFIGURED,
    PlannedHit,
    Refusal,
    RefusalReason,
    RequestPlan,
    RequestPlanner,
    refused_outright,
)
from tollgate.actors.ratelimit.decision.policy import FailureMode, Policy
from tollgate.actors.ratelimit.decision.response import (
    OK,
    OVER_LIMIT,
    UNMET_STATUS,
    RateLimitDecision,
    Status,
    dynamic_metadata,
    overall_code,
    response_headers,
)
from tollgate.actors.ratelimit.decision.round import Bucket, Round
from tollgate.actors.ratelimit.rules.descriptors import RateLimitRequest
from tollgate.actors.ratelimit.rules.rule_set import RuleSet
from tollgate.actors.ratelimit.statistics.tallies import Tallies

SERVICE_ERROR = "ratelimit.service.call.should_rate_limit.service_error"
# The reference's name for a failing store, whatever the store is: dashboards know it.
BACKEND_ERROR = "ratelimit.service.call.should_rate_limit.redis_error"
GLOBAL_SHADOW = "ratelimit.service.global_shadow_mode"

CACHED_OVER = -1  # in the place of a slot: known to be over limit, not counted

HitSlot = tuple[Bucket | None, int]
DecidedAnswer = bytes | Refusal


class Decider:
    """Decides batches under the rules in force."""

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
    ) -> None:
        self._policy = policy
        self._store = store
        self._tallies = tallies
        self._clock = clock
        self._decode = decode
        self._render_limit = render_limit
        self._encode = encode
        self._lock = Lock()
        self._planner: RequestPlanner | None = None
        self._cache = OverLimitCache(policy.local_cache_bytes) if policy.local_cache_bytes else None

    @property
    def cache(self) -> OverLimitCache | None:
        """The local over-limit cache, when there is one."""
        return self._cache

    def use_rules(self, rules: RuleSet) -> None:
        """Put a rule set in force for every batch that begins from now on."""
        planner = RequestPlanner(
            rules,
            policy=self._policy,
            partitions=self._store.partitions,
            tallies=self._tallies,
            decode=self._decode,
            render_limit=self._render_limit,
        )
        with self._lock:
            self._planner = planner

    def decide_batch(self, payloads: Sequence[bytes]) -> list[DecidedAnswer]:
        """Decide serialised requests. Blocks for the store, no longer than its deadline (twice that
        where counting is conditional)."""
        round_ = Round(
            int(self._clock.now_s()), has_calendar_months=self._policy.has_calendar_months
        )
        with self._lock:
            plan = self._plan_without_rules if self._planner is None else self._planner.plan
            plans = [plan(payload) for payload in payloads]
            if not self._policy.stops_when_over:
                places = self._place(plans, round_)
        if self._policy.stops_when_over:
            places = self._count_conditionally(plans, round_)
        else:
            round_.count(self._store)
        with self._lock:
            return self._judge(plans, places, round_)

    def _plan_without_rules(self, payload: bytes) -> RequestPlan | Refusal:
        request = self._decode(payload)
        if isinstance(request, Refusal):
            return request
        return refused_outright(request) or NOT_CONFIGURED

    def _place(self, plans: Sequence[RequestPlan | Refusal], round_: Round) -> list[HitSlot]:
        """Put every hit in its bucket: (bucket, slot) per hit, in the order of the plans."""
        places: list[HitSlot] = []
        cache = self._cache
        for plan in plans:
            if type(plan) is not RequestPlan:
                continue
            for hit in plan.hits:
                if cache is not None and self._is_cached_over(cache, hit, round_):
                    places.append((None, CACHED_OVER))
                    continue
                bucket = round_.bucket(hit)
                places.append((bucket, bucket.place(hit)))
        if cache is not None:
            round_.drops = cache.drops
        return places

    def _is_cached_over(self, cache: OverLimitCache, hit: PlannedHit, round_: Round) -> bool:
        if hit.is_refund:
            cache.drop(hit.key)
            return False
        return cache.holds(hit.key, round_.end_s(hit.unit), hit.limit)

    def _count_conditionally(
        self, plans: Sequence[RequestPlan | Refusal], round_: Round
    ) -> list[HitSlot]:
        """B9: like `_place` and the count together, with requests kept whole."""
        cache = self._cache
        places: list[HitSlot | None] = []
        requests: list[list[PlannedHit]] = []
        addends: list[list[int]] = []
        with self._lock:
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
        counts = count_conditionally(requests, addends, round_, self._store)
        outcomes = (
            _counted_place(hit, after, round_)
            for hits, afters in zip(requests, counts, strict=True)
            for hit, after in zip(hits, afters, strict=True)
        )
        return [next(outcomes) if place is None else place for place in places]

    def _judge(
        self, plans: Sequence[RequestPlan | Refusal], places: list[HitSlot], round_: Round
    ) -> list[DecidedAnswer]:
        answers: list[DecidedAnswer] = []
        position = 0
        for plan in plans:
            if type(plan) is not RequestPlan:
                assert isinstance(plan, Refusal), "a request has a plan or a refusal"
                self._tallies.count(SERVICE_ERROR)
                answers.append(plan)
                continue
            if plan.unknown_domain_hits:
                self._tallies.domain_not_found(plan.unknown_domain, plan.unknown_domain_hits)
            end = position + len(plan.hits)
            answers.append(self._answer(plan, places[position:end], round_))
            position = end
        assert position == len(places), "every hit was placed once and judged once"
        return answers

    def _answer(self, plan: RequestPlan, places: list[HitSlot], round_: Round) -> DecidedAnswer:
        failure = _failure(places) if round_.has_failures else None
        if failure is not None:
            self._tallies.count(BACKEND_ERROR)
            if self._policy.failure_mode is FailureMode.ERROR:
                self._count_undecided(plan, places)
                return Refusal(RefusalReason.BACKEND, str(failure))
        statuses = []
        hits = iter(places)
        for step in plan.steps:
            if type(step) is PlannedHit:
                bucket, slot = next(hits)
                statuses.append(self._status(step, bucket, slot, round_))
            else:
                assert not isinstance(step, PlannedHit), "PlannedHit is final"
                statuses.append(UNMET_STATUS[step])
        answer = self._encode(self._decision(plan, statuses))
        if type(answer) is Refusal:
            self._tallies.count(SERVICE_ERROR)
        return answer

    def _decision(self, plan: RequestPlan, statuses: list[Status]) -> RateLimitDecision:
        overall = overall_code(plan, statuses)
        if overall == OVER_LIMIT and self._policy.is_shadow_mode:
            overall = OK
            self._tallies.count(GLOBAL_SHADOW)
        names = self._policy.headers
        headers = () if names is None else response_headers(names, statuses)
        metadata = None if plan.request is None else dynamic_metadata(plan.request, statuses)
        return RateLimitDecision(overall, statuses, headers, metadata)

    def _count_undecided(self, plan: RequestPlan, places: list[HitSlot]) -> None:
        """Hits are counted even if the store then fails (B7, 1); counters that could be reached
        have them, and the hits behind them see that."""
        for hit, (bucket, slot) in zip(plan.hits, places, strict=True):
            if hit.is_refund:
                continue
            hit.tally.total_hits += hit.addend
            self._touch(hit)
            if bucket is None:
                continue
            before = bucket.counts[slot]
            if not isinstance(before, Unreachable):
                bucket.counts[slot] = before + hit.addend

    def _touch(self, hit: PlannedHit) -> None:
        if not hit.tally.is_dirty:
            self._tallies.touch(hit.tally)

    def _status(self, hit: PlannedHit, bucket: Bucket | None, slot: int, round_: Round) -> Status:
        """Judge one hit against its running count, and tally it (B7)."""
        tally = hit.tally
        addend = hit.addend
        if bucket is None:
            tally.total_hits += addend
            tally.over_limit += addend
            tally.over_limit_with_local_cache += addend
            if hit.is_shadow:
                tally.shadow_mode += addend
            self._touch(hit)
            code = OK if hit.is_shadow else OVER_LIMIT
            return Status(code, 0, round_.end_s(hit.unit) - round_.now_s, hit)
        reset_s = bucket.end_s - round_.now_s
        before = bucket.counts[slot]
        is_known = True
        if isinstance(before, Unreachable):
            is_known, before = False, self._assumed(hit)
        if hit.is_refund:
            tally.total_negative_hits += addend
            self._touch(hit)
            if self._cache is not None:
                self._cache.drop(hit.key)
            return Status(OK, max(0, hit.limit - before), reset_s, hit)
        after = before + addend
        if is_known:
            bucket.counts[slot] = after
        is_over, remaining, over_hits, near_hits, within_hits = judge_count(
            after, addend, hit.limit, hit.near
        )
        tally.total_hits += addend
        tally.over_limit += over_hits
        tally.near_limit += near_hits
        tally.within_limit += within_hits
        if is_over and hit.is_shadow:
            tally.shadow_mode += shadowed_hits(after, addend, hit.limit)
        if not tally.is_dirty:
            self._tallies.touch(tally)
        if not is_over:
            return Status(OK, remaining, reset_s, hit)
        if self._cache is not None and is_known:
            self._cache.add(hit.key, bucket.end_s, hit.limit, round_.drops)
        return Status(OK if hit.is_shadow else OVER_LIMIT, 0, reset_s, hit)

    def _assumed(self, hit: PlannedHit) -> int:
        """The count to go by when the counter cannot be reached (FAILURE_MODE)."""
        return 0 if self._policy.failure_mode is FailureMode.ALLOW else hit.limit


def _failure(places: list[HitSlot]) -> Unreachable | None:
    """The failure that kept one of these hits from being counted; None when all were."""
    counts = (bucket.counts[slot] for bucket, slot in places if bucket is not None)
    return next((count for count in counts if isinstance(count, Unreachable)), None)


def _counted_place(hit: PlannedHit, after: int | Unreachable, round_: Round) -> HitSlot:
    """A counter's outcome as a bucket of its own, in the form that `_status` reads."""
    bucket = Bucket(round_.end_s(hit.unit))
    if isinstance(after, Unreachable):
        bucket.counts.append(after)
        round_.has_failures = True
    else:
        bucket.counts.append(after if hit.is_refund else after - hit.addend)
    return bucket, 0
