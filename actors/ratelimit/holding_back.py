"""STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: a request over one limit spares its other counters (B9).

Here requests stay whole. One with all its counters in one partition is judged there at one stroke.
One whose counters live apart goes through two phases: all look first, then all count; between the
phases another front may count too, which is the price of counters that live apart. Either way a
batch costs each partition a bounded number of calls.
"""

from collections.abc import Sequence

from actors.ratelimit.counters import Conditional, Hits, held_back
from actors.ratelimit.planning import PlannedHit
from actors.ratelimit.rounds import CounterStore, Round, Unreachable

Counts = list[int | Unreachable]


def count_conditionally(
    requests: Sequence[Sequence[PlannedHit]],
    addends: Sequence[Sequence[int]],
    round_: Round,
    store: CounterStore,
) -> list[Counts]:
    """Count each request's hits by `addends` (signed; 0 looks only): counts after, per request."""
    together: dict[int, list[int]] = {}
    apart: list[int] = []
    for index, hits in enumerate(requests):
        partitions = {hit.partition for hit in hits}
        if len(partitions) == 1:
            together.setdefault(partitions.pop(), []).append(index)
        elif partitions:
            apart.append(index)
    counts: list[Counts] = [[] for _ in requests]
    _count_together(together, requests, addends, round_, store, counts)
    for index, after in _count_apart(apart, requests, addends, round_, store):
        counts[index] = after
    return counts


def _count_together(
    together: dict[int, list[int]],
    requests: Sequence[Sequence[PlannedHit]],
    addends: Sequence[Sequence[int]],
    round_: Round,
    store: CounterStore,
    counts: list[Counts],
) -> None:
    if not together:
        return
    answers = store.hit_conditionally(
        {
            partition: [
                Conditional(
                    [round_.end_s(hit.unit) for hit in requests[index]],
                    [hit.key for hit in requests[index]],
                    list(addends[index]),
                    [hit.limit for hit in requests[index]],
                )
                for index in indexes
            ]
            for partition, indexes in together.items()
        },
        round_.now_s,
    )
    for partition, indexes in together.items():
        answer = answers[partition]
        for position, index in enumerate(indexes):
            if isinstance(answer, Unreachable):
                counts[index] = [answer] * len(requests[index])
            else:
                counts[index] = list(answer[position])


def _count_apart(
    apart: Sequence[int],
    requests: Sequence[Sequence[PlannedHit]],
    addends: Sequence[Sequence[int]],
    round_: Round,
    store: CounterStore,
) -> list[tuple[int, Counts]]:
    if not apart:
        return []
    hits = [hit for index in apart for hit in requests[index]]
    seen = dict(
        zip((hit.key for hit in hits), _each(hits, [0] * len(hits), round_, store), strict=True)
    )
    chosen: list[int] = []
    for index in apart:
        # What earlier requests of this batch are about to count is seen by the later ones.
        known = [seen[hit.key] for hit in requests[index]]
        present = [0 if isinstance(count, Unreachable) else count for count in known]
        limits = [hit.limit for hit in requests[index]]
        counted = held_back(present, addends[index], limits)
        for hit, count, addend in zip(requests[index], known, counted, strict=True):
            if not isinstance(count, Unreachable):
                seen[hit.key] = max(0, count + addend)
        chosen.extend(counted)
    after = iter(_each(hits, chosen, round_, store))
    return [(index, [next(after) for _ in requests[index]]) for index in apart]


def _each(
    hits: Sequence[PlannedHit], addends: Sequence[int], round_: Round, store: CounterStore
) -> Counts:
    """The counts after each operation, one call per partition."""
    batches: dict[int, list[Hits]] = {}
    places: list[tuple[int, int]] = []
    for hit, addend in zip(hits, addends, strict=True):
        batch = batches.setdefault(hit.partition, [])
        places.append((hit.partition, len(batch)))
        batch.append(Hits(round_.end_s(hit.unit), [hit.key], [addend]))
    answers = store.hit(batches, round_.now_s)
    counts: Counts = []
    for partition, position in places:
        answer = answers[partition]
        counts.append(answer if isinstance(answer, Unreachable) else answer[position][0])
    return counts
