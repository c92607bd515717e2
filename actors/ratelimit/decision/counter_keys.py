"""Names counters, and chooses the partitions that own them (B6).

    unit "|", then prefix, domain and each entry's key and value as <length>:<text>

No two rules can share a name (part A). The window is not part of it: a partition keeps the counters
of each window apart.
"""

from hashlib import blake2b

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.rules.descriptors import Entries

KEY_BYTES_MAX = 128
UNIT_SLOTS = 8  # units are numbered 1 to 7 on the wire: partition * 8 + unit is unique


def counter_key(prefix: str, domain: str, entries: Entries, unit: Unit) -> bytes:
    """The name of these entries' counter; a shared rule's pattern stands in the place of the value.

    A key longer than KEY_BYTES_MAX is replaced by its digest (behind `#`), so that a counter costs
    a bounded amount of memory.
    """
    parts = [f"{len(key)}:{key}{len(value)}:{value}" for key, value in entries]
    text = f"{unit:d}|{len(prefix)}:{prefix}{len(domain)}:{domain}{''.join(parts)}"
    key = text.encode("utf-8", "surrogatepass")
    if len(key) <= KEY_BYTES_MAX:
        return key
    return b"%d#" % unit + blake2b(key, digest_size=32).digest()
