"""Journal entries: events as canonical text, chained by hashes (F7).

    hash = SHA-256( previous hash ‖ [book, seq, at_ms, operation, origin, event, postings] )

The list is JSON, compact, UTF-8, fields in the order of their classes, without floats: canonical
because one encoder writes it, and verified as it was stored, never as it would be written today.
Who asked for a change is part of it, so the audit cannot be altered without breaking the chain. A
book's first previous hash is 64 zeros; hashes are hex, and go into the next one as their 32 bytes.
"""

from hashlib import sha256
from typing import get_args

from msgspec import Raw, ValidationError
from msgspec.json import Decoder, Encoder

from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.events import Event
from tollgate.actors.ledger.law.rows import Entry, Posting
from tollgate.actors.ledger.law.values import BookId

_encode = Encoder().encode
# The union of all classes of events, those of old schema versions too.
_decode = Decoder(Event).decode


class BrokenJournal(Exception):  # noqa: N818 - what was found, not what went wrong
    """A stored entry is not what was written, or not the next one; the text says which and why."""


_KINDS = {kind: str(kind.__struct_config__.tag).partition("/")[0] for kind in get_args(Event)}


def event_kind(event: Event) -> str:
    """The event's type without its schema version: `transaction.captured`."""
    return _KINDS[type(event)]


def entry_of(
    head: Head, event: Event, postings: tuple[Posting, ...], order: Order, at_ms: int
) -> Entry:
    """The entry that comes after `head`."""
    seq = head.seq + 1
    event_json = _encode(event)
    origin_json = _origin_of(order)
    canonical = _canonical(
        head.book, seq, at_ms, order.operation, origin_json, event_json, postings
    )
    return Entry(
        book=head.book,
        seq=seq,
        at_ms=at_ms,
        kind=event_kind(event),
        event=event_json.decode(),
        origin=origin_json.decode(),
        operation=order.operation,
        hash=_linked(head.hash, canonical),
        postings=postings,
    )


def _origin_of(order: Order) -> bytes:
    """The audit's part of an entry (part D): who asked, from where, with which request."""
    origin = order.origin
    return _encode(
        {
            "app": origin.app,
            "key_last4": origin.key_last4,
            "address": origin.address,
            "request_id": origin.request_id,
            "idempotency_key": order.idempotency_key,
        }
    )


def hash_of(previous: str, entry: Entry) -> str:
    """The hash that a stored entry must have after the `previous` one."""
    canonical = _canonical(
        entry.book,
        entry.seq,
        entry.at_ms,
        entry.operation,
        entry.origin.encode(),
        entry.event.encode(),
        entry.postings,
    )
    return _linked(previous, canonical)


def _canonical(
    book: BookId,
    seq: int,
    at_ms: int,
    operation: str,
    origin: bytes,
    event: bytes,
    postings: tuple[Posting, ...],
) -> bytes:
    return _encode((book, seq, at_ms, operation, Raw(origin), Raw(event), postings))


def _linked(previous: str, canonical: bytes) -> str:
    return sha256(bytes.fromhex(previous) + canonical).hexdigest()


def event_of(entry: Entry) -> Event:
    """The event of a stored entry. Raises BrokenJournal."""
    try:
        event: Event = _decode(entry.event)
    except ValidationError as error:
        raise BrokenJournal(f"{_name(entry.book, entry.seq)}: not an event: {error}") from error
    if event_kind(event) != entry.kind:
        raise BrokenJournal(
            f"{_name(entry.book, entry.seq)}: filed as {entry.kind}, but is {event_kind(event)}"
        )
    return event


def check_chain(head: Head, entry: Entry) -> None:
    """That `entry` is the one after `head`. Raises BrokenJournal."""
    name = _name(entry.book, entry.seq)
    if entry.book != head.book or entry.seq != head.seq + 1:
        raise BrokenJournal(f"{name}: found after {_name(head.book, head.seq)}")
    if entry.at_ms <= head.at_ms:
        raise BrokenJournal(f"{name}: its time {entry.at_ms} is not after {head.at_ms}")
    if (expected := hash_of(head.hash, entry)) != entry.hash:
        raise BrokenJournal(f"{name}: its hash is {entry.hash}, its content's is {expected}")


def _name(book: BookId, seq: int) -> str:
    return f"entry {seq} of book {book}"
