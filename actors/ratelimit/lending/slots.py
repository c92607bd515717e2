"""The division of a partition's keys into slots, by the hash that also routes them."""

from tollgate.actors.kernel.hashing import stable_hash
from tollgate.actors.ratelimit.lending.terms import SLOTS

_SHIFT = 64 - (SLOTS - 1).bit_length()


def slot_of(key: bytes) -> int:
    """The slot of a counter's key: the hash's highest bits, as partitions go by the lowest."""
    return stable_hash(key) >> _SHIFT
