"""A way to counters that notes when they were asked, for the span of their store."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import local

from tollgate.actors.ratelimit.counting.counters import (
    Conditional,
    CounterStore,
    LimitedHits,
    PartitionCounts,
    Unreachable,
)
from tollgate.serve.ratelimit.tracing.decided_calls import Counted


class _OfThread(local):
    counted: Counted | None = None


class TimedStore:
    """A CounterStore (see there) around another one."""

    def __init__(self, store: CounterStore, monotonic_s: Callable[[], float]) -> None:
        self._store = store
        self._monotonic_s = monotonic_s
        self._of_thread = _OfThread()

    @property
    def partitions(self) -> int:
        return self._store.partitions

    def hit(
        self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int
    ) -> Mapping[int, PartitionCounts]:
        started_s = self._monotonic_s()
        answers = self._store.hit(batches, now_s)
        self._note(started_s, answers.values())
        return answers

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> Mapping[int, PartitionCounts]:
        started_s = self._monotonic_s()
        answers = self._store.hit_conditionally(batches, now_s)
        self._note(started_s, answers.values())
        return answers

    def take_counted(self) -> Counted | None:
        """When this thread asked since it looked here last; None when it did not."""
        counted, self._of_thread.counted = self._of_thread.counted, None
        return counted

    def _note(self, started_s: float, answers: Iterable[PartitionCounts]) -> None:
        before = self._of_thread.counted
        failure = next((str(each) for each in answers if isinstance(each, Unreachable)), "")
        self._of_thread.counted = Counted(
            started_s if before is None else before.started_s,
            self._monotonic_s(),
            failure or ("" if before is None else before.failure),
        )
