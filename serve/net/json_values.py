"""The number of values that a JSON text holds and the length of its strings, told before anything
is made of it.

A text of a megabyte may hold half a million values. To read them takes ten times as long as to
count the marks between them, and whoever reads them holds everybody else up meanwhile: the decoder
is one step, and so is a search in a string. Here a piece is.
"""

from collections.abc import Iterator

_MARKS = (b",", b"[", b"{")
PIECE_BYTES = 64 * 1024


def holds_more_values(text: bytes, values_max: int) -> bool:
    """True if a JSON text may hold more than so many values: there is one, and one more for every
    comma and every bracket that opens outside of strings. Of other texts it tells nothing."""
    if len(text) <= values_max:  # (a value takes a byte, and a mark does)
        return False
    return excess(text, values_max, len(text)) is not None


def excess(text: bytes, values_max: int, string_bytes_max: int) -> str | None:
    """The bound that a JSON text goes beyond, as "it holds …"; a string counts as it is written."""
    if len(text) <= min(values_max, string_bytes_max):
        return None
    count = 1
    for marks, string_bytes in _scanned(text):
        count += marks
        if count > values_max:
            return f"it holds more than {values_max:,} values"
        if string_bytes > string_bytes_max:
            return f"it holds a string of more than {string_bytes_max:,} bytes"
    return None


def _scanned(text: bytes) -> Iterator[tuple[int, int]]:
    """The marks outside of strings, and the longest string so far, piece by piece."""
    is_in_string = False
    begun = longest = 0  # (of the string that the last piece has begun)
    for piece in _pieces(text):
        parts = piece.replace(b"\\\\", b"..").replace(b'\\"', b"..").split(b'"')
        outside = b"".join(parts[is_in_string::2])
        strings = [*map(len, parts[not is_in_string :: 2])]
        if is_in_string:
            strings[0] += begun
        is_in_string ^= len(parts) % 2 == 0
        longest = max(longest, *strings, 0)
        begun = strings[-1] if is_in_string else 0
        yield sum(map(outside.count, _MARKS)), longest


def _pieces(text: bytes) -> Iterator[bytes]:
    """No escape is cut in two."""
    start = 0
    while start < len(text):
        end = start + PIECE_BYTES
        piece = text[start:end]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            end += 1
            piece = text[start:end]
        yield piece
        start = end
