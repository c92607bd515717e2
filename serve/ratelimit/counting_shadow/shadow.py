"""Decides everything once more, by counters in another place, and compares: nobody hears of it.

    a batch is answered --> it waits, if there is room --> decided again, in the second place
      --> its answers are compared with those that were given

The deciding path leaves a batch behind and goes on. What finds no room is not counted in the second
place, and said to be dropped; a place that is out of reach fails no call.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.decision.decider import DecidedAnswer, Decider
from tollgate.actors.ratelimit.decision.plan import Refusal, RefusalReason
from tollgate.actors.ratelimit.rules.descriptors import RateLimitRequest
from tollgate.actors.ratelimit.rules.rule_set import RuleSet
from tollgate.serve.ratelimit.counting_shadow.comparison import ShadowOutcome, compared, told

LOG = logging.getLogger("tollgate.ratelimit")
WAITING_CALLS_MAX = 16_384
WAITING_BYTES_MAX = 16 * 2**20
LOOK_EVERY_S = 0.02
BEGUN_WITHIN_S = 10.0  # that the first batches wait for the place to be reached
LAST_WITHIN_S = 1.0  # that a drain waits for what is left to be counted
SAID_EVERY_S = 10.0
SHOWN_CHARS_MAX = 200


class BatchDecider(Protocol):
    """What answers batches."""

    def decide_batch(self, payloads: Sequence[bytes]) -> list[DecidedAnswer]:
        """As `Decider` does."""


@dataclass(frozen=True, slots=True)
class ShadowedDecider:
    """Decides as the first does, and leaves each batch for the shadow."""

    decider: BatchDecider
    shadow: "CountingShadow"

    def decide_batch(self, payloads: Sequence[bytes]) -> list[DecidedAnswer]:
        """As `Decider` does."""
        answers = self.decider.decide_batch(payloads)
        self.shadow.leave(payloads, answers)
        return answers


class PlaceCounters(Protocol):
    """The counters of the second place."""

    @property
    def has_begun(self) -> bool:
        """False until they were reached for the first time."""

    def close(self) -> None:
        """Gives back what is lent, or closes connections."""


class CountingShadow:
    """`decider` counts in the second place, which is called `place`. `count`: of statistics."""

    def __init__(
        self,
        decider: Decider,
        store: PlaceCounters,
        place: str,
        decode: Callable[[bytes], RateLimitRequest | Refusal],
        clock: Clock,
        count: Callable[[str, int], None],
    ) -> None:
        self._decider = decider
        self._store = store
        self._place = place
        self._decode = decode
        self._clock = clock
        self._count = count
        self._lock = Lock()
        self._waiting: deque[tuple[Sequence[bytes], list[DecidedAnswer]]] = deque()
        self._waiting_calls = 0
        self._waiting_bytes = 0
        self._has_ended = False
        self._is_stopping = Event()
        self._said_s = -SAID_EVERY_S
        self._reached_by_s = 0.0
        self._thread = Thread(target=self._run, name="counting-shadow", daemon=True)
        for outcome in ShadowOutcome:
            count(outcome.value, 0)  # shown before it first happens, for an alarm to see the change

    def leave(self, payloads: Sequence[bytes], answers: list[DecidedAnswer]) -> None:
        """Have a batch counted in the second place as well, if there is room."""
        size = _size(payloads, answers)
        with self._lock:
            has_room = (
                not self._has_ended
                and self._waiting_calls + len(payloads) <= WAITING_CALLS_MAX
                and self._waiting_bytes + size <= WAITING_BYTES_MAX
            )
            if has_room:
                self._waiting_calls += len(payloads)
                self._waiting_bytes += size
                self._waiting.append((payloads, answers))
        if not has_room:
            self._count(ShadowOutcome.DROPPED.value, len(payloads))

    def use_rules(self, rules: RuleSet) -> None:
        """Put a rule set in force here as well."""
        self._decider.use_rules(rules)

    def start(self) -> None:
        """Begin to count what is left here."""
        self._reached_by_s = self._clock.monotonic_s() + BEGUN_WITHIN_S
        self._thread.start()

    def stop(self) -> None:
        """Count what is left, within LAST_WITHIN_S, and let go of the counters: once."""
        if self._is_stopping.is_set():
            return
        self._is_stopping.set()
        self._thread.join(LAST_WITHIN_S)
        self._store.close()

    def _run(self) -> None:
        try:
            self._wait_for_place()
            self._count_what_waits()
        finally:
            # An error that nobody foresaw ends this thread, and no call of the deciding path.
            if not self._is_stopping.is_set():
                LOG.error("Nothing is counted in %s any more, until a front starts", self._place)
            with self._lock:
                self._has_ended = True
                self._waiting.clear()

    def _wait_for_place(self) -> None:
        """Doors open before the place is reached: what comes by then is to be counted there, too,
        or it could not take over in the windows of that moment."""
        while not self._store.has_begun and self._clock.monotonic_s() < self._reached_by_s:
            if self._is_stopping.wait(LOOK_EVERY_S):
                return

    def _count_what_waits(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._is_stopping.wait(LOOK_EVERY_S)
            while self._waiting:
                with self._lock:
                    payloads, answers = self._waiting.popleft()
                    self._waiting_calls -= len(payloads)
                    self._waiting_bytes -= _size(payloads, answers)
                self._compare(payloads, answers, self._decider.decide_batch(payloads))

    def _compare(
        self,
        payloads: Sequence[bytes],
        answers: Sequence[DecidedAnswer],
        others: Sequence[DecidedAnswer],
    ) -> None:
        totals: Counter[ShadowOutcome] = Counter()
        for payload, answer, other in zip(payloads, answers, others, strict=True):
            outcome = self._outcome(payload, answer, other)
            if outcome is not None:
                totals[outcome] += 1
        for outcome, calls in totals.items():
            self._count(outcome.value, calls)

    def _outcome(
        self, payload: bytes, answer: DecidedAnswer, other: DecidedAnswer
    ) -> ShadowOutcome | None:
        """The outcome of a pair of answers; None for a request that was refused."""
        if isinstance(other, Refusal):
            return ShadowOutcome.UNREACHABLE if other.kind is RefusalReason.BACKEND else None
        if isinstance(answer, Refusal):
            return None
        outcome = compared(answer, other)
        if outcome is ShadowOutcome.CODE_DIFFERS:
            self._say(payload, answer, other)
        return outcome

    def _say(self, payload: bytes, answer: bytes, other: bytes) -> None:
        now_s = self._clock.monotonic_s()
        if now_s < self._said_s + SAID_EVERY_S:
            return
        self._said_s = now_s
        request = self._decode(payload)
        assert not isinstance(request, Refusal), "a request that was decided can be read"
        entries = [dict(each.entries) for each in request.descriptors]
        shown = f"{request.domain} {entries}"[:SHOWN_CHARS_MAX]
        LOG.warning(
            "By the counters in %s the answer to %r were %s, and was %s (one line in %g s at most)",
            self._place,
            shown,
            told(other),
            told(answer),
            SAID_EVERY_S,
        )


def _size(payloads: Sequence[bytes], answers: Sequence[DecidedAnswer]) -> int:
    """What a batch holds in memory, roughly."""
    told = sum(len(answer) for answer in answers if not isinstance(answer, Refusal))
    return told + sum(map(len, payloads))
