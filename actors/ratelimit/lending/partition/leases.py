"""The fronts that a partition hears of. With the end of a lease all that they have falls back."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf

from tollgate.actors.ratelimit.lending.item_stream import ItemStream
from tollgate.actors.ratelimit.lending.messages import FrontItem, PartitionItem
from tollgate.actors.ratelimit.lending.partition.slot_table import SlotTable
from tollgate.actors.ratelimit.lending.terms import Terms


@dataclass(slots=True)
class Lease:
    """A front, as long as it is heard of. `until_s`: when all that it has falls back. `before`: the
    lease that ended so, and the last item taken of it; `lost_s`: when that was. `own_falls`: of
    counts that it has made smaller itself."""

    number: int
    stream: ItemStream[FrontItem, PartitionItem]
    before: tuple[int, int] = (0, 0)
    lost_s: float = -inf
    heard_s: float = -inf
    until_s: float = 0.0
    offset_s: float = 0.0
    own_falls: int = 0

    def describe_skew(self, skew_max_s: float) -> str:
        """The reason why a front whose clock is far off counts nothing."""
        direction = "ahead of" if self.offset_s > 0 else "behind"
        return (
            f"this front's clock is {abs(self.offset_s):.1f} s {direction} the counter "
            f"partition's, and {skew_max_s:g} s are allowed"
        )


class Leases:
    """By front, at most `fronts_max`; numbers rise and are never used again. Of as many that are
    not heard of any more it is remembered how their leases ended, for they may come back."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._last = 0
        self._falls_told = 0
        self.by_front: dict[str, Lease] = {}
        self._gone: dict[str, Lease] = {}

    def of(self, front: str, now_s: float) -> Lease | None:
        """The lease of a front, a new one if need be. None: there are too many."""
        lease = self.by_front.get(front)
        if lease is None and len(self.by_front) < self._terms.fronts_max:
            lease = self._gone.pop(front, None)
            if lease is None:
                return self._begin(front, (0, 0), -inf, now_s)
            # It goes on: the front may have heard of it, and says under it what was not heard.
            self.renew(lease, now_s)
            self.by_front[front] = lease
        return lease

    def end(self, front: str, lease: Lease, now_s: float) -> None:
        """All that a front has has fallen back. Should it come back, it learns what was taken of
        its last items, and that no more was."""
        del self.by_front[front]
        if lease.heard_s > -inf:
            self._begin(front, (lease.number, lease.stream.taken), now_s, now_s)
        else:
            self._gone[front] = lease
            if len(self._gone) > self._terms.fronts_max:
                del self._gone[next(iter(self._gone))]

    def _begin(self, front: str, before: tuple[int, int], lost_s: float, now_s: float) -> Lease:
        self._last += 1
        lease = Lease(self._last, ItemStream(self._terms), before, lost_s)
        self.renew(lease, now_s)
        self.by_front[front] = lease
        return lease

    def has_taken(self, front: str, told: tuple[int, int]) -> bool:
        """Whether a front has heard an item of a lease of its, or was taken for lost: before it, or
        by now."""
        number, item = told
        lease = self.by_front.get(front)
        if lease is None or lease.number != number or lease.heard_s == -inf:
            return True
        return lease.stream.acknowledged >= item

    @property
    def has_full_stream(self) -> bool:
        """Whether some front has not read for so long that it can be told nothing more. One that
        was taken for lost has nothing any more that it would have to hear of."""
        leases = self.by_front.values()
        return any(lease.stream.is_full and lease.heard_s > -inf for lease in leases)

    @property
    def readers(self) -> list[str]:
        """The fronts that can be told something."""
        return [front for front, lease in self.by_front.items() if not lease.stream.is_full]

    def renew(self, lease: Lease, now_s: float) -> None:
        lease.until_s = now_s + self._terms.term_s + self._terms.margin_s

    def prolong(self, seconds: float) -> None:
        """The partition stood still: what fronts sent meanwhile is waiting to be read."""
        for lease in self.by_front.values():
            lease.until_s += seconds

    def ended(self, now_s: float) -> list[tuple[str, Lease]]:
        return [(f, lease) for f, lease in self.by_front.items() if lease.until_s <= now_s]

    def to_tell(self, falls: int, now_s: float) -> set[str]:
        """The fronts that something is due for; all of them when counts have become smaller."""
        has_news, self._falls_told = falls != self._falls_told, falls
        return {
            front
            for front, lease in self.by_front.items()
            if has_news or lease.stream.is_due(now_s)
        }


@contextmanager
def own_falls(lease: Lease, table: SlotTable) -> Iterator[None]:
    """Counts that become smaller meanwhile are this front's own doing, so it knows of them."""
    before = table.falls
    yield
    lease.own_falls += table.falls - before
