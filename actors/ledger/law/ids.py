"""Ids are allocated by the single writer of a book, in the order of its commits (L4, F13).

    id = second of the entry (8 hex digits) · number (16)

In a new second the number is drawn anew, from the lower half of all; within one it grows by a gap
of 1 to 2^46, and when there is no room left, the ids run ahead into the next second. So ids of a
book only rise, whatever the clock does, as text they sort as they rise, and at least 131,072 fit
into a second. Nobody can tell the next one, nor how many there are in between.

Draws come from the operation id of the order, which is random and known to the writer and the
journal alone: so the same order on the same book gives the same ids, and replay, which takes them
from the events, draws nothing. Two books draw the same number in the same second with a chance of
about 2^-62; a commit to which that happens is refused by the table of entities.

Ids of before (8 digits of the second, 10 of the book's number, 6 of a counter) stay what they are:
ids are compared by value, and what comes after one of them is above it.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from itertools import islice

from tollgate.actors.ledger.law.values import DIRECTORY, BookId, EntityId

NUMBER_MAX = 2**64 - 1
START_MAX = 2**63 - 1
GAP_MAX = 2**46
_ID = re.compile("[0-9a-f]{24}")


def next_ids(last: str, at_ms: int, operation: str, count: int) -> list[EntityId]:
    """The ids after `last`, in an entry of the time `at_ms`, for an order with this operation id.
    A book's first `last` is its own id."""
    return list(islice(_ids(last, at_ms, operation), count))


def _ids(last: str, at_ms: int, operation: str) -> Iterator[EntityId]:
    now, second, number = at_ms // 1000, int(last[:8], 16), int(last[8:], 16)
    while True:
        drawn = int.from_bytes(sha256(f"{operation} {second:x} {number:x}".encode()).digest()[:8])
        grown = number + 1 + drawn % GAP_MAX
        if now > second or grown > NUMBER_MAX:
            second, number = max(now, second + 1), drawn & START_MAX
        else:
            number = grown
        yield EntityId(f"{second:08x}{number:016x}")


def second_of(made: EntityId) -> int:
    """The second from which an id is; one of a busy second may be of the next ones."""
    return int(made[:8], 16)


def is_id(text: str) -> bool:
    """Tells whether a text has the form of an id."""
    return _ID.fullmatch(text) is not None


def is_merchant_id(book: BookId) -> bool:
    """Tells whether a book could be a merchant's."""
    return is_id(book) and book != DIRECTORY


def result_of(intent: EntityId) -> str:
    """The operation under which the outcome of an intent is kept: one, whoever found it out."""
    return f"result-{intent}"
