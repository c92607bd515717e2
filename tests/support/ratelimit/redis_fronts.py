"""A front's counters in Redis, opened as its settings say."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.ratelimit.engine import Engine
from tests.support.waiting import until
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.counting.counters import LimitedHits, Unreachable
from tollgate.actors.ratelimit.counting.windows import LENGTH_S, Unit
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.backends.redis.counters import RedisCounters
from tollgate.serve.ratelimit.backends.redis.store import open_counters, redis_store
from tollgate.serve.settings import Settings

NOW_S = 1_000_000
QUICK = {"REDIS_STARTUP_INITIAL_INTERVAL": "20ms", "REDIS_STARTUP_MAX_INTERVAL": "20ms"}


class RedisFront:
    """The counters of one process."""

    def __init__(self, **environment: str) -> None:
        self.settings = Settings.from_environment(QUICK | environment)
        self.tallies = Tallies("test")
        self.route = redis_store(self.settings).route
        self.counters: RedisCounters = open_counters(self.settings, SystemClock(), self.tallies)

    def until_begun(self) -> None:
        until(lambda: self.counters.has_begun, "Redis was reached")

    def hit(
        self, text: str, addend: int = 1, unit: Unit = Unit.MINUTE, now_s: int = NOW_S
    ) -> int | Unreachable:
        """The count after a hit on the counter of this key's text."""
        ((count,),) = self.hits([(text, addend)], unit, now_s)
        return count

    def hits(
        self, asked: list[tuple[str, int]], unit: Unit = Unit.MINUTE, now_s: int = NOW_S
    ) -> list[list[int | Unreachable]]:
        """The counts after these hits, in one batch."""
        end_s = now_s - now_s % LENGTH_S[unit] + LENGTH_S[unit]
        keys = [f"{unit:d}|{text}".encode() for text, _ in asked]
        addends = [addend for _, addend in asked]
        batch = [LimitedHits(end_s, keys, addends, [10] * len(keys))]
        number = self.route(keys[0], unit)
        answer = self.counters.hit({number: batch}, now_s)[number]
        if isinstance(answer, Unreachable):
            return [[answer] * len(keys)]
        return [list(counts) for counts in answer]

    def engine(self, rules: str, policy: Policy | None = None) -> Engine:
        """An engine that counts here."""
        return Engine(
            rules,
            policy=policy or Policy(has_outside_counters=True),
            store=self.counters,
            route=self.route,
        )

    def counted(self, name: str) -> int:
        """A statistic so far; those that were read are gone."""
        return self.tallies.drain().counts.get(name, 0)

    def gauge(self, name: str) -> float:
        return self.tallies.drain().gauges[name]


@contextmanager
def redis_front(**environment: str) -> Iterator[RedisFront]:
    """One that has reached its Redis, for as long as the block lasts."""
    front = RedisFront(**environment)
    try:
        front.until_begun()
        yield front
    finally:
        front.counters.close()
