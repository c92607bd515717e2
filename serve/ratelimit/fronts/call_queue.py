"""A bounded queue of calls: the oldest go first, into a batch, or out when there are too many.

    waiting --taken in time-->             decided
            --its deadline has passed-->   dropped
            --its caller has gone-->       dropped
            --more than the queue holds--> shed, the oldest first

Nobody waits for a dropped call, so nothing is counted. The oldest call has waited longest, so its
caller is the likeliest to have given up.
"""

from collections import deque
from collections.abc import Collection, Iterable
from typing import NamedTuple

from tollgate.serve.ratelimit.fronts.front import BegunCall

QUEUE_MAX = 8_192


class QueuedCall(NamedTuple):
    """A call that waits for its decision. `deadline_s` is monotonic, infinite without one."""

    id: int
    payload: bytes
    deadline_s: float
    begun: BegunCall | None = None


class CallQueue:
    """At most `calls_max` calls, oldest first. Belongs to one thread."""

    def __init__(self, calls_max: int = QUEUE_MAX) -> None:
        self._calls_max = calls_max
        self._calls: deque[QueuedCall] = deque()

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, calls: Iterable[QueuedCall]) -> list[QueuedCall]:
        """Queues calls; those that are shed for them."""
        waiting = self._calls
        waiting.extend(calls)
        return [waiting.popleft() for _ in range(len(waiting) - self._calls_max)]

    def forget(self, ids: Collection[int]) -> int:
        """Drops calls whose callers have gone: how many."""
        kept = deque(call for call in self._calls if call.id not in ids)
        dropped, self._calls = len(self._calls) - len(kept), kept
        return dropped

    def take(self, now_s: float, calls_max: int) -> tuple[list[QueuedCall], int]:
        """The oldest calls that are still waited for, and how many were dropped before them."""
        waiting = self._calls
        taken: list[QueuedCall] = []
        expired = 0
        while waiting and len(taken) < calls_max:
            call = waiting.popleft()
            if call.deadline_s > now_s:
                taken.append(call)
            else:
                expired += 1
        return taken, expired
