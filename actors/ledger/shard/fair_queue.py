"""A bounded queue of the orders of many books: nobody waits behind a flood of others' (F11).

    out    a turn of one book, a turn of the next one: the oldest order of each. While live and test
           books wait, LIVE_PER_TEST turns are of live ones and one is of a test one: anybody can
           open any number of those
    in     while its book, and for a test book all of them together, holds no more than there is
           room left for all: so alone they fill half of the queue, and who comes then finds room

What is put back was taken before: it goes first again, in its order, and is never refused.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from tollgate.actors.ledger.law.values import BookId

LIVE_PER_TEST = 3
T = TypeVar("T")


class FairQueue(Generic[T]):
    """Ends at `length_max`, but for what is put back."""

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._first: deque[T] = deque()
        self._live: _Turns[T] = _Turns()
        self._test: _Turns[T] = _Turns()
        # Turns of live books since the last one of a test book that waited meanwhile.
        self._live_turns = 0

    def __len__(self) -> int:
        return len(self._first) + self._live.length + self._test.length

    def __iter__(self) -> Iterator[T]:
        """All of it, in no particular order."""
        yield from self._first
        yield from self._live
        yield from self._test

    def put(self, book: BookId, item: T, *, is_test: bool) -> bool:
        """False when there is no room for it."""
        room = self._length_max - len(self)
        turns = self._test if is_test else self._live
        held = turns.length if is_test else turns.length_of(book)
        if room <= 0 or held > room:
            return False
        turns.put(book, item)
        return True

    def put_back(self, items: Sequence[T]) -> None:
        self._first.extendleft(reversed(items))

    def pop(self) -> T:
        """The next one; only when there is one."""
        if self._first:
            return self._first.popleft()
        if not self._test.length:
            return self._live.pop()
        if self._live.length and self._live_turns < LIVE_PER_TEST:
            self._live_turns += 1
            return self._live.pop()
        self._live_turns = 0
        return self._test.pop()


class _Turns(Generic[T]):
    """What waits of the books of one kind; the book whose turn is next comes first."""

    def __init__(self) -> None:
        self._books: OrderedDict[BookId, deque[T]] = OrderedDict()
        self.length = 0

    def __iter__(self) -> Iterator[T]:
        for waiting in self._books.values():
            yield from waiting

    def length_of(self, book: BookId) -> int:
        return len(self._books.get(book, ()))

    def put(self, book: BookId, item: T) -> None:
        waiting = self._books.get(book)
        if waiting is None:
            waiting = self._books[book] = deque()
        waiting.append(item)
        self.length += 1

    def pop(self) -> T:
        book, waiting = next(iter(self._books.items()))
        item = waiting.popleft()
        self.length -= 1
        if waiting:
            self._books.move_to_end(book)
        else:
            del self._books[book]
        return item
