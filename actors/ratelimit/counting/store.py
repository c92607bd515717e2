"""The counter store: the port through which a decision reaches counters, wherever they live."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tollgate.actors.ratelimit.counting.counters import Conditional, Hits


class Unreachable(Exception):  # noqa: N818 - it is a state of a partition, handed around as a value
    """A partition did not answer in time, or at all. The text is the caller's error message."""


class CounterStore(Protocol):
    """Counts hits. Both calls answer per partition, in the shape of what was asked.

    They block, no longer than the store's deadline, and never raise: a partition that cannot be
    reached stands in the answer as `Unreachable`.
    """

    @property
    def partitions(self) -> int: ...

    def hit(
        self, batches: Mapping[int, Sequence[Hits]], now_s: int
    ) -> Mapping[int, list[list[int]] | Unreachable]: ...

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> Mapping[int, list[list[int]] | Unreachable]: ...
