"""The number of values that a JSON text holds, told before anything is made of it.

A text of a megabyte may hold half a million values. To read them takes a hundred times as long as
to count the marks between them, and whoever reads them holds everybody else up meanwhile.
"""

_MARKS = (b",", b"[", b"{")


def values_at_most(text: bytes) -> int:
    """A number that a JSON text holds no more values than: one, and one for every comma and every
    bracket that opens, outside of strings. Of other texts it tells nothing."""
    return 1 + sum(map(_without_strings(text).count, _MARKS))


def holds_more_values(text: bytes, values_max: int) -> bool:
    """True if a JSON text may hold more than so many values."""
    if len(text) <= values_max:  # (a value takes a byte, and a mark does)
        return False
    return values_at_most(text) > values_max


def _without_strings(text: bytes) -> bytes:
    unescaped = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(unescaped.split(b'"')[::2])
