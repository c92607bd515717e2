"""Fronts and their partition, with nothing in between: messages arrive at once, time is told."""

from collections.abc import Mapping

from tollgate.actors.ratelimit.counting.counters import Conditional, Unreachable
from tollgate.actors.ratelimit.lending.borrower import Borrower
from tollgate.actors.ratelimit.lending.lender import Lender
from tollgate.actors.ratelimit.lending.messages import LimitedHits, ToFront
from tollgate.actors.ratelimit.lending.pending_call import PendingCall
from tollgate.actors.ratelimit.lending.terms import Terms

START_S = 1_000_000
PATIENCE_S = 0.5


class Pair:
    """`fronts`: the machines, by number; `silent`: those whose messages do not arrive, either way.
    `clock_errors_s`: how far the wall clocks of some fronts are ahead; `partition_error_s`: the
    partition's."""

    def __init__(self, terms: Terms, fronts: int = 1) -> None:
        self.terms = terms
        self.now_s = 0.0
        self.fronts = [Borrower(terms, f"front {number}") for number in range(fronts)]
        self.partition = Lender(terms, 1, 0.0, is_new=True)
        self.silent: set[int] = set()
        self.clock_errors_s: dict[int, float] = {}
        self.partition_error_s = 0.0
        self.messages = 0

    def wall_s(self, front: int = 0) -> float:
        return START_S + self.now_s + self.clock_errors_s.get(front, 0.0)

    @property
    def partition_wall_s(self) -> float:
        return START_S + self.now_s + self.partition_error_s

    def rest(self, seconds: float) -> None:
        """Time passes, as in processes that tick; a long time is waited out in a few steps."""
        for _ in range(5):
            self.now_s += seconds / 5
            self.exchange()

    def exchange(self) -> None:
        """Deliver what is to be said until nobody has anything to say."""
        is_quiet = False
        while not is_quiet:
            is_quiet = True
            for number, front in enumerate(self.fronts):
                while message := front.outgoing(self.wall_s(number), self.now_s):
                    is_quiet = False
                    self.messages += 1
                    if number not in self.silent:
                        wall_s = self.partition_wall_s
                        self._deliver(self.partition.receive(message, wall_s, self.now_s))
        self._deliver(self.partition.tick(self.partition_wall_s, self.now_s))

    def _deliver(self, answers: Mapping[str, ToFront]) -> None:
        for number, front in enumerate(self.fronts):
            answer = answers.get(f"front {number}")
            if answer is not None and number not in self.silent:
                front.receive(answer, self.wall_s(number), self.now_s)

    def hit(self, batch: list[LimitedHits], front: int = 0) -> list[list[int | Unreachable]]:
        machine = self.fronts[front]
        return self._finish(machine.hit(batch, self.wall_s(front), self.now_s, PATIENCE_S))

    def hit_one(
        self, key: bytes, limit: int, front: int = 0, *, end_s: int = START_S + 60, by: int = 1
    ) -> int | Unreachable:
        """The count of one counter after a hit."""
        return self.hit([LimitedHits(end_s, [key], [by], [limit])], front)[0][0]

    def hit_conditionally(self, batch: list[Conditional]) -> list[list[int | Unreachable]]:
        (machine, *_) = self.fronts
        call = machine.hit_conditionally(batch, self.wall_s(), self.now_s, PATIENCE_S)
        return self._finish(call)

    def _finish(self, call: PendingCall) -> list[list[int | Unreachable]]:
        """The counts, after at most `PATIENCE_S`."""
        for _ in range(10):
            self.exchange()
            if call.is_done:
                return call.counts
            self.now_s += PATIENCE_S / 8
        raise AssertionError("a call is done when its front's patience ends")
