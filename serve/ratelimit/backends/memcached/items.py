"""The names of counters in Memcached, and the node that holds each of them (B6, B11).

    <name of B6>      as the reference writes it
    #<its digest>     where Memcached could not take that name

A name has 250 bytes at most, and none that is a space or a control character. The reference gives
up on such a counter and lets everything pass; here it is counted under its digest.

    node = CRC-32 of the name, modulo the number of nodes, in the order of the list
"""

from hashlib import blake2b
from zlib import crc32

ITEM_NAME_BYTES_MAX = 250
COUNT_MAX = 2**31 - 1
"""The largest count that is believed; what is beyond it reads as 0, as in the reference."""
RELATIVE_LIFETIME_MAX_S = 30 * 86_400
"""Memcached takes a larger expiry for an instant of the epoch."""
DECREMENT_MAX = 2**64 - 1

_FORBIDDEN = bytes([*range(0x21), 0x7F])


def item_name(name: bytes) -> bytes:
    """The name in Memcached of a counter that B6 gives this name."""
    if len(name) <= ITEM_NAME_BYTES_MAX and len(name.translate(None, _FORBIDDEN)) == len(name):
        return name
    return b"#" + blake2b(name, digest_size=32).hexdigest().encode()


def node_number(name: bytes, nodes: int) -> int:
    """The place of the item's node in the list of nodes."""
    return crc32(name) % nodes


def count_of(value: bytes) -> int:
    """The count that an item's value stands for: 0 for one that is no number of 31 bits."""
    # A decrement leaves blanks where the number has become shorter.
    digits = value.rstrip(b" ")
    if not digits.isdigit() or len(digits) > len(str(COUNT_MAX)):
        return 0
    count = int(digits)
    return count if count <= COUNT_MAX else 0


def expiry(lifetime_s: int, now_s: int) -> int:
    """A lifetime as Memcached takes it: relative, or beyond 30 days the instant that it ends at."""
    return lifetime_s if lifetime_s <= RELATIVE_LIFETIME_MAX_S else now_s + lifetime_s
