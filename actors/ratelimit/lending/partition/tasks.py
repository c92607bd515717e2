"""Requests that wait in a partition until lent counters have come back.

They are counted in the order in which they came, as far as they touch the same counters; one that
has waited for longer than its front has patience is not counted at all.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tollgate.actors.ratelimit.lending.messages import CounterName, LimitedHit
from tollgate.actors.ratelimit.lending.partition.leases import Leases


@dataclass(slots=True)
class PendingReset:
    """A counter that is to be set to 0. `is_set`: it is, though not all have heard of it.
    `failure`: the reason why it was not, once `is_done`."""

    counter: CounterName
    is_set: bool = False
    is_done: bool = False
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One request of an Ask: number `request` of call `call`; or a reset, which no front asks."""

    front: str
    call: int
    request: int
    hits: list[LimitedHit]
    is_conditional: bool
    wanted: int
    until_s: float
    reset: PendingReset | None = None

    @property
    def counters(self) -> set[CounterName]:
        return {hit.counter for hit in self.hits}


class ResetNews:
    """Resets that are done, until all fronts that are there have heard of them: at most
    `resets_max`. Only then are they said to be: from then on no front tells a partition that starts
    again what was before."""

    def __init__(self, leases: Leases, resets_max: int) -> None:
        self._leases = leases
        self._resets_max = resets_max
        # With the lease and the item that tells it, by front.
        self._out: list[tuple[PendingReset, dict[str, tuple[int, int]]]] = []

    @property
    def is_full(self) -> bool:
        return len(self._out) >= self._resets_max

    def put(self, pending: PendingReset) -> None:
        """A reset of which the last item of each stream tells."""
        leases = self._leases.by_front.items()
        told = {front: (lease.number, lease.stream.put_last) for front, lease in leases}
        self._out.append((pending, told))
        pending.is_set = True

    def settle(self) -> None:
        """Note which of them have been heard of by now."""
        for pending, told in self._out:
            pending.is_done = all(self._leases.has_taken(*each) for each in told.items())
        self._out = [each for each in self._out if not each[0].is_done]


class TaskQueue:
    """Tasks in order of arrival, at most `tasks_max`."""

    def __init__(self, tasks_max: int) -> None:
        self._tasks_max = tasks_max
        self._tasks: list[Task] = []
        self._counters: set[CounterName] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def is_full(self) -> bool:
        return len(self._tasks) >= self._tasks_max

    @property
    def counters(self) -> set[CounterName]:
        """The counters that somebody waits for."""
        return self._counters

    def put(self, task: Task) -> None:
        self._tasks.append(task)
        self._counters |= task.counters

    def retry(self, attempt: Callable[[Task], bool]) -> None:
        """Attempt every task that no earlier one is in the way of; those that fail stay."""
        tasks, self._tasks, self._counters = self._tasks, [], set()
        for task in tasks:
            if not (task.counters.isdisjoint(self._counters) and attempt(task)):
                self.put(task)

    def drop(self, is_dropped: Callable[[Task], bool]) -> list[Task]:
        """Take tasks out; those that were."""
        dropped = [task for task in self._tasks if is_dropped(task)]
        if dropped:
            kept = [task for task in self._tasks if not is_dropped(task)]
            self._tasks, self._counters = [], set()
            for task in kept:
                self.put(task)
        return dropped
