"""The names of counters inside Tollgate (specification A: no two rules can share a counter).

    key = unit, then domain and each entry's key and value, every part behind its length

The window is not part of the key: a partition keeps the counters of each window apart. A key longer
than KEY_BYTES_MAX is replaced by its digest, so that a counter costs a bounded amount of memory.
The text of B6, as Redis and Memcached and logs have it, is another matter and belongs to those.
"""

from hashlib import blake2b

from actors.ratelimit.descriptors import Entries
from actors.ratelimit.windows import Unit

KEY_BYTES_MAX = 128
_DIGESTED = 0xFF  # in the place of the unit: no unit has this number


def counter_key(prefix: str, domain: str, entries: Entries, unit: Unit) -> bytes:
    """The counter of these entries (a shared rule's pattern in the place of the value)."""
    parts = bytearray((unit,))
    for text in (prefix, domain):
        _append(parts, text)
    for key, value in entries:
        _append(parts, key)
        _append(parts, value)
    if len(parts) <= KEY_BYTES_MAX:
        return bytes(parts)
    return bytes((_DIGESTED, unit)) + blake2b(parts, digest_size=32).digest()


def _append(parts: bytearray, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    size = len(data)
    # One byte carries most lengths; the marker 0xFF announces four.
    parts += bytes((size,)) if size < 0xFF else b"\xff" + size.to_bytes(4, "big")
    parts += data
