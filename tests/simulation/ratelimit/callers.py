"""Those who ask in a run of lending: now and then in the storm, for all there is in the calm.

In the calm there is also a counter that is used up, with everybody knowing it, and then given back
by all but one, who may count on from there.
"""

from collections.abc import Callable
from functools import partial
from random import Random

from tests.simulation.ratelimit.auditor import CounterName, HitRecord, Testimony
from tests.simulation.ratelimit.faults import Scale
from tests.simulation.ratelimit.network import Agenda
from tests.simulation.ratelimit.processes import EPOCH_S, FrontProcess
from tollgate.actors.kernel.hashing import stable_hash
from tollgate.actors.ratelimit.counting.windows import Unit, window_at
from tollgate.actors.ratelimit.lending.terms import Terms

FINAL_LIMITS = (1, 7, 40)
GIVEN_EACH = 3

Send = Callable[[FrontProcess, int], None]


class Callers:
    """One for each front. `fronts`: as they are by now; `send`: what a front has to say."""

    def __init__(
        self,
        agenda: Agenda,
        chance: Random,
        scale: Scale,
        keys: list[tuple[bytes, int]],
        testimony: Testimony,
        fronts: list[FrontProcess],
        send: Send,
        *,
        is_conditional: bool,
        has_refunds: bool,
    ) -> None:
        self._agenda = agenda
        self._chance = chance
        self._scale = scale
        self._keys = keys
        self._testimony = testimony
        self._fronts = fronts
        self._send = send
        self._is_conditional = is_conditional
        self._has_refunds = has_refunds
        self._is_over = False
        for number in range(scale.fronts):
            self._think(number)

    def _think(self, number: int) -> None:
        def ask() -> None:
            front = self._fronts[number]
            front.run(lambda: self._ask(front))
            if not self._is_over:
                self._think(number)

        self._agenda.after(self._chance.expovariate(1 / self._scale.rests_s), ask)

    def _ask(self, front: FrontProcess) -> None:
        chance = self._chance
        patience_s = chance.choice((0.015, 0.1, 0.4))
        is_whole = self._is_conditional and chance.random() < 0.5
        by_partition: dict[int, list[HitRecord]] = {}
        for key, _ in chance.choices(self._keys[: chance.randint(1, len(self._keys))], k=3):
            hit = self._hit(front, key)
            hits = by_partition.setdefault(hit.partition, [])
            if not is_whole or all(hit.counter != each.counter for each in hits):
                hits.append(hit)
        for partition, hits in by_partition.items():
            self._testimony.hits += hits
            if is_whole:
                front.hit_conditionally(partition, hits, patience_s)
            else:
                front.hit(partition, hits, patience_s)
            self._send(front, partition)

    def _hit(self, front: FrontProcess, key: bytes) -> HitRecord:
        chance = self._chance
        end_s = window_at(Unit(key[0]), int(front.wall_s)).end_s
        partition = stable_hash(key) % self._scale.partitions
        addend = chance.choice((1, 1, 1, 1, 1, 1, 1, 2, 5, 0))
        if self._has_refunds and front.refundable and chance.random() < 0.2:
            # Only what the front was given, and each of it once.
            given = chance.choice(front.refundable)
            if given.counter == (end_s, key):
                front.refundable.remove(given)
                addend = -given.addend
        limit = front.limits.get(key, 0)
        return HitRecord(front.name, partition, (end_s, key), addend, limit, self._agenda.now_s)

    def ask_for_all(self, terms: Terms) -> None:
        """Everybody asks for more than there is of some counters that nobody knows yet."""
        self._is_over = True
        if min(terms.counters_max, terms.calls_max) < 1_000:
            return
        if min(terms.deferred_max, terms.unacknowledged_max) < 1_000:
            return
        end_s = window_at(Unit.DAY, int(EPOCH_S + self._agenda.now_s)).end_s
        if len(self._fronts) > 1:
            self._use_up_and_give_back((end_s, bytes((Unit.DAY,)) + b"given back"))
        for number, limit in enumerate(FINAL_LIMITS):
            key = bytes((Unit.DAY,)) + b"final %d" % number
            self._testimony.finals[end_s, key] = limit
            for front in self._fronts:
                for _ in range(limit // len(self._fronts) + 3):
                    ask = self._final_ask(front, (end_s, key), limit)
                    self._agenda.after(self._chance.random(), ask)

    def _use_up_and_give_back(self, counter: CounterName) -> None:
        *givers, taker = self._fronts
        limit = GIVEN_EACH * len(givers)
        for front in givers:
            for _ in range(GIVEN_EACH):
                ask = self._final_ask(front, counter, limit)
                self._agenda.after(0.4 * self._chance.random(), ask)
        for front in self._fronts:
            self._agenda.after(0.6, self._final_ask(front, counter, limit))
        for front in givers:
            self._agenda.after(0.9, partial(self._give_all_back, front, counter))
        self._agenda.after(1.2, self._final_ask(taker, counter, limit))

    def _give_all_back(self, front: FrontProcess, counter: CounterName) -> None:
        given = [hit for hit in front.admitted if hit.counter == counter and hit.addend > 0]
        for hit in given:
            self._final_ask(front, counter, hit.limit, -hit.addend)()

    def _final_ask(
        self, front: FrontProcess, counter: CounterName, limit: int, addend: int = 1
    ) -> Callable[[], None]:
        def ask() -> None:
            partition = stable_hash(counter[1]) % self._scale.partitions
            hit = HitRecord(front.name, partition, counter, addend, limit, self._agenda.now_s)
            self._testimony.hits.append(hit)
            front.hit(partition, [hit], 0.4)
            self._send(front, partition)

        return ask
