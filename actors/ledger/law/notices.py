"""Notices of the card network: disputes, frauds and settlements that come back in its files.

A network sends a file again, and the next file may hold records of the one before. So each is known
by the reference that the network gave it, for ever: its id follows from that, and the book which it
was booked in keeps it (entities.py). Ids of notices do not rise with time, as others do.

A day of settlements has an id likewise: of a book, a day and a unit, to which notices add up.
"""

from enum import StrEnum
from hashlib import sha256

from tollgate.actors.ledger.law.exponents import posted_currency, posted_exponent
from tollgate.actors.ledger.law.values import BookId, Currency, EntityId, Notice

ID_LENGTH = 24
DAY_MS = 86_400_000


class NoticeKind(StrEnum):
    """The files there are. Two of different kinds may use the same reference."""

    DISPUTE = "dispute"
    FRAUD = "fraud"
    SETTLEMENT = "settlement"


def notice(kind: NoticeKind, network: str, reference: str, *content: object) -> Notice:
    """The notice of a record that says this."""
    return Notice(
        id=_id("notice", kind, network, reference),
        network=network,
        reference=reference,
        content=_digest(*map(str, content)),
    )


def authorisation_id(book: BookId, network: str, reference: str) -> EntityId:
    """The id by which a transaction is found by the network's reference of its authorisation. Of a
    book: two merchants' transactions may have one reference."""
    return _id("authorisation", book, network, reference)


def settled_day_id(book: BookId, day: str, currency: Currency, exponent: int) -> EntityId:
    """The id of what was settled of a book for a day, in a unit of postings."""
    unit = posted_currency(currency, posted_exponent(currency, exponent))
    return _id("settled day", book, day, unit)


def _id(*parts: str) -> EntityId:
    return EntityId(_digest(*parts)[:ID_LENGTH])


def _digest(*parts: str) -> str:
    # Lengths go first, so that no two lists run together into the same text.
    return sha256("".join(f"{len(each)}:{each}" for each in parts).encode()).hexdigest()
