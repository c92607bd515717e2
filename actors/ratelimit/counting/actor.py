"""Counter partitions as Ray actors, and the store through which fronts reach them.

A partition is called once per batch, with one `bytes` argument: Ray's generic serialiser would
cost each call another 100 µs. Calls are never retried (`max_task_retries=0`): a hit whose answer
was lost may have been counted, and counting it again could refuse somebody who is within the limit.

A partition that fails is left alone until it answers a probe, so that nobody waits for it twice.
"""

import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from tollgate.actors.kernel.actor import named_actor
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.kernel.garbage_collection import spare_what_is_there
from tollgate.actors.ratelimit.counting.counters import (
    Conditional,
    LimitedHits,
    PartitionAnswers,
    Unreachable,
)
from tollgate.actors.ratelimit.counting.fall_watch import Described, FallWatch
from tollgate.actors.ratelimit.counting.partition import DirectPartition
from tollgate.actors.ratelimit.counting.probes import Probes
from tollgate.actors.ratelimit.snapshots.keeper import SnapshotKeeper
from tollgate.actors.ratelimit.snapshots.snapshot_thread import SnapshotThread

MakeKeeper = Callable[[], SnapshotKeeper]
"""Makes the keeper of a partition, in the partition's process."""
PENDING_CALLS_MAX = 1_000
START_WITHIN_S = 240.0  # it reads its journal first: 4 s of a processor for a million counters


class CounterPartition(DirectPartition):
    """The shell around one partition. Calls run one at a time. `make_keeper`: of its counters on
    disk; None: they end with the process."""

    def __init__(
        self,
        counters_max: int,
        clock: Clock,
        make_keeper: MakeKeeper | None = None,
        *,
        refuses_when_full: bool,
    ) -> None:
        super().__init__(
            counters_max,
            clock,
            refuses_when_full=refuses_when_full,
            keeps_changes=make_keeper is not None,
        )
        self._snapshots = None if make_keeper is None else SnapshotThread.begin(make_keeper(), self)
        spare_what_is_there()

    def describe(self) -> dict[str, int]:
        """The process, the size of its table, and how its counters are kept; also a probe."""
        kept = {} if self._snapshots is None else self._snapshots.describe()
        return {**super().describe(), **kept}

    def finish(self) -> bool:
        """Whether all that was counted is on disk, if it is kept at all, as soon as that is known:
        the process is about to end."""
        return self._snapshots is None or self._snapshots.finish()


def start_partitions(
    names: Sequence[str],
    namespace: str,
    counters_max: int,
    clock: Clock,
    make_keepers: Sequence[MakeKeeper | None] | None = None,
    *,
    refuses_when_full: bool = False,
) -> list[Any]:
    """Create the named partitions, or find them; their handles, once every one has answered.
    `make_keepers`: for each of them; None: nothing is kept."""
    options = {"max_task_retries": 0, "max_pending_calls": PENDING_CALLS_MAX}
    handles: list[Any] = [
        named_actor(CounterPartition, name, namespace, **options).remote(
            counters_max, clock, make_keeper, refuses_when_full=refuses_when_full
        )
        for name, make_keeper in zip(names, make_keepers or [None] * len(names), strict=True)
    ]
    ray.get([handle.describe.remote() for handle in handles], timeout=START_WITHIN_S)
    return handles


class PartitionedCounters:
    """The counter store over partition actors: one call per batch and partition. Thread-safe."""

    def __init__(self, handles: Sequence[Any], deadline_s: float, clock: Clock) -> None:
        assert handles, "counters need at least one partition"
        self._handles = list(handles)
        self._deadline_s = deadline_s
        self._clock = clock
        self.resets = 0
        asks = [partial(_described, each) for each in handles]
        self._probes = Probes(asks, clock)
        self._fall_watch = FallWatch(asks, clock)

    @property
    def partitions(self) -> int:
        return len(self._handles)

    @property
    def down(self) -> frozenset[int]:
        """The partitions that are not answering."""
        return self._probes.down

    @property
    def has_begun(self) -> bool:
        """True: partitions are started before whoever uses them."""
        return True

    @property
    def evicted(self) -> int:
        """Nothing: the partitions count what they give up."""
        return 0

    def close(self) -> None:
        """Nothing is lent, so nothing goes back."""

    def hit(self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int) -> PartitionAnswers:
        # Counted here, a hit needs no limit.
        calls = {partition: [hits[:3] for hits in batch] for partition, batch in batches.items()}
        return self._call(calls, now_s, lambda handle: handle.hit)

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> PartitionAnswers:
        calls = {each: list(map(tuple, batch)) for each, batch in batches.items()}
        return self._call(calls, now_s, lambda handle: handle.hit_conditionally)

    def probe(self) -> None:
        """See whether partitions that were down are back, without a hit to carry."""
        for partition in self._probes.down:
            self._probes.is_up(partition)
        self.resets = self._fall_watch.look()

    def _call(
        self,
        batches: Mapping[int, Sequence[tuple[Any, ...]]],
        now_s: int,
        method: Callable[[Any], Any],
    ) -> PartitionAnswers:
        answers: PartitionAnswers = {}
        calls: dict[int, Any] = {}
        give_up_s = self._clock.monotonic_s() + self._deadline_s
        for partition, batch in batches.items():
            if not self._probes.is_up(partition):
                answers[partition] = Unreachable(f"counter partition {partition} is not answering")
                continue
            call = pickle.dumps((batch, now_s), pickle.HIGHEST_PROTOCOL)
            try:
                calls[partition] = method(self._handles[partition]).remote(call)
            except RayError as error:
                answers[partition] = self._lost(partition, error)
        try:
            counts = ray.get(list(calls.values()), timeout=self._deadline_s)
        except RayError:
            answers.update(self._salvage(calls, give_up_s))
        else:
            answers.update(zip(calls, map(pickle.loads, counts), strict=True))
        return answers

    def _salvage(self, calls: Mapping[int, Any], give_up_s: float) -> PartitionAnswers:
        """After one call failed: what the others bring, within the rest of the deadline."""
        answers: PartitionAnswers = {}
        for partition, call in calls.items():
            left_s = max(0.0, give_up_s - self._clock.monotonic_s())
            try:
                answers[partition] = pickle.loads(ray.get(call, timeout=left_s))
            except RayError as error:
                answers[partition] = self._lost(partition, error)
        return answers

    def _lost(self, partition: int, error: RayError) -> Unreachable:
        self._probes.lose(partition)
        if isinstance(error, GetTimeoutError):
            return Unreachable(
                f"counter partition {partition} did not answer within {self._deadline_s * 1e3:g} ms"
            )
        return Unreachable(f"counter partition {partition} is not answering")


def _described(handle: Any) -> "Future[Described] | None":
    with suppress(RayError):  # (even this may be one call too many in its queue)
        described: Future[Described] = handle.describe.remote().future()
        return described
    return None
