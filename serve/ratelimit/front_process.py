"""One front process without Ray: its threads, their supervision, and its end.

    starting --rules, or too long without--> serving --drain--> drained

Besides the front's own threads, one follows the rules, one looks after actors, and one keeps house:
it looks whether lost counters are back and hands on the statistics. A thread that has ended is
reported by `check`, for nothing here can do without it; but that of spans, which is begun anew.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock, Thread
from typing import Protocol

from tollgate.actors.kernel.garbage_collection import QuietCollection
from tollgate.actors.ratelimit.decision.decider import Decider
from tollgate.actors.ratelimit.rules.rule_set import RuleSet
from tollgate.actors.ratelimit.statistics.tallies import StatisticsReporter, Tallies
from tollgate.serve.net.shared_ports import others_listen
from tollgate.serve.ratelimit.counting_shadow.shadow import CountingShadow
from tollgate.serve.ratelimit.fronts.front import Front, Service
from tollgate.serve.ratelimit.health import Component
from tollgate.serve.ratelimit.json_door.server import JsonDoor
from tollgate.serve.ratelimit.tracing.span_thread import SpanThread

UPKEEP_EVERY_S = 0.25
FIRST_RULES_WITHIN_S = 10.0
LOCAL_CACHE = "ratelimit.localcache."
EVICTED = "ratelimit.counters.evicted"
COLLECTIONS = "ratelimit.garbage.collections"
COLLECTION_PAUSE = "ratelimit.garbage.pause_ms"


class EndedThreads(Exception):  # noqa: N818 (it reads as what is reported)
    """Threads have ended that this process cannot do without; the text names them."""


class FrontCounters(Protocol):
    """What a front process has to do with its counters, beside counting."""

    @property
    def down(self) -> frozenset[int]:
        """The partitions that are not answering."""

    @property
    def has_begun(self) -> bool:
        """False until the counters were reached for the first time."""

    @property
    def evicted(self) -> int:
        """The live counters that this process has given up because a table was full."""

    @property
    def resets(self) -> int:
        """Changes when counts have become smaller elsewhere: by refunds, or set to 0."""

    def probe(self) -> None:
        """See whether all is well; called several times a second."""

    def close(self) -> None:
        """Give back what this process has of them: it is about to end."""


class FrontProcess:
    """`follow` yields every rule set that comes into force until its event is set; `attend` looks
    after the actors that nobody else looks after, until its own is. `reporter` None: statistics are
    turned off. `checks_backend`: lost counters make the process unhealthy. `spans` None: nothing is
    traced; `shadow` None: nothing is counted elsewhere too."""

    def __init__(
        self,
        *,
        front: Front,
        json_door: JsonDoor,
        service: Service,
        decider: Decider,
        store: FrontCounters,
        tallies: Tallies,
        follow: Callable[[Event], Iterator[RuleSet]],
        attend: Callable[[Event], None],
        reporter: StatisticsReporter | None,
        checks_backend: bool,
        spans: SpanThread | None = None,
        shadow: CountingShadow | None = None,
    ) -> None:
        self.front = front
        self.json_door = json_door
        self.service = service
        self._decider = decider
        self._store = store
        self._tallies = tallies
        self._follow = follow
        self._attend = attend
        self._reporter = reporter
        self._checks_backend = checks_backend
        self._spans = spans
        self._shadow = shadow
        self._has_rules = Event()
        self._is_draining = Event()
        self._is_stopped = Event()
        self._draining = Lock()
        self._is_drained = False
        self._threads: list[Thread] = []
        self._evicted = 0
        self._resets = 0
        self._collection = QuietCollection(service.clock)

    def start(self, *, waits_for_rules: bool) -> None:
        """Serves, once there are rules or FIRST_RULES_WITHIN_S has passed. Raises as `Front`."""
        for name, work in (
            ("follow-rules", self._follow_rules),
            ("attendance", self._attend_actors),
            ("upkeep", self._upkeep),
        ):
            thread = Thread(target=work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        if self._spans is not None:
            self._spans.start()
        if self._shadow is not None:
            self._shadow.start()
        if waits_for_rules:
            self._has_rules.wait(FIRST_RULES_WITHIN_S)
        self.json_door.start()
        self.front.start()

    def check(self) -> None:
        """Raises EndedThreads for a thread that ended by itself."""
        ended = [thread.name for thread in self._threads if not thread.is_alive()]
        for name, door in (("the front's", self.front), ("the JSON door's", self.json_door)):
            if door.has_ended_threads and not self._is_drained:
                ended.append(name)
        if ended and not self._is_stopped.is_set():
            raise EndedThreads(f"threads have ended: {', '.join(ended)}")

    def drain(self, grace_s: float, *, hands_over: bool = False) -> None:
        """Reports unhealthy, finishes the calls in flight, closes both doors, gives back what is
        lent: once. `hands_over`: to whoever else listens at the port of a door by then."""
        self._is_draining.set()
        with self._draining:
            if not self._is_drained:
                to_others, to_other_doors = (
                    hands_over and others_listen(door.address)
                    for door in (self.front, self.json_door)
                )
                with ThreadPoolExecutor(1) as beside:
                    ended = beside.submit(self.json_door.drain, grace_s, hands_over=to_other_doors)
                    self.front.drain(grace_s, hands_over=to_others)
                    ended.result()
                self._store.close()
                if self._spans is not None:
                    self._spans.stop()
                if self._shadow is not None:
                    self._shadow.stop()
                self._is_drained = True

    def stop(self) -> None:
        """Ends the threads, with a last report of the statistics."""
        self._is_draining.set()
        self._is_stopped.set()

    def _follow_rules(self) -> None:
        for rules in self._follow(self._is_stopped):
            self._decider.use_rules(rules)
            if self._shadow is not None:
                self._shadow.use_rules(rules)
            self.service.health.take_rules(has_domains=bool(rules.domains))
            self._has_rules.set()

    def _attend_actors(self) -> None:
        # A drain ends it, for a node that stops is slow; the thread stays, as the others do.
        self._attend(self._is_draining)
        self._is_stopped.wait()

    def _upkeep(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._is_stopped.wait(UPKEEP_EVERY_S)
            self._store.probe()
            self._note_resets()
            self._count_evicted()
            is_lost = self._checks_backend and bool(self._store.down)
            is_healthy = self._store.has_begun and not is_lost
            self.service.health.set(Component.BACKEND, is_healthy=is_healthy)
            self._show_local_cache()
            if self._spans is not None:
                self._spans.tend()
            self._collect()
            if self._reporter is not None:
                self._reporter.report()

    def _collect(self) -> None:
        pause_s = self._collection.look(self._decider.batches)
        if pause_s is not None:
            self._tallies.count(COLLECTIONS)
            self._tallies.gauge(COLLECTION_PAUSE, round(pause_s * 1_000, 3))

    def _note_resets(self) -> None:
        resets = self._store.resets
        if resets != self._resets:
            self._resets = resets
            self._decider.forget_over_limit()

    def _count_evicted(self) -> None:
        evicted = self._store.evicted
        if evicted != self._evicted:
            self._tallies.count(EVICTED, evicted - self._evicted)
            self._evicted = evicted

    def _show_local_cache(self) -> None:
        cache = self._decider.cache
        if cache is None:
            return
        gauges = cache.gauges
        for name, value in (
            ("entryCount", len(cache)),
            ("evacuateCount", gauges.evacuate_count),
            ("expiredCount", gauges.expired_count),
            ("hitCount", gauges.hit_count),
            ("missCount", gauges.miss_count),
            ("lookupCount", gauges.lookup_count),
            ("overwriteCount", gauges.overwrite_count),
        ):
            self._tallies.gauge(LOCAL_CACHE + name, value)
