"""Books keep their slots, and shards share the slots."""

from collections import Counter

import pytest

from tollgate.actors.ledger.law.values import DIRECTORY, BookId
from tollgate.actors.ledger.shard.routing import SLOTS, ShardMap, book_slot

BOOKS = [BookId(f"65000000{number:010x}000000") for number in range(2_000)]


def test_a_slot_is_for_ever() -> None:
    assert [book_slot(book) for book in (DIRECTORY, *BOOKS[:3])] == [5, 154, 187, 249]


@pytest.mark.parametrize("count", [1, 2, 3, 7, SLOTS])
def test_every_shard_has_its_share_of_the_books(count: int) -> None:
    shards = ShardMap(count)
    books = Counter(shards.shard_of(book) for book in BOOKS)
    assert set(books) <= set(range(count))
    if count <= 7:
        assert min(books.values()) > 0.7 * len(BOOKS) / count


def test_books_of_a_slot_stay_together() -> None:
    shards = ShardMap(3)
    slots = {book_slot(book) for book in BOOKS}
    assert len({(book_slot(book), shards.shard_of(book)) for book in BOOKS}) == len(slots) > 250


def test_names_tell_of_how_many() -> None:
    assert ShardMap(2).names == ["ledger-v1-0-of-2", "ledger-v1-1-of-2"]


@pytest.mark.parametrize("count", [0, SLOTS + 1])
def test_there_are_not_fewer_than_one_nor_more_than_slots(count: int) -> None:
    with pytest.raises(AssertionError, match="shards"):
        ShardMap(count)
