"""The shard that a book belongs to.

    book --stable hash--> slot (a fixed number of them) --table--> shard

The number of slots never changes, so a book keeps its slot for ever; how many shards there are is
the operator's choice, and each takes an equal run of slots. A deployment changes it only while no
shard is running. A shard's name says of how many it is one; those of another number are fenced as
soon as one of this is taken over (storage/epoch_fence.py), as their books are others.
"""

from dataclasses import dataclass

from tollgate.actors.kernel.hashing import stable_hash
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.storage.epoch_fence import MAP_MARK

SLOTS = 256
NAME_PREFIX = "ledger-v1-"


def book_slot(book: BookId) -> int:
    """The slot of a book: 0 to SLOTS - 1, in every process and version alike."""
    return stable_hash(book.encode()) % SLOTS


@dataclass(frozen=True, slots=True)
class ShardMap:
    """`count` shards, which share the slots in equal runs."""

    count: int

    def __post_init__(self) -> None:
        assert 1 <= self.count <= SLOTS, f"1 to {SLOTS} shards, not {self.count}"

    def shard_of(self, book: BookId) -> int:
        """The number of the shard that a book belongs to, from 0."""
        return book_slot(book) * self.count // SLOTS

    def name(self, shard: int) -> str:
        """The name of a shard, as the owner of its epoch."""
        assert 0 <= shard < self.count, f"there are shards 0 to {self.count - 1}, not {shard}"
        return f"{NAME_PREFIX}{shard}{MAP_MARK}{self.count}"

    @property
    def names(self) -> list[str]:
        return [self.name(shard) for shard in range(self.count)]
