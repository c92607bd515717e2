"""Names and values of forms as they were meant: `%41` is A, and `+` a blank."""

from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

# So much is decoded at a time: a long value leaves a small object behind for every escape, and the
# decoder lets go of the interpreter between two pieces.
PIECE_BYTES = 64 * 1024
_ESCAPE_BYTES = 3


def form_text(value: bytes) -> str:
    """The text of a name or a value. Raises UnicodeDecodeError when it is not UTF-8."""
    blanks = value.replace(b"+", b" ")
    return b"".join(map(unquote_to_bytes, _pieces(blanks))).decode("utf-8")


def _pieces(value: bytes) -> Iterator[bytes]:
    """No escape is cut in two."""
    start = 0
    while start < len(value):
        end = start + PIECE_BYTES
        cut = value.rfind(b"%", end - _ESCAPE_BYTES + 1, end)
        end = end if cut < 0 or end >= len(value) else cut
        yield value[start:end]
        start = end
