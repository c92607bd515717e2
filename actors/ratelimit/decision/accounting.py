"""Judges a count against its limit: the law of B7.

With a = addend, A = count after, B = A - a, L = limit, N = near-limit threshold:

    A > L   OVER, remaining 0.   B >= L: over += a.   else over += A - L, near += L - max(N, B)
    A <= L  OK, remaining L - A, within += a.         A > N: near += a if B >= N, else A - N

L = 0 therefore blocks every hit. Where hits were spared (B9) A does not hold a, and B may fall
below zero: the reference computes it unsigned, so such a B counts as beyond every threshold, and
dashboards built on that stay right.
"""

from functools import lru_cache
from struct import pack, unpack

THRESHOLDS_KEPT_MAX = 4_096  # as many different limits are remembered with theirs

# A judged count: is_over, remaining, and the hits that are over, near and within the limit. A plain
# tuple, because it is made once per hit: a named one would cost the hot path a tenth of its speed.
Account = tuple[bool, int, int, int, int]


def judge_count(after: int, addend: int, limit: int, near: int) -> Account:
    """Judge a count `after` its `addend` against `limit` (all in hits)."""
    before = after - addend
    if after <= limit:
        if after <= near:
            return False, limit - after, 0, 0, addend
        near_hits = addend if before >= near or before < 0 else after - near
        return False, limit - after, 0, near_hits, addend
    if before >= limit or before < 0:
        return True, 0, addend, 0, 0
    return True, 0, after - limit, limit - max(near, before), 0


def shadowed_hits(after: int, addend: int, limit: int) -> int:
    """The hits that a shadow rule let through although they were over the limit (B7, 5)."""
    before = after - addend
    return addend if before >= limit or before < 0 else after - limit


@lru_cache(maxsize=THRESHOLDS_KEPT_MAX)
def near_threshold(limit: int, ratio: float) -> int:
    """N = floor(float32(float32(limit) * float32(ratio))): the reference's own rounding (B7).

    It may round up beyond the limit, where nothing can be near it any more.
    """
    return min(limit, int(_float32(_float32(limit) * _float32(ratio))))


def _float32(number: float) -> float:
    (rounded,) = unpack("<f", pack("<f", number))
    assert isinstance(rounded, float)
    return rounded
