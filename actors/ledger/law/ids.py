"""Ids are allocated by the single writer of a book, in the order of its commits (L4, F13).

    id = second of the entry (8 hex digits) · number of the book (10) · counter (6)

The counter starts again with every second; when it is used up, the ids run ahead into the next
second. So ids of a book only rise, whatever the clock does, and as text they sort as they rise.
The directory's number is 0; it numbers the merchants' books from 1, in the ids that it reserves.
"""

import re

from tollgate.actors.ledger.law.values import DIRECTORY, BookId, EntityId

COUNTER_MAX = 0xFFFFFF
BOOK_NUMBER_MAX = 0xFFFFFFFFFF
_FIRST = "000000"
_ID = re.compile("[0-9a-f]{24}")


def next_id(last: str, at_ms: int) -> EntityId:
    """The id after `last`, in an entry of the time `at_ms`. A book's first `last` is its own id."""
    second = f"{at_ms // 1000:08x}"
    if second > last[:8]:
        return EntityId(second + last[8:18] + _FIRST)
    counter = int(last[18:], 16) + 1
    if counter <= COUNTER_MAX:
        return EntityId(f"{last[:18]}{counter:06x}")
    return EntityId(f"{int(last[:8], 16) + 1:08x}{last[8:18]}{_FIRST}")


def merchant_id(number: int, at_ms: int) -> BookId:
    """The id of the merchant whose book has this number."""
    assert 0 < number <= BOOK_NUMBER_MAX, "the directory has no numbers left"
    return BookId(f"{at_ms // 1000:08x}{number:010x}{_FIRST}")


def is_id(text: str) -> bool:
    """Tells whether a text has the form of an id."""
    return _ID.fullmatch(text) is not None


def is_merchant_id(book: BookId) -> bool:
    """Tells whether a book could be a merchant's."""
    return is_id(book) and book[8:18] != DIRECTORY[8:18]
