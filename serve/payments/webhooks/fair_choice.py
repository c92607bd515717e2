"""The choice among webhooks that are due: no merchant's slow receivers become another's delay.

    test, live      share nothing: each limit below is kept for the ones and for the others
    quick, slow     receivers that failed last, or take longer than `SLOW_MS`, have half of the
                    calls, the others the other half; a call that turns out to be slow counts
                    with the slow ones from then on, so that nobody has to be known before
    a merchant      has at most `MERCHANT_CALLS_MAX` calls under way
    a host          has at most a quarter of the calls: merchants of one host share them
    all             at most `OVERLAP` times the calls, while many turn out to be slow at once
    first in line   the merchant who was served longest ago

It belongs to one process, as the calls do; the order that storage offers is the one of all.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from tollgate.actors.kernel.bounded_cache import LruCache
from tollgate.actors.ledger.delivery.batches import DueDelivery
from tollgate.actors.ledger.law.values import BookId, EntityId

MERCHANT_CALLS_MAX = 2
SLOW_MS = 1_000
OVERLAP = 4
REMEMBERED_MAX = 20_000


@dataclass(frozen=True, slots=True)
class _Started:
    due: DueDelivery
    host: str
    is_slow: bool
    at_ms: int


class FairChoice:
    """Chooses whom to call next. `calls_max`: of test merchants, and as many of live ones; while
    receivers turn out to be slow there may be `OVERLAP` times as many."""

    def __init__(self, calls_max: int) -> None:
        self._maxima = {
            "all": OVERLAP * calls_max,
            "quick": max(1, calls_max // 2),
            "slow": max(1, calls_max // 2),
            "merchant": MERCHANT_CALLS_MAX,
            "host": max(1, calls_max // 4),
        }
        self._under_way: dict[EntityId, _Started] = {}
        self._served: LruCache[BookId, int] = LruCache(REMEMBERED_MAX)
        self._slow: LruCache[str, bool] = LruCache(REMEMBERED_MAX)
        self._turns = 0

    def choose(self, due: Sequence[DueDelivery], now_ms: int) -> list[DueDelivery]:
        """Of those that are due, the ones to call now; they count as under way from here on."""
        waiting = sorted(due, key=lambda each: self._served.get(each.book) or 0)
        chosen = []
        counts = Counter(key for each in self._under_way.values() for key in _keys(each, now_ms))
        for each in waiting:
            started = self._started(each, now_ms)
            if each.webhook in self._under_way or not self._has_room(started, counts):
                continue
            counts.update(_keys(started, now_ms))
            self._under_way[each.webhook] = started
            self._turns += 1
            self._served.put(each.book, self._turns)
            chosen.append(each)
        return chosen

    def ended(self, webhook: EntityId, now_ms: int, calls: int) -> None:
        """So many calls to it have ended."""
        started = self._under_way.pop(webhook, None)
        if started is not None:
            took_ms = (now_ms - started.at_ms) / max(1, calls)
            for receiver in (webhook, started.due.book):
                self._slow.put(receiver, took_ms > SLOW_MS)

    def unclaimed(self, chosen: Sequence[DueDelivery], claimed: Sequence[EntityId]) -> None:
        """Others were quicker, or storage did not answer: those are not under way."""
        for each in chosen:
            if each.webhook not in claimed:
                self._under_way.pop(each.webhook, None)

    def _started(self, due: DueDelivery, now_ms: int) -> _Started:
        known = self._slow.get(due.webhook)
        if known is None:
            known = self._slow.get(due.book)
        is_slow = due.failures > 0 or bool(known)
        return _Started(due, urlsplit(due.url).hostname or "", is_slow, now_ms)

    def _has_room(self, started: _Started, counts: Counter[tuple[str, object]]) -> bool:
        keys = _keys(started, started.at_ms)
        return all(counts[key] < self._maxima[key[0]] for key in keys)


def _keys(started: _Started, now_ms: int) -> list[tuple[str, object]]:
    due = started.due
    is_slow = started.is_slow or now_ms - started.at_ms > SLOW_MS
    return [
        ("all", due.is_test),
        ("slow" if is_slow else "quick", due.is_test),
        ("merchant", due.book),
        ("host", (started.host, due.is_test)),
    ]
