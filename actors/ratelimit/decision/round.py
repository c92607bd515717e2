"""Gathers the hits of a whole batch of requests into one call per partition: a round.

Hits on one counter in a row become one operation: the partition adds their sum, and the count that
each of them would have seen one by one follows from the count before. A refund ends such a run,
because it may stop at zero; so does a hit that is judged by another limit.
"""

from tollgate.actors.ratelimit.counting.counters import (
    CounterStore,
    LimitedHits,
    Unreachable,
)
from tollgate.actors.ratelimit.counting.windows import Unit, window_at
from tollgate.actors.ratelimit.decision.counter_keys import UNIT_SLOTS
from tollgate.actors.ratelimit.decision.plan import PlannedHit
from tollgate.actors.ratelimit.decision.response import RateLimitDecision


class Bucket:
    """The hits of one partition on windows of one unit. `counts`: running counts, once known, or
    the reason why one is not."""

    __slots__ = ("addends", "counts", "end_s", "keys", "limits", "open")

    def __init__(self, end_s: int) -> None:
        self.end_s = end_s
        self.keys: list[bytes] = []
        self.addends: list[int] = []
        self.limits: list[int] = []
        self.open: dict[bytes, int] = {}
        self.counts: list[int | Unreachable] = []

    def place(self, hit: PlannedHit) -> int:
        """Add the hit; the slot where its counter's running count will stand."""
        key = hit.key
        if hit.is_refund:
            self.open.pop(key, None)
            self.keys.append(key)
            self.addends.append(hit.signed_addend)
            self.limits.append(hit.limit)
            return len(self.keys) - 1
        slot = self.open.get(key)
        if slot is None or self.limits[slot] != hit.limit:
            slot = self.open[key] = len(self.keys)
            self.keys.append(key)
            self.addends.append(hit.addend)
            self.limits.append(hit.limit)
        else:
            self.addends[slot] += hit.addend
        return slot


class WindowEnds(dict[Unit, int]):
    """The ends of the windows of all units at one instant, each looked up once. Threads may share
    it."""

    __slots__ = ("_has_calendar_months", "now_s")

    def __init__(self, now_s: int, *, has_calendar_months: bool) -> None:
        self.now_s = now_s
        self._has_calendar_months = has_calendar_months

    def __missing__(self, unit: Unit) -> int:
        window = window_at(unit, self.now_s, has_calendar_months=self._has_calendar_months)
        self[unit] = window.end_s
        return window.end_s


class Round:
    """The buckets of a batch at one instant (whole seconds of the epoch).

    `drops`: what the local over-limit cache showed when the hits were placed. `has_failures`: some
    counter could not be reached. `over`: the last decision on an ordinary hit over its limit.
    """

    __slots__ = ("_buckets", "_ends_s", "drops", "has_failures", "now_s", "over")

    def __init__(self, ends_s: WindowEnds) -> None:
        self.now_s = ends_s.now_s
        self.drops = 0
        self.has_failures = False
        self.over: RateLimitDecision | None = None
        self._ends_s = ends_s
        self._buckets: dict[int, Bucket] = {}

    def end_s(self, unit: Unit) -> int:
        """The end of the current window of `unit`."""
        return self._ends_s[unit]

    def bucket(self, hit: PlannedHit) -> Bucket:
        """The bucket of the hit's counter in this round."""
        bucket = self._buckets.get(hit.bucket)
        if bucket is None:
            bucket = self._buckets[hit.bucket] = Bucket(self._ends_s[hit.unit])
        return bucket

    def count(self, store: CounterStore) -> None:
        """Ask the store once, and turn the counts after into running counts before."""
        if not self._buckets:
            return
        if len(self._buckets) == 1:
            ((number, bucket),) = self._buckets.items()
            by_partition = {number // UNIT_SLOTS: [bucket]}
        else:
            by_partition = {}
            for number, bucket in self._buckets.items():
                by_partition.setdefault(number // UNIT_SLOTS, []).append(bucket)
        answers = store.hit(
            {
                partition: [
                    LimitedHits(each.end_s, each.keys, each.addends, each.limits)
                    for each in buckets
                ]
                for partition, buckets in by_partition.items()
            },
            self.now_s,
        )
        for partition, buckets in by_partition.items():
            answer = answers[partition]
            if isinstance(answer, Unreachable):
                self.has_failures = True
                for bucket in buckets:
                    bucket.counts = [answer] * len(bucket.keys)
                continue
            for bucket, after in zip(buckets, answer, strict=True):
                if Unreachable in map(type, after):
                    self.has_failures = True
                bucket.counts = [
                    count - addend if addend > 0 and type(count) is int else count
                    for count, addend in zip(after, bucket.addends, strict=True)
                ]
