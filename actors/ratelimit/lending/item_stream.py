"""A stream of items to the other side: each is taken once, and in order.

    put -> numbered, kept until acknowledged, sent again after a while
    taken in order: what comes too early waits for what is missing, what comes twice is dropped

One for each lease: a new lease begins with two empty streams. Both sides are bounded by
`unacknowledged_max`: the sender asks `is_full` before it puts what can be refused, and the receiver
keeps no more that came too early than may be on the way.
"""

from collections import deque
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Generic, TypeVar

from tollgate.actors.ratelimit.lending.terms import Terms

LOST_AGAIN_S = 0.02
"""After a second loss in a row, so long nothing is sent again; twice as long after each further."""

Sent = TypeVar("Sent")
Taken = TypeVar("Taken")


@dataclass(slots=True)
class _Item(Generic[Sent]):
    number: int
    content: Sent
    sent_at_s: float = -inf


class ItemStream(Generic[Sent, Taken]):
    """Both directions, as seen from one side."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._unacknowledged: deque[_Item[Sent]] = deque()
        self._fresh: deque[_Item[Sent]] = deque()
        self._early: dict[int, Taken] = {}
        self._again_at_s = inf
        self._pause_s = 0.0
        self.put_last = 0
        self.acknowledged = 0
        """The last item that the other side has taken."""
        self.taken = 0
        """The last item that this side has taken."""

    def __len__(self) -> int:
        return len(self._unacknowledged) + len(self._early)

    @staticmethod
    def length_max(terms: Terms) -> int:
        """What a stream never exceeds: it is full at `unacknowledged_max` each way, and then takes
        no more than what a message in hand still brings about."""
        return 2 * terms.unacknowledged_max + 4 * terms.items_per_message_max

    @property
    def is_full(self) -> bool:
        return len(self._unacknowledged) >= self._terms.unacknowledged_max

    def untaken(self, taken: int) -> list[Sent]:
        """What the other side has certainly not taken, if it took no more than `taken` items: the
        items after that, and those that were never sent."""
        return [
            item.content
            for item in self._unacknowledged
            if item.number > taken or item.sent_at_s == -inf
        ]

    def put(self, content: Sent) -> int:
        """Append an item; its number."""
        self.put_last += 1
        item = _Item(self.put_last, content)
        self._unacknowledged.append(item)
        self._fresh.append(item)
        return self.put_last

    def take(self, acknowledged: int, items: list[tuple[int, Taken]]) -> list[Taken]:
        """Note what the other side has taken; of what it sent, the items whose turn it is."""
        self._pause_s = 0.0
        self.acknowledged = max(self.acknowledged, acknowledged)
        while self._unacknowledged and self._unacknowledged[0].number <= acknowledged:
            self._unacknowledged.popleft()
        for number, content in items:
            if self.taken < number <= self.taken + self._terms.unacknowledged_max:
                self._early[number] = content
        taken = []
        while self.taken + 1 in self._early:
            self.taken += 1
            taken.append(self._early.pop(self.taken))
        return taken

    def lose(self, now_s: float) -> float:
        """A message is known to be lost. When to send what it may have held once more: at once, and
        after pauses that get longer as long as nothing comes back."""
        again_at_s = now_s + self._pause_s
        self._pause_s = min(self._terms.resend_s, max(LOST_AGAIN_S, 2 * self._pause_s))
        if self._unacknowledged:
            self._again_at_s = min(self._again_at_s, again_at_s)
        return again_at_s

    def is_due(self, now_s: float) -> bool:
        """Whether there is something to send, for the first time or again."""
        return bool(self._fresh) or self._is_late(now_s)

    def due(self, now_s: float) -> list[tuple[int, Sent]]:
        """The items to send now: what may have been lost before what is new."""
        items_max = self._terms.items_per_message_max
        items = []
        if self._is_late(now_s):
            sent_by_s = now_s if now_s >= self._again_at_s else now_s - self._terms.resend_s
            first = islice(self._unacknowledged, items_max)
            items = [item for item in first if -inf < item.sent_at_s <= sent_by_s]
            self._again_at_s = inf
        while self._fresh and len(items) < items_max:
            items.append(self._fresh.popleft())
        for item in items:
            item.sent_at_s = now_s
        return [(item.number, item.content) for item in items]

    def _is_late(self, now_s: float) -> bool:
        """Whether the oldest item was sent so long ago that it, or its receipt, may be lost."""
        if not self._unacknowledged:
            return False
        sent_at_s = self._unacknowledged[0].sent_at_s
        return sent_at_s > -inf and (
            now_s - sent_at_s >= self._terms.resend_s or now_s >= self._again_at_s
        )
