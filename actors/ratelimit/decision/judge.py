"""Judges the counts of a batch, in order: statuses, tallies, overall codes (B7, B12, B13).

Counts run on from request to request, as though each had been counted by itself.
"""

from collections.abc import Sequence

from tollgate.actors.ratelimit.counting.counters import Unreachable
from tollgate.actors.ratelimit.counting.overlimit_cache import OverLimitCache
from tollgate.actors.ratelimit.decision.accounting import judge_count, shadowed_hits
from tollgate.actors.ratelimit.decision.plan import PlannedHit, Refusal, RefusalReason, RequestPlan
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
from tollgate.actors.ratelimit.statistics.tallies import Tallies

SERVICE_ERROR = "ratelimit.service.call.should_rate_limit.service_error"
# The reference's name for a failing store, whatever the store is: dashboards know it.
BACKEND_ERROR = "ratelimit.service.call.should_rate_limit.redis_error"
GLOBAL_SHADOW = "ratelimit.service.global_shadow_mode"

CACHED_OVER = -1  # in the place of a slot: known to be over limit, not counted

# A named tuple made this way takes a quarter of the time.
_made = tuple.__new__

HitSlot = tuple[Bucket | None, int]
Planned = RequestPlan | Refusal
Decided = RateLimitDecision | Refusal


class Judge:
    """Judges one request after another. Not thread-safe: it adds to tallies and to the cache."""

    def __init__(self, policy: Policy, tallies: Tallies, cache: OverLimitCache | None) -> None:
        self._policy = policy
        self._tallies = tallies
        self._cache = cache
        # (then the code of a request's only hit is the code of the request)
        self._is_plain = policy.headers is None and not policy.is_shadow_mode

    def judge(
        self, plans: Sequence[Planned], places: Sequence[HitSlot], position: int, round_: Round
    ) -> tuple[list[Decided], int]:
        """Judge requests whose first hit has its place at `position`; the position behind them."""
        decided: list[Decided] = []
        is_plain = self._is_plain and not round_.has_failures
        for plan in plans:
            if type(plan) is not RequestPlan:
                assert isinstance(plan, Refusal), "a request has a plan or a refusal"
                self._tallies.count(SERVICE_ERROR)
                decided.append(plan)
                continue
            if is_plain and len(plan.hits) == 1 == len(plan.steps) and plan.request is None:
                (hit,) = plan.hits
                bucket, slot = places[position]
                if bucket is not None and not (hit.is_refund or hit.is_shadow or hit.is_quota):
                    position += 1
                    decided.append(self._ordinary(hit, bucket, slot, round_))
                    continue
            if plan.unknown_domain_hits:
                self._tallies.domain_not_found(plan.unknown_domain, plan.unknown_domain_hits)
            if round_.has_failures:
                refusal = self._refusal(plan, places[position : position + len(plan.hits)])
                if refusal is not None:
                    decided.append(refusal)
                    position += len(plan.hits)
                    continue
            statuses = []
            for step in plan.steps:
                if type(step) is PlannedHit:
                    bucket, slot = places[position]
                    position += 1
                    statuses.append(self._status(step, bucket, slot, round_))
                else:
                    assert not isinstance(step, PlannedHit), "PlannedHit is final"
                    statuses.append(UNMET_STATUS[step])
            decided.append(self._decision(plan, statuses))
        return decided, position

    def _ordinary(
        self, hit: PlannedHit, bucket: Bucket, slot: int, round_: Round
    ) -> RateLimitDecision:
        """Decide a request whose only descriptor has an ordinary limit: most do, and this takes a
        third of the time. One that is as far over its limit as the one before gets the same
        object."""
        before = bucket.counts[slot]
        assert type(before) is int, "whatever has failed is judged elsewhere"
        addend, tally = hit.addend, hit.tally
        after = bucket.counts[slot] = before + addend
        tally.total_hits += addend
        code = OK
        if after <= hit.near:
            tally.within_limit += addend
            remaining = hit.limit - after
        else:
            is_over, remaining, over_hits, near_hits, within_hits = judge_count(
                after, addend, hit.limit, hit.near
            )
            tally.over_limit += over_hits
            tally.near_limit += near_hits
            tally.within_limit += within_hits
            if is_over:
                code = OVER_LIMIT
                if self._cache is not None:
                    self._cache.add(hit.key, bucket.end_s, hit.limit, round_.drops)
        if not tally.is_dirty:
            self._tallies.touch(tally)
        if code == OVER_LIMIT and round_.over is not None and round_.over.statuses[0].hit is hit:
            return round_.over
        status = _made(Status, (code, remaining, bucket.end_s - round_.now_s, hit))
        decision = _made(RateLimitDecision, (code, [status], (), None))
        if code == OVER_LIMIT:
            round_.over = decision
        return decision

    def _refusal(self, plan: RequestPlan, places: Sequence[HitSlot]) -> Refusal | None:
        """The refusal of a request that has a counter out of reach, if the operator wants that."""
        failure = _failure(places)
        if failure is None:
            return None
        self._tallies.count(BACKEND_ERROR)
        if self._policy.failure_mode is not FailureMode.ERROR:
            return None
        self._count_undecided(plan, places)
        return Refusal(RefusalReason.BACKEND, str(failure))

    def _decision(self, plan: RequestPlan, statuses: list[Status]) -> RateLimitDecision:
        overall = overall_code(plan, statuses)
        if overall == OVER_LIMIT and self._policy.is_shadow_mode:
            overall = OK
            self._tallies.count(GLOBAL_SHADOW)
        names = self._policy.headers
        headers = () if names is None else response_headers(names, statuses)
        metadata = None if plan.request is None else dynamic_metadata(plan.request, statuses)
        return _made(RateLimitDecision, (overall, statuses, headers, metadata))

    def _count_undecided(self, plan: RequestPlan, places: Sequence[HitSlot]) -> None:
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
        if bucket is not None and not hit.is_refund:
            before = bucket.counts[slot]
            if type(before) is int and (after := before + addend) <= hit.near:
                # (as nearly all of them, and as `judge_count` says)
                bucket.counts[slot] = after
                tally.total_hits += addend
                tally.within_limit += addend
                if not tally.is_dirty:
                    self._tallies.touch(tally)
                return _made(Status, (OK, hit.limit - after, bucket.end_s - round_.now_s, hit))
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


def _failure(places: Sequence[HitSlot]) -> Unreachable | None:
    """The failure that kept one of these hits from being counted; None when all were."""
    counts = (bucket.counts[slot] for bucket, slot in places if bucket is not None)
    return next((count for count in counts if isinstance(count, Unreachable)), None)
