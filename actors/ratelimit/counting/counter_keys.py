"""The names of counters inside Tollgate (specification A: no two rules can share a counter).

    key = unit "|", then prefix, domain and each entry's key and value as <length>:<text>

The window is not part of the key: a partition keeps the counters of each window apart. A key longer
than KEY_BYTES_MAX is replaced by its digest (behind `#`), so that a counter costs a bounded amount
of memory. The text of B6, as Redis, Memcached and logs have it, is another matter.
"""

from hashlib import blake2b

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.rules.descriptors import Entries

KEY_BYTES_MAX = 128


def counter_key(prefix: str, domain: str, entries: Entries, unit: Unit) -> bytes:
    """The counter of these entries (a shared rule's pattern in the place of the value)."""
    parts = [f"{len(key)}:{key}{len(value)}:{value}" for key, value in entries]
    text = f"{unit:d}|{len(prefix)}:{prefix}{len(domain)}:{domain}{''.join(parts)}"
    key = text.encode("utf-8", "surrogatepass")
    if len(key) <= KEY_BYTES_MAX:
        return key
    return b"%d#" % unit + blake2b(key, digest_size=32).digest()
