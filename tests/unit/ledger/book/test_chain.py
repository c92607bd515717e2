"""The chain of entries: what was written can be gone over again, and nothing else can."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

import pytest

from tests.support.ledger.books import NOW_MS, Shop, authorise, open_shop
from tollgate.actors.ledger.book.chain import BrokenJournal, event_of, hash_of
from tollgate.actors.ledger.book.entities import Entity
from tollgate.actors.ledger.book.head import GENESIS_HASH, Head
from tollgate.actors.ledger.book.journal_replay import replay_entry
from tollgate.actors.ledger.book.machine import execute
from tollgate.actors.ledger.law.commands import Refund
from tollgate.actors.ledger.law.rows import Entry, Posting
from tollgate.actors.ledger.law.values import EntityId


@pytest.fixture
def shop() -> Shop:
    shop = open_shop()
    shop.do(Refund(shop.captured(300), 100, ""))
    return shop


def entries(shop: Shop) -> list[Entry]:
    return [entry for entry in shop.books.log if entry.book == shop.book]


def replayed(log: list[Entry]) -> Head:
    head: Head | None = None
    entities: dict[EntityId, Entity | None] = {}
    for entry in log:
        head, changed = replay_entry(head, entities, entry)
        entities |= changed
    assert head is not None
    return head


def test_a_replay_leads_to_the_same_head(shop: Shop) -> None:
    assert replayed(entries(shop)) == shop.books.head(shop.book)


def test_the_hash_is_of_the_previous_one_and_the_canonical_entry(shop: Shop) -> None:
    first, second, *_ = entries(shop)
    canonical = (
        f'["{second.book}",2,{second.at_ms},"{second.operation}",{second.origin},{second.event},[]]'
    )
    expected = sha256(bytes.fromhex(first.hash) + canonical.encode()).hexdigest()
    assert second.hash == expected == hash_of(first.hash, second)
    assert first.hash == hash_of(GENESIS_HASH, first)


def amended(entry: Entry, **changes: object) -> Entry:
    return replace(entry, **changes)  # type: ignore[arg-type]  # of several types


FORGERIES: list[Callable[[Entry], Entry]] = [
    lambda entry: amended(entry, book="f" * 24),
    lambda entry: amended(entry, seq=entry.seq + 1),
    lambda entry: amended(entry, at_ms=entry.at_ms + 1),
    lambda entry: amended(entry, at_ms=0),
    lambda entry: amended(entry, kind="transaction.voided"),
    lambda entry: amended(entry, event=entry.event.replace("300", "301")),
    lambda entry: amended(entry, event=entry.event[:-1]),
    lambda entry: amended(entry, event='{"event":"transaction.captured/99"}'),
    lambda entry: amended(entry, origin=entry.origin.replace("192.0.2.1", "192.0.2.2")),
    lambda entry: amended(entry, operation="another"),
    lambda entry: amended(entry, hash="0" * 64),
    lambda entry: amended(entry, postings=()),
    lambda entry: amended(entry, postings=(*entry.postings, Posting("fees", "EUR", 0))),
]


@pytest.mark.parametrize("forge", FORGERIES)
def test_what_was_changed_is_found(shop: Shop, forge: Callable[[Entry], Entry]) -> None:
    log = entries(shop)
    forged = forge(log[2])
    assert forged != log[2]
    with pytest.raises(BrokenJournal, match="entry "):
        replayed([*log[:2], forged, *log[3:]])


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"event": '{"event":"transaction.captured/99"}'}, "not an event: Invalid value"),
        ({"event": '{"event":"merchant.changed/1"}'}, "not an event: Object missing required"),
        ({"kind": "transaction.voided"}, "filed as transaction.voided, but is"),
        ({"postings": ()}, "its postings are not those of its event"),
    ],
)
def test_what_was_changed_with_its_hash_is_found(
    shop: Shop, changes: dict[str, object], complaint: str
) -> None:
    log = entries(shop)
    forged = amended(log[2], **changes)
    forged = replace(forged, hash=hash_of(log[1].hash, forged))
    with pytest.raises(BrokenJournal, match=complaint):
        replayed([*log[:2], forged])


@pytest.mark.parametrize("earlier_ms", [0, 1])
def test_a_time_that_does_not_rise_is_found(shop: Shop, earlier_ms: int) -> None:
    log = entries(shop)
    forged = amended(log[2], at_ms=log[1].at_ms - earlier_ms)
    forged = replace(forged, hash=hash_of(log[1].hash, forged))
    with pytest.raises(BrokenJournal, match=f"is not after {log[1].at_ms}"):
        replayed([*log[:2], forged])


def test_a_gap_is_found(shop: Shop) -> None:
    log = entries(shop)
    with pytest.raises(BrokenJournal, match=f"entry 3 of book {shop.book}: found after entry 1 of"):
        replayed([log[0], *log[2:]])


def test_a_beginning_is_needed(shop: Shop) -> None:
    with pytest.raises(BrokenJournal, match="found after entry 0 of"):
        replayed(entries(shop)[1:])


def test_time_and_ids_rise_whatever_the_clock_does() -> None:
    shop = open_shop()
    for now_ms in (NOW_MS + 5_000, NOW_MS, 0, NOW_MS + 5_000, NOW_MS + 4_999, NOW_MS + 9_000):
        shop.books.now_ms = now_ms
        shop.authorised(1)
    log = entries(shop)
    times = [entry.at_ms for entry in log]
    assert times == sorted(set(times))
    assert times[1:4] == [NOW_MS + 5_000, NOW_MS + 5_001, NOW_MS + 5_002]
    assert times[-1] == NOW_MS + 9_000
    ids = [event_of(entry).id for entry in log]
    assert ids == sorted(set(ids))


def test_the_origin_is_part_of_the_hash(shop: Shop) -> None:
    head = shop.books.head(shop.book)
    order = shop.books.order(shop.book, authorise(1), shop.app)
    hashes = set()
    for request in ("one", "two"):
        origin = replace(order.origin, request_id=request)
        step = execute(head, {}, replace(order, origin=origin), NOW_MS)
        hashes.add(step.head.hash)  # type: ignore[union-attr]  # it is allowed
    assert len(hashes) == 2
