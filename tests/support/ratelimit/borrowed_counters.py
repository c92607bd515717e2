"""Fronts that borrow from partitions in the same process: messages arrive at once, time is told."""

from tests.support.manual_clock import ManualClock
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.channel import OnReply
from tollgate.actors.ratelimit.lent_counting.partition import LendingPartition
from tollgate.actors.ratelimit.lent_counting.store import BorrowedCounters

DEADLINE_S = 0.5
DEFAULT_TERMS = Terms()


class LoopbackChannel:
    """To a partition in this process. `is_cut`: messages are lost. `is_deaf`: replies are lost.
    `is_slow`: messages wait until they are delivered."""

    def __init__(self, partition: LendingPartition) -> None:
        self.partition = partition
        self.is_cut = False
        self.is_deaf = False
        self.is_slow = False
        self.sent = 0
        self._held: list[tuple[bytes, OnReply]] = []
        self._listening: list[tuple[str, OnReply]] = []

    def send(self, message: bytes, on_reply: OnReply) -> None:
        self.sent += 1
        if self.is_slow:
            self._held.append((message, on_reply))
            return
        reply = None if self.is_cut else self.partition.receive(message)
        on_reply(None if self.is_deaf else reply)

    def listen(self, front: str, on_reply: OnReply) -> None:
        self._listening.append((front, on_reply))

    def deliver(self) -> None:
        """Bring the partition what it has not got yet, and whoever listens their mail."""
        if not self.is_slow:
            held, self._held = self._held, []
            for message, on_reply in held:
                on_reply(self.partition.receive(message))
        listening, self._listening = self._listening, []
        for front, on_reply in listening:
            on_reply(None if self.is_cut else self.partition.wait_for_mail(front, 0.0))


class Branch:
    """Partitions, and fronts that borrow from all of them. `channels`: by front and partition."""

    def __init__(
        self,
        clock: ManualClock,
        *,
        fronts: int = 1,
        partitions: int = 1,
        terms: Terms = DEFAULT_TERMS,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self.clock = clock
        self.terms = terms
        self.partitions = [
            LendingPartition(terms, 1, clock, is_new=True) for _ in range(partitions)
        ]
        self.channels = [[LoopbackChannel(each) for each in self.partitions] for _ in range(fronts)]
        self.fronts = [
            BorrowedCounters(channels, terms, f"front {number}", deadline_s, clock)
            for number, channels in enumerate(self.channels)
        ]

    def exchange(self) -> None:
        """A moment of everybody's background work."""
        for partition in self.partitions:
            partition.tick()
        for _ in range(2):
            for front, channels in zip(self.fronts, self.channels, strict=True):
                front.keep_up()
                for channel in channels:
                    channel.deliver()
                front.keep_up()

    def rest(self, seconds: float) -> None:
        """Time passes, as in processes that tick; a long time is waited out in a few steps."""
        for _ in range(4):  # (whole seconds are divided without a remainder)
            self.clock.advance(seconds / 4)
            self.exchange()

    def restart(self, number: int, *, incarnation: int) -> None:
        """A partition dies and starts again."""
        partition = LendingPartition(self.terms, incarnation, self.clock, is_new=False)
        self.partitions[number] = partition
        for channels in self.channels:
            channels[number].partition = partition
