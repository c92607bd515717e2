"""Counters in Memcached (B11): read all at once, decide, and count behind the answer.

    read the counts of the batch -> each hit: count after = count + hit -> answer
                                      \\-> its increment waits, and is written soon

So a count lags: hits that are decided at the same time, here and elsewhere, do not see each other.
Hits of one batch do, in order. What cannot be read counts as 0, as in the reference, unless the
operator has said otherwise (FAILURE_MODE): then it is `Unreachable`.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tollgate.actors.ratelimit.counting.counters import (
    Conditional,
    LimitedHits,
    PartitionCounts,
    Unreachable,
)
from tollgate.actors.ratelimit.counting.windows import Window
from tollgate.actors.ratelimit.decision.counter_keys import counter_name, window_ending
from tollgate.serve.ratelimit.backends.memcached.items import COUNT_MAX, item_name
from tollgate.serve.ratelimit.backends.memcached.node import MemcachedNode, Step
from tollgate.serve.ratelimit.backends.memcached.nodes import Nodes, node_of

READERS_MAX = 16
SETTLED_WITHIN_S = 30.0

Located = tuple[bytes, MemcachedNode | None, Window]


class MemcachedCounters:
    """A CounterStore of one partition. Thread-safe. `fails_open`: what cannot be read is 0."""

    partitions = 1
    evicted = 0
    resets = 0

    def __init__(self, nodes: Nodes, *, fails_open: bool, has_calendar_months: bool) -> None:
        self._nodes = nodes
        self._fails_open = fails_open
        self._has_calendar_months = has_calendar_months
        # A thread is started only when several nodes are asked at once.
        self._readers = ThreadPoolExecutor(READERS_MAX, "memcached-read")

    @property
    def has_begun(self) -> bool:
        """False until there are nodes."""
        return bool(self._nodes.all)

    @property
    def down(self) -> frozenset[int]:
        """Partition 0, when any node is out of reach, or there are none."""
        nodes = self._nodes.all
        is_whole = bool(nodes) and not any(node.is_down for node in nodes)
        return frozenset() if is_whole else frozenset((0,))

    def probe(self) -> None:
        """See that the nodes' threads are at work."""
        assert all(node.is_at_work for node in self._nodes.all), "hits are not counted any more"

    def close(self) -> None:
        """Count what waits, as far as nodes answer, and end."""
        self._nodes.close()
        self._readers.shutdown(wait=False)

    def wait_until_counted(self, timeout_s: float = SETTLED_WITHIN_S) -> bool:
        """Wait until all hits so far are counted, or given up. False: it took too long."""
        return all(node.wait_until_sent(timeout_s) for node in self._nodes.all)

    # Counting

    def hit(
        self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int
    ) -> dict[int, PartitionCounts]:
        hits = [each for batch in batches.values() for each in batch]
        ends_s = [[each.end_s] * len(each.keys) for each in hits]
        counts = self._count([each.keys for each in hits], ends_s, [each.addends for each in hits])
        return dict.fromkeys(batches, counts)

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> dict[int, PartitionCounts]:
        """Count everything, whatever is over its limit: with Memcached there is no condition."""
        hits = [each for batch in batches.values() for each in batch]
        counts = self._count(
            [each.keys for each in hits],
            [each.end_s for each in hits],
            [each.addends for each in hits],
        )
        return dict.fromkeys(batches, counts)

    def _count(
        self,
        keys: Sequence[Sequence[bytes]],
        ends_s: Sequence[Sequence[int]],
        addends: Sequence[Sequence[int]],
    ) -> list[list[int | Unreachable]]:
        nodes = self._nodes.all
        located = self._located(nodes, keys, ends_s)
        counts = self._read(located.values())
        later: dict[MemcachedNode, list[Step]] = {}
        answers: list[list[int | Unreachable]] = []
        for own_keys, own_ends_s, own_addends in zip(keys, ends_s, addends, strict=True):
            answer: list[int | Unreachable] = []
            for key, end_s, addend in zip(own_keys, own_ends_s, own_addends, strict=True):
                item, node, window = located[key, end_s]
                count = counts[item]
                if isinstance(count, int):
                    # A counter beyond the largest count would read as 0.
                    gain = min(addend, max(0, COUNT_MAX - count))
                    count = counts[item] = max(0, count + addend)
                    if gain and node is not None:
                        length_s = window.end_s - window.start_s
                        later.setdefault(node, []).append((item, gain, length_s))
                answer.append(count)
            answers.append(answer)
        for node, steps in later.items():
            node.count_later(steps)
        return answers

    def _located(
        self,
        nodes: tuple[MemcachedNode, ...],
        keys: Sequence[Sequence[bytes]],
        ends_s: Sequence[Sequence[int]],
    ) -> dict[tuple[bytes, int], Located]:
        """Each counter's item, its node and its window, by key and window end."""
        located: dict[tuple[bytes, int], Located] = {}
        has_months = self._has_calendar_months
        for own_keys, own_ends_s in zip(keys, ends_s, strict=True):
            for counter in zip(own_keys, own_ends_s, strict=True):
                if counter not in located:
                    window = window_ending(*counter, has_calendar_months=has_months)
                    item = item_name(counter_name(counter[0], window.start_s))
                    located[counter] = (item, node_of(nodes, item) if nodes else None, window)
        return located

    def _read(self, located: Iterable[Located]) -> dict[bytes, int | Unreachable]:
        """The counts of all items, asked of all nodes at once."""
        by_node: dict[MemcachedNode | None, set[bytes]] = {}
        for item, node, _ in located:
            by_node.setdefault(node, set()).add(item)
        if not by_node:
            return {}
        first, *others = by_node
        asked = [
            self._readers.submit(self._read_node, node, tuple(by_node[node])) for node in others
        ]
        counts = self._read_node(first, tuple(by_node[first]))
        for future in asked:
            counts |= future.result()
        return counts

    def _read_node(
        self, node: MemcachedNode | None, items: Sequence[bytes]
    ) -> dict[bytes, int | Unreachable]:
        counts = None if node is None else node.read(items)
        if counts is not None:
            return dict(counts)
        if self._fails_open:
            return dict.fromkeys(items, 0)
        what = "no node of Memcached is known" if node is None else f"Memcached ({node}) is down"
        return dict.fromkeys(items, Unreachable(what))
