"""Tallies of one process, kept where the counting happens and handed on as deltas.

Adding to a rule's tally takes no lock of this module:

    tally.total_hits += hits
    tally.within_limit += hits
    if not tally.is_dirty:          # the last step, after the additions
        tallies.touch(tally)

Threads that decide share one lock of their own around these lines. `drain` may run in any other
thread without that lock, because it never writes a count: it takes a tally off the dirty list,
clears `is_dirty`, and only then reads what is new since the last time. An addition that comes
before the reading is in this delta; one that comes after it finds `is_dirty` cleared and puts the
tally back on the list. Nothing is counted twice and nothing is left behind.
"""

import re
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from operator import sub
from threading import Lock
from weakref import WeakValueDictionary

from tollgate.actors.kernel.latencies import Latency, LatencyTally

RULES_PREFIX = "ratelimit.service.rate_limit."
AGE = ".age_seconds"
"""The end of the name of a gauge that is an age, and so does not add up."""
OFFSET = ".offset_ms"
"""The same of one that is a difference of clocks."""
COMMON = "payments.books."
"""The beginning of names of gauges that all processes read off the same place, and so do not add
up, either."""
OVERFLOW_RULE = "_overflow.dynamic_series"
"""The rule series that takes hits for which a series of their own would be one too many."""
OVERFLOW_DOMAIN = "_overflow"
"""The same for `domain_not_found`."""

DYNAMIC_TALLIES_MAX = 65_536
"""Tallies made for request values that one process holds at a time: as many as memoised plans."""
DYNAMIC_KEY_CHARS_MAX = 1_024
UNKNOWN_DOMAINS_MAX = 10_000
"""Unknown domains counted by name between two drains."""

RuleCounts = tuple[int, ...]
"""One number per name in `RULE_STATS`, in that order."""
RULE_STATS = (
    "total_hits",
    "over_limit",
    "near_limit",
    "within_limit",
    "shadow_mode",
    "over_limit_with_local_cache",
    "total_negative_hits",
)

# B3: colons, bars and the dots of IPv4 addresses become underscores. Control characters and lone
# surrogates do as well: they would break lines, and pages that must be encoded.
_FORBIDDEN = re.compile(r"[:|\x00-\x1f\x7f\ud800-\udfff]")
_IPV4 = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")


def sanitised(metric_key: str) -> str:
    """The metric key as it appears in statistic names (B3)."""
    without_dotted_addresses = _IPV4.sub(lambda found: found[0].replace(".", "_"), metric_key)
    return _FORBIDDEN.sub("_", without_dotted_addresses)


class RuleTally:
    """The counts of one metric key in this process. They only ever grow."""

    __slots__ = (
        "__weakref__",
        "_handed_on",
        "is_dirty",
        "is_dynamic",
        "metric_key",
        "near_limit",
        "over_limit",
        "over_limit_with_local_cache",
        "shadow_mode",
        "total_hits",
        "total_negative_hits",
        "within_limit",
    )

    def __init__(self, metric_key: str, is_dynamic: bool) -> None:
        self.metric_key = metric_key
        self.is_dynamic = is_dynamic
        self.is_dirty = False
        self.total_hits = 0
        self.over_limit = 0
        self.near_limit = 0
        self.within_limit = 0
        self.shadow_mode = 0
        self.over_limit_with_local_cache = 0
        self.total_negative_hits = 0
        self._handed_on = self.counts()

    def counts(self) -> RuleCounts:
        return (
            self.total_hits,
            self.over_limit,
            self.near_limit,
            self.within_limit,
            self.shadow_mode,
            self.over_limit_with_local_cache,
            self.total_negative_hits,
        )

    def hand_on(self) -> RuleCounts:
        """The additions since the last call. For `Tallies.drain` alone."""
        counts, before = self.counts(), self._handed_on
        self._handed_on = counts
        return tuple(map(sub, counts, before))


@dataclass(frozen=True, slots=True)
class StatisticsDelta:
    """The counts of one process since its last drain. `source` names the process.

    Gauges are absolute, and repeated in every delta. `dynamic_rules` and `unknown_domains` have
    names made of request text, so whoever keeps them has to bound them.
    """

    source: str
    rules: Mapping[str, RuleCounts] = field(default_factory=dict)
    dynamic_rules: Mapping[str, RuleCounts] = field(default_factory=dict)
    unknown_domains: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    gauges: Mapping[str, float] = field(default_factory=dict)
    latencies: Mapping[str, Latency] = field(default_factory=dict)


class Tallies:
    """Every tally of one process. `source` must be unique among the processes that run."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._dirty: deque[RuleTally] = deque()
        self._lock = Lock()
        # Weak: a tally lives as long as a plan, or the dirty list, refers to it.
        self._configured: WeakValueDictionary[str, RuleTally] = WeakValueDictionary()
        self._dynamic: WeakValueDictionary[str, RuleTally] = WeakValueDictionary()
        self._overflow = self._dynamic[OVERFLOW_RULE] = RuleTally(OVERFLOW_RULE, is_dynamic=True)
        self._unknown_domains: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._gauges: dict[str, float] = {}
        self._latencies: dict[str, LatencyTally] = {}

    def rule(self, metric_key: str, is_dynamic: bool) -> RuleTally:
        """The tally of a metric key, one object per key for as long as somebody holds it.

        `is_dynamic`: request text is part of the key (`detailed_metric`, `value_to_metric`,
        overrides). Beyond `DYNAMIC_TALLIES_MAX` of them, and for keys longer than
        `DYNAMIC_KEY_CHARS_MAX`, it is the overflow tally.
        """
        if is_dynamic and len(metric_key) > DYNAMIC_KEY_CHARS_MAX:
            return self._overflow
        interned = self._dynamic if is_dynamic else self._configured
        with self._lock:
            # Few keys need sanitising, and those that do are not found as they are.
            tally = interned.get(metric_key)
            if tally is not None:
                return tally
            name = sanitised(metric_key)
            tally = interned.get(name)
            if tally is None:
                if is_dynamic and len(interned) >= DYNAMIC_TALLIES_MAX:
                    return self._overflow
                tally = interned[name] = RuleTally(name, is_dynamic)
            return tally

    def touch(self, tally: RuleTally) -> None:
        """Put a tally on the dirty list, when its `is_dirty` is false and after adding to it."""
        tally.is_dirty = True
        self._dirty.append(tally)

    def domain_not_found(self, domain: str, by: int = 1) -> None:
        """Count a descriptor of a domain that is not configured (B2). `domain` is request text."""
        name = OVERFLOW_DOMAIN if len(domain) > DYNAMIC_KEY_CHARS_MAX else sanitised(domain)
        with self._lock:
            if name not in self._unknown_domains and (
                len(self._unknown_domains) >= UNKNOWN_DOMAINS_MAX
            ):
                name = OVERFLOW_DOMAIN
            self._unknown_domains[name] = self._unknown_domains.get(name, 0) + by

    def count(self, name: str, by: int = 1) -> None:
        """Add to a service counter. `name` is its full dotted name, and never request text."""
        with self._lock:
            self._counts[name] = self._counts.get(name, 0) + by

    def gauge(self, name: str, value: float) -> None:
        """Set a gauge. It is shown as the sum over all processes, so it must be something that
        adds up: entries, connections, bytes. One whose name ends in AGE is an age: the oldest is
        shown; of one that begins with COMMON the largest."""
        with self._lock:
            self._gauges[name] = value

    def observe(self, name: str, calls: int, seconds: float) -> None:
        """Note that `calls` calls took `seconds` each. `name`: of a gRPC method, or the full dotted
        name of what took the time. What is no time, but a number of things, is in thousandths."""
        with self._lock:
            tally = self._latencies.get(name)
            if tally is None:
                tally = self._latencies[name] = LatencyTally()
            tally.observe(calls, seconds)

    def drain(self) -> StatisticsDelta:
        """Returns everything that was counted since the last drain, once."""
        with self._lock:
            rules: dict[str, RuleCounts] = {}
            dynamic_rules: dict[str, RuleCounts] = {}
            for _ in range(len(self._dirty)):
                tally = self._dirty.popleft()
                # Before the reading: see the top of this file.
                tally.is_dirty = False
                (dynamic_rules if tally.is_dynamic else rules)[tally.metric_key] = tally.hand_on()
            delta = StatisticsDelta(
                source=self.source,
                rules=rules,
                dynamic_rules=dynamic_rules,
                unknown_domains=self._unknown_domains,
                counts=self._counts,
                gauges=dict(self._gauges),
                latencies={name: tally.value() for name, tally in self._latencies.items()},
            )
            self._unknown_domains, self._counts, self._latencies = {}, {}, {}
            return delta


class StatisticsReporter:
    """Hands a process's statistics on, one report at a time.

    While a report is under way nothing is drained: what is counted meanwhile goes with the next
    one, so a receiver that is slow, or away, costs neither memory nor counts. A report that failed
    may have arrived, so it is not sent again. `send` may give None: it could not be sent at all.
    Then it is kept, as the only one, and goes the next time."""

    def __init__(
        self, tallies: Tallies, send: Callable[[StatisticsDelta], "Future[object] | None"]
    ) -> None:
        self._tallies = tallies
        self._send = send
        self._under_way: Future[object] | None = None
        self._unsent: StatisticsDelta | None = None

    def report(self) -> None:
        """Sends what was counted since the last report, unless that one is still under way."""
        if self._under_way is not None and not self._under_way.done():
            return
        report = self._unsent or self._tallies.drain()
        self._under_way = self._send(report)
        self._unsent = report if self._under_way is None else None
