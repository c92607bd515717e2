"""Stable hashes: the same bytes give the same number in every process and on every machine."""

from collections.abc import Callable
from hashlib import blake2b

import xxhash

# (not wrapped in a function of our own, for every counter of a new request calls it)
stable_hash: Callable[[bytes], int] = xxhash.xxh3_64_intdigest
"""A 64-bit hash for sharding. Not for adversaries: use `digest` for identity."""


def digest(*parts: bytes) -> str:
    """A collision-resistant name for content: hex, 32 characters; the parts are length-prefixed."""
    state = blake2b(digest_size=16)
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.hexdigest()
