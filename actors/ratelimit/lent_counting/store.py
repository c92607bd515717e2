"""The counter store of a front that borrows: a line to every partition, and the messenger's thread.

What is lent is counted in the thread that decides, without a message. What is not is asked for, of
all partitions at once, and waited for no longer than the deadline. The messenger sends what is due
meanwhile: reports, acknowledgements, what was called back.
"""

from collections.abc import Mapping, Sequence
from threading import Event, Thread

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.counters import Conditional, LimitedHits, PartitionCounts
from tollgate.actors.ratelimit.lending.borrower import Borrower
from tollgate.actors.ratelimit.lending.pending_call import PendingCall
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.channel import Channel
from tollgate.actors.ratelimit.lent_counting.line import Line

GIVE_BACK_WITHIN_S = 1.0


class BorrowedCounters:
    """A CounterStore. `front` is the name of this process, and no other's, ever. Thread-safe.

    It keeps its loans only between `start` and `close`; apart from these it asks for everything.
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        terms: Terms,
        front: str,
        deadline_s: float,
        clock: Clock,
    ) -> None:
        assert channels, "counters need at least one partition"
        self._report_every_s = terms.report_every_s
        self._clock = clock
        self._has_news = Event()
        self._is_closed = Event()
        self._lines = [
            Line(
                Borrower(terms, front),
                channel,
                clock,
                front=front,
                deadline_s=deadline_s,
                wake=self._has_news.set,
            )
            for channel in channels
        ]
        self._messenger = Thread(target=self._carry, name="messenger", daemon=True)

    @property
    def partitions(self) -> int:
        return len(self._lines)

    @property
    def down(self) -> frozenset[int]:
        """The partitions that are not answering."""
        return frozenset(number for number, line in enumerate(self._lines) if line.is_down)

    @property
    def has_begun(self) -> bool:
        """True: partitions are started before whoever uses them."""
        return True

    @property
    def evicted(self) -> int:
        """The live counters that this front has given up because a table was full."""
        return sum(line.evicted for line in self._lines)

    @property
    def resets(self) -> int:
        """Rises when counts have become smaller elsewhere: by refunds, or set to 0."""
        return sum(line.resets for line in self._lines)

    # Counting

    def hit(
        self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int
    ) -> dict[int, PartitionCounts]:
        calls = {number: self._lines[number].hit(batch) for number, batch in batches.items()}
        return self._counts(calls)

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> dict[int, PartitionCounts]:
        calls = {
            number: self._lines[number].hit_conditionally(batch)
            for number, batch in batches.items()
        }
        return self._counts(calls)

    def _counts(self, calls: Mapping[int, PendingCall]) -> dict[int, PartitionCounts]:
        for number, call in calls.items():
            if not call.is_done:
                self._lines[number].wait(call)
        return {number: call.counts for number, call in calls.items()}

    # Loans

    def start(self) -> None:
        """Begin to carry messages."""
        self._messenger.start()

    def probe(self) -> None:
        """See that the messenger is at work."""
        is_at_work = self._messenger.is_alive() or self._is_closed.is_set()
        assert is_at_work, "nothing is reported any more, and no loan goes back"

    def keep_up(self) -> None:
        """Send what is due to every partition."""
        for line in self._lines:
            line.keep_up()

    def close(self) -> None:
        """Give all loans back, as far as partitions answer, and end the messenger: once."""
        if self._is_closed.is_set():
            return
        self._is_closed.set()
        self._has_news.set()
        until_s = self._clock.monotonic_s() + GIVE_BACK_WITHIN_S
        for line in self._lines:
            line.give_back()
        for line in self._lines:
            line.wait_until_said(until_s)

    def _carry(self) -> None:
        while not self._is_closed.is_set():
            self.keep_up()
            self._has_news.wait(self._report_every_s)
            self._has_news.clear()
