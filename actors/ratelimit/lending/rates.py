"""The rates at which a front spends its counters: they size its loans.

A rate is learnt whenever the partition is asked, from all that was spent since it was asked last,
and halved into what was known; so a loan grows to a fraction of a second's spending within a few
calls, and shrinks as soon. It is kept by key, not by window: the first call of a window knows it.
"""

from math import ceil

from tollgate.actors.ratelimit.lending.recency import Recency
from tollgate.actors.ratelimit.lending.terms import Terms

FIRST_WANTED = 8
INTERVAL_MIN_S = 0.001


class SpendRates:
    """Hits per second by key, of the `rates_max` keys asked for last."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._rates: Recency[bytes, tuple[float, float]] = Recency()

    def __len__(self) -> int:
        return len(self._rates)

    def wanted(self, key: bytes, spent: int, now_s: float) -> int:
        """The quota that the front could use, after it has spent so much since it asked last."""
        known = self._rates.get(key)
        if known is None:
            rate = FIRST_WANTED / self._terms.loan_span_s
        else:
            asked_s, rate = known
            rate = (rate + spent / max(INTERVAL_MIN_S, now_s - asked_s)) / 2
        self._rates.use(key, (now_s, rate))
        while len(self._rates) > self._terms.rates_max:
            oldest, _ = self._rates.least_recent()
            self._rates.forget(oldest)
        return ceil(rate * self._terms.loan_span_s)
