"""The fronts that a partition hears of. With the end of a lease all that they have falls back."""

from dataclasses import dataclass
from math import inf

from tollgate.actors.ratelimit.lending.item_stream import ItemStream
from tollgate.actors.ratelimit.lending.messages import FrontItem, PartitionItem
from tollgate.actors.ratelimit.lending.terms import Terms


@dataclass(slots=True)
class Lease:
    """A front, as long as it is heard of. `until_s`: when all that it has falls back."""

    number: int
    stream: ItemStream[FrontItem, PartitionItem]
    before: tuple[int, int] = (0, 0)
    heard_s: float = -inf
    until_s: float = 0.0
    offset_s: float = 0.0


class Leases:
    """By front, at most `fronts_max`; numbers rise and are never used again."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._last = 0
        self.by_front: dict[str, Lease] = {}

    def of(self, front: str, now_s: float) -> Lease | None:
        """The lease of a front, a new one if need be. None: there are too many."""
        lease = self.by_front.get(front)
        if lease is None and len(self.by_front) < self._terms.fronts_max:
            lease = self.begin(front, (0, 0), now_s)
        return lease

    def begin(self, front: str, before: tuple[int, int], now_s: float) -> Lease:
        """A new lease. `before`: the one that ended, and the last item taken of it."""
        self._last += 1
        lease = Lease(self._last, ItemStream(self._terms), before)
        self.renew(lease, now_s)
        self.by_front[front] = lease
        return lease

    def renew(self, lease: Lease, now_s: float) -> None:
        lease.until_s = now_s + self._terms.term_s + self._terms.margin_s

    def prolong(self, seconds: float) -> None:
        """The partition stood still: what fronts sent meanwhile is waiting to be read."""
        for lease in self.by_front.values():
            lease.until_s += seconds

    def ended(self, now_s: float) -> list[tuple[str, Lease]]:
        return [(f, lease) for f, lease in self.by_front.items() if lease.until_s <= now_s]
