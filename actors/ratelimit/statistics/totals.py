"""Sums the tallies of all processes, as the statistics and metrics pages show them.

Series of configured rules are kept without limit and for good. Series whose names are made of
request text are capped: beyond the cap their counts go to one overflow series, and a series that
nobody has added to for `DYNAMIC_SERIES_IDLE_S` is forgotten, which makes room. A series never goes
down while it exists; one that was forgotten begins again at zero.

A flush hands on what was added since the last one, exactly, also to series that were forgotten and
began again. For one receiver. What nobody has taken when its series is forgotten is lost, and
counted as such.

Not for several threads: absorb and read in the same one.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import sub

from tollgate.actors.kernel.latencies import Latency, LatencyTally, add_in_place
from tollgate.actors.ratelimit.statistics.tallies import (
    AGE,
    COMMON,
    OFFSET,
    OVERFLOW_DOMAIN,
    OVERFLOW_RULE,
    RULE_STATS,
    RULES_PREFIX,
    StatisticsDelta,
)

DYNAMIC_SERIES_MAX = 10_000
DYNAMIC_SERIES_IDLE_S = 3_600.0
LOST = "ratelimit.statistics.lost"
"""Values for a server of statistics that it did not get."""
SOURCE_SILENCE_S = 15.0
"""After this time without a word from a process, its gauges no longer count."""

# Shown from the start, at zero: an alert on a counter that does not exist yet cannot fire.
SERVICE_COUNTERS = (
    "ratelimit.service.config_load_success",
    "ratelimit.service.config_load_error",
    "ratelimit.service.global_shadow_mode",
    "ratelimit.service.call.should_rate_limit.service_error",
    "ratelimit.service.call.should_rate_limit.redis_error",
    "ratelimit_server.ShouldRateLimit.total_requests",
)
# Not worth a zero per rule.
_SHOWN_ONCE_COUNTED = frozenset({"over_limit_with_local_cache", "total_negative_hits"})


@dataclass(frozen=True, slots=True)
class Statistics:
    """All totals at one moment. Names are dotted, those of latencies as `Tallies.observe` has
    them: `times_name` is how they are shown."""

    counters: Mapping[str, int]
    gauges: Mapping[str, float]
    latencies: Mapping[str, Latency]


@dataclass(frozen=True, slots=True)
class Flush:
    """Statistics since the last flush: additions to counters, none of them zero; gauges as they
    are; latencies of the calls since."""

    counters: Mapping[str, int]
    gauges: Mapping[str, float]
    latencies: Mapping[str, Latency]


def times_name(name: str) -> str:
    """The full dotted name of latencies, which for a gRPC method are called after it alone."""
    return name if "." in name else f"ratelimit_server.{name}.response_time"


class _Series:
    """One series with the time it was last added to."""

    __slots__ = ("_handed_on", "counts", "touched_s")

    def __init__(self, width: int, now_s: float = 0.0) -> None:
        self.counts = [0] * width
        self._handed_on = (0,) * width
        self.touched_s = now_s

    def hand_on(self) -> tuple[int, ...]:
        """The additions since the last call."""
        added = tuple(map(sub, self.counts, self._handed_on))
        self._handed_on = tuple(self.counts)
        return added


class CappedSeries:
    """At most `series_max` series of `width` counts each; the overflow is not among them."""

    def __init__(self, *, series_max: int, width: int, overflow_name: str) -> None:
        self._series_max = series_max
        self._width = width
        self._overflow_name = overflow_name
        self._overflow = _Series(width)
        # The one that has been idle longest comes first.
        self._series: OrderedDict[str, _Series] = OrderedDict()

    def __len__(self) -> int:
        return len(self._series)

    def add(self, name: str, counts: Sequence[int], now_s: float) -> None:
        """Add to a series, or to the overflow when there is no room for a new one."""
        series = self._series.get(name)
        if series is None:
            if name == self._overflow_name or len(self._series) >= self._series_max:
                add_in_place(self._overflow.counts, counts)
                return
            series = self._series[name] = _Series(self._width, now_s)
        else:
            self._series.move_to_end(name)
            series.touched_s = now_s
        add_in_place(series.counts, counts)

    def forget_idle(self, now_s: float) -> int:
        """How many numbers went that no flush has handed on."""
        lost = 0
        while self._series:
            name, oldest = next(iter(self._series.items()))
            if now_s - oldest.touched_s < DYNAMIC_SERIES_IDLE_S:
                break
            del self._series[name]
            lost += sum(map(bool, oldest.hand_on()))
        return lost

    def take_out(self, name: str) -> _Series:
        """Remove a series and give it, one that is all zero when there is none."""
        return self._series.pop(name, None) or _Series(self._width)

    def values(self) -> list[tuple[str, _Series]]:
        """Every series by name; the overflow only once it holds something."""
        found = list(self._series.items())
        if any(self._overflow.counts):
            found.append((self._overflow_name, self._overflow))
        return found


class Totals:
    """The sum of all deltas. `dynamic_series_max` bounds rule series and unknown domains each."""

    def __init__(self, *, dynamic_series_max: int = DYNAMIC_SERIES_MAX) -> None:
        self._counts: dict[str, int] = dict.fromkeys(SERVICE_COUNTERS, 0)
        self._rules: dict[str, _Series] = {}
        self._dynamic_rules = CappedSeries(
            series_max=dynamic_series_max, width=len(RULE_STATS), overflow_name=OVERFLOW_RULE
        )
        self._unknown_domains = CappedSeries(
            series_max=dynamic_series_max, width=1, overflow_name=OVERFLOW_DOMAIN
        )
        self._latencies: dict[str, LatencyTally] = {}
        self._flushed_counts: dict[str, int] = {}
        self._flushed_latencies: dict[str, Latency] = {}
        self._is_flushed = False
        self._gauges: dict[str, Mapping[str, float]] = {}
        self._heard_s: dict[str, float] = {}

    def absorb(self, delta: StatisticsDelta, now_s: float) -> None:
        """Add what a process has counted. `now_s` is monotonic."""
        lost = self._dynamic_rules.forget_idle(now_s) + self._unknown_domains.forget_idle(now_s)
        if lost and self._is_flushed:
            self._counts[LOST] = self._counts.get(LOST, 0) + lost
        for name, by in delta.counts.items():
            self._counts[name] = self._counts.get(name, 0) + by
        for key, counts in delta.rules.items():
            self._add_to_rule(key, counts)
        for key, counts in delta.dynamic_rules.items():
            if key in self._rules:
                self._add_to_rule(key, counts)
            else:
                self._dynamic_rules.add(key, counts, now_s)
        for domain, by in delta.unknown_domains.items():
            self._unknown_domains.add(domain, (by,), now_s)
        for method, latency in delta.latencies.items():
            self._latencies.setdefault(method, LatencyTally()).add(latency)
        self._hear(delta, now_s)

    def counters(self) -> dict[str, int]:
        """Every counter by its dotted name."""
        found = dict(self._counts)
        for key, series in chain(self._rules.items(), self._dynamic_rules.values()):
            for stat, number in zip(RULE_STATS, series.counts, strict=True):
                if number or stat not in _SHOWN_ONCE_COUNTED:
                    found[f"{RULES_PREFIX}{key}.{stat}"] = number
        for domain, series in self._unknown_domains.values():
            found[f"{RULES_PREFIX}{domain}.domain_not_found"] = series.counts[0]
        return found

    def gauges(self) -> dict[str, float]:
        """Every gauge, summed over the processes that are heard from; of ages the oldest, and of
        what all of them read off the same place the largest."""
        found: dict[str, float] = {}
        for gauges in self._gauges.values():
            for name, value in gauges.items():
                before = found.get(name, 0)
                adds_up = not name.endswith((AGE, OFFSET)) and not name.startswith(COMMON)
                found[name] = before + value if adds_up else max(before, value)
        return found

    def latencies(self) -> dict[str, Latency]:
        """Latencies by name."""
        return {method: tally.value() for method, tally in self._latencies.items()}

    def statistics(self) -> Statistics:
        """Everything at this moment, apart from what comes later."""
        return Statistics(self.counters(), self.gauges(), self.latencies())

    def flush(self) -> Flush:
        """What was counted since the last flush."""
        self._is_flushed = True
        before, self._flushed_latencies = self._flushed_latencies, self.latencies()
        new = {
            method: latency.since(before.get(method))
            for method, latency in self._flushed_latencies.items()
        }
        latencies = {method: latency for method, latency in new.items() if latency.count}
        return Flush(self._added(), self.gauges(), latencies)

    def _added(self) -> dict[str, int]:
        before, self._flushed_counts = self._flushed_counts, dict(self._counts)
        added = {
            name: total - before.get(name, 0)
            for name, total in self._counts.items()
            if total != before.get(name, 0)
        }
        for key, series in chain(self._rules.items(), self._dynamic_rules.values()):
            for stat, number in zip(RULE_STATS, series.hand_on(), strict=True):
                if number:
                    added[f"{RULES_PREFIX}{key}.{stat}"] = number
        for domain, series in self._unknown_domains.values():
            if number := series.hand_on()[0]:
                added[f"{RULES_PREFIX}{domain}.domain_not_found"] = number
        return added

    def _add_to_rule(self, key: str, counts: Sequence[int]) -> None:
        series = self._rules.get(key)
        if series is None:
            # An override may have used the key of a rule before the rule was first hit.
            series = self._rules[key] = self._dynamic_rules.take_out(key)
        add_in_place(series.counts, counts)

    def _hear(self, delta: StatisticsDelta, now_s: float) -> None:
        self._gauges[delta.source] = delta.gauges
        self._heard_s[delta.source] = now_s
        for source, heard_s in list(self._heard_s.items()):
            if now_s - heard_s >= SOURCE_SILENCE_S:
                del self._heard_s[source], self._gauges[source]
