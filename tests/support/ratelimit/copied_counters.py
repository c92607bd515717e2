"""Partitions that copy to each other in one process: questions are answered at once."""

from collections.abc import Iterator

from tests.support.ratelimit.journals import DictSource
from tollgate.actors.ratelimit.copies.messages import (
    CopyDescription,
    CopyPage,
    CopyPart,
    CopyReply,
)
from tollgate.actors.ratelimit.copies.shelf import CopyShelf
from tollgate.actors.ratelimit.lending.messages import CounterColumns, Progress


class CopiedSource(DictSource):
    """Counters in a dict that are copied. `is_there`: False as long as nothing is counted."""

    is_there = True
    is_copied = False

    def begin_copy(self) -> Iterator[list[CounterColumns]] | None:
        if not self.is_there:
            return None
        self.is_copied = True
        return self.everything()

    def changed_since_copied(self, counters_max: int) -> list[CounterColumns]:
        return self.changed(counters_max)

    def copy_progress(self, after_reset: int) -> Progress:
        return self.progress(after_reset)

    def end_copy(self) -> None:
        self.is_copied = False


class Street:
    """The others of partition `own`, by number: `nodes` says where each lives, None: it is silent.
    `given`: who was given which part."""

    def __init__(self, own: int, nodes: list[str | None], shelves: list[CopyShelf]) -> None:
        self.nodes = nodes
        self.shelves = shelves
        self.given: list[tuple[int, CopyPart]] = []
        self._own = own
        self.numbers = [(own + step) % len(nodes) for step in range(1, len(nodes))]

    @property
    def node(self) -> str:
        return str(self.nodes[self._own])

    def node_of(self, number: int) -> str | None:
        return self.nodes[number]

    def give(self, number: int, part: CopyPart) -> CopyReply | None:
        node = self.nodes[number]
        if node is None:
            return None
        self.given.append((number, part))
        return CopyReply(node, self.shelves[number].take(part))

    def descriptions(self, partition: int) -> Iterator[tuple[int, CopyDescription]]:
        for number in self.numbers:
            if self.nodes[number] is not None:
                copy = self.shelves[number].describe_copy(partition)
                if copy is not None:
                    yield number, copy

    def page(self, holder: int, partition: int, first_slot: int) -> CopyPage | None:
        if self.nodes[holder] is None:
            return None
        return self.shelves[holder].page(partition, first_slot)
