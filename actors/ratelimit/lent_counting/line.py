"""One front's line to one partition: its lending machine, what is under way, and who waits.

    hit -> counted at home: nothing is said      asked: the message leaves at once
    a reply comes (in any thread) -> it is put down; whoever waits, or else the messenger, reads it

A partition that lets several messages go unanswered, for longer than anybody would wait, is down:
until it is heard of again nobody waits for it, and only what is lent is counted.
"""

import pickle
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from threading import Condition, Lock

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.counters import Conditional, LimitedHits
from tollgate.actors.ratelimit.lending.borrower import Borrower
from tollgate.actors.ratelimit.lending.messages import Forgotten, ToFront
from tollgate.actors.ratelimit.lending.pending_call import PendingCall
from tollgate.actors.ratelimit.lent_counting.channel import Channel

UNDER_WAY_MAX = 64
"""Messages to a partition that has not replied; what is beyond is lost, and sent again later."""
SILENCE_MIN_S = 1.0
UNANSWERED_MIN = 2
LISTEN_AGAIN_S = 0.2
SAY_AGAIN_S = 0.1


class Line:
    """`wake`: calls the messenger. Thread-safe."""

    def __init__(
        self,
        borrower: Borrower,
        channel: Channel,
        clock: Clock,
        *,
        front: str,
        deadline_s: float,
        wake: Callable[[], None],
    ) -> None:
        self._borrower = borrower
        self._channel = channel
        self._clock = clock
        self._front = front
        self._deadline_s = deadline_s
        self._wake = wake
        # Of the machine; held while it works, never while something is sent.
        self._lock = Lock()
        # Of what is below; held for a moment only, for replies come in a thread of Ray's.
        self._has_come = Condition(Lock())
        self.resets = 0
        self._falls: int | None = None
        self._inbox: deque[bytes] = deque()
        self._waiting = 0
        self._under_way = 0
        self._has_lost = False
        self._unanswered = 0
        self._heard_s = clock.monotonic_s()
        self._is_listening = False
        self._listen_at_s = -inf

    @property
    def is_down(self) -> bool:
        silence_s = self._clock.monotonic_s() - self._heard_s
        return self._unanswered >= UNANSWERED_MIN and silence_s > max(
            SILENCE_MIN_S, self._deadline_s
        )

    @property
    def evicted(self) -> int:
        """The live counters that were given up at home."""
        return self._borrower.evicted

    # Counting

    def hit(self, batch: Sequence[LimitedHits]) -> PendingCall:
        """Count a batch; what is not done then has been asked for, and is to be waited for."""
        with self._lock:
            wall_s, now_s = self._clock.now_s(), self._clock.monotonic_s()
            self._read(wall_s, now_s)
            call = self._borrower.hit(batch, wall_s, now_s, self._patience_s())
        if not call.is_done:
            self.flush()
        return call

    def hit_conditionally(self, batch: Sequence[Conditional]) -> PendingCall:
        """As `hit`, by B9."""
        with self._lock:
            wall_s, now_s = self._clock.now_s(), self._clock.monotonic_s()
            self._read(wall_s, now_s)
            call = self._borrower.hit_conditionally(batch, wall_s, now_s, self._patience_s())
        if not call.is_done:
            self.flush()
        return call

    def _patience_s(self) -> float:
        return 0.0 if self._unanswered and self.is_down else self._deadline_s

    def wait(self, call: PendingCall) -> None:
        """Wait until a call is done, at the latest when its patience ends."""
        while not call.is_done:
            with self._has_come:
                self._waiting += 1
                left_s = call.until_s - self._clock.monotonic_s()
                is_quiet = not (self._inbox or self._has_lost or call.is_done)
                if is_quiet and left_s > 0:
                    self._has_come.wait(left_s)
                self._waiting -= 1
            self.flush()

    # Messages

    def flush(self) -> None:
        """Read what has come, and send what is due."""
        messages = []
        with self._lock:
            wall_s, now_s = self._clock.now_s(), self._clock.monotonic_s()
            has_read = self._read(wall_s, now_s)
            while message := self._borrower.outgoing(wall_s, now_s):
                messages.append(message)
        if has_read:
            with self._has_come:
                self._has_come.notify_all()  # (it may have been for another thread's call)
        for message in messages:
            self._send(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))

    def keep_up(self) -> None:
        """What the messenger does every now and then: `flush`, and listen for mail."""
        self.flush()
        with self._has_come:
            is_due = not self._is_listening and self._clock.monotonic_s() >= self._listen_at_s
            self._is_listening = self._is_listening or is_due
        if is_due:
            self._channel.listen(self._front, self._has_listened)

    def give_back(self) -> None:
        """Give all loans back, with the last report."""
        with self._lock:
            self._borrower.give_back()
        self.flush()

    def wait_until_said(self, until_s: float) -> None:
        """Wait until the partition has taken all that was said, at most until then."""
        while not (self._is_said or self.is_down):
            left_s = until_s - self._clock.monotonic_s()
            if left_s <= 0:
                return
            with self._has_come:
                self._waiting += 1
                if not self._inbox:
                    self._has_come.wait(min(left_s, SAY_AGAIN_S))
                self._waiting -= 1
            self.flush()

    @property
    def _is_said(self) -> bool:
        with self._lock:
            return self._borrower.is_said

    def _read(self, wall_s: float, now_s: float) -> bool:
        """Hand the machine what has come. Whether there was something."""
        has_read = False
        if self._has_lost:
            self._has_lost = False
            self._borrower.lose(now_s)
        while self._inbox:
            mail: list[ToFront] = pickle.loads(self._inbox.popleft())
            for message in mail:
                self._borrower.receive(message, wall_s, now_s)
                has_fallen = self._falls not in (None, message.falls)
                self._falls = message.falls
                if has_fallen or any(type(item) is Forgotten for _, item in message.items):
                    self.resets += 1
            if mail:
                has_read = True
                self._heard_s, self._unanswered = now_s, 0
        return has_read

    def _send(self, message: bytes) -> None:
        with self._has_come:
            self._unanswered += 1
            if self._under_way >= UNDER_WAY_MAX:
                return
            self._under_way += 1
        self._channel.send(message, self._has_replied)

    def _has_replied(self, reply: bytes | None) -> None:
        with self._has_come:
            self._under_way -= 1
            if reply is None:
                self._has_lost = True
            else:
                self._inbox.append(reply)
            self._has_come.notify_all()
            is_read = self._waiting > 0
        if not is_read:
            self._wake()

    def _has_listened(self, reply: bytes | None) -> None:
        with self._has_come:
            self._is_listening = False
            if reply is None:
                self._listen_at_s = self._clock.monotonic_s() + LISTEN_AGAIN_S
                return
            self._inbox.append(reply)
            self._has_come.notify_all()
        self._wake()
