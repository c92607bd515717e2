"""Counts a request that is over one limit without its other counters (B9).

Here requests stay whole, and are decided in the order of the batch:

    all counters in one partition    the partition decides and counts at one stroke
    counters that live apart         decided here, after a look at all counters of the batch

Between the look and the count another front may count too: the price of counters that live apart.
A batch costs each partition one call, or two when any of its requests is apart.
"""

from collections.abc import Sequence

from tollgate.actors.ratelimit.counting.counters import (
    Conditional,
    CounterStore,
    LimitedHits,
    PartitionCounts,
    Unreachable,
    conditional_addends,
)
from tollgate.actors.ratelimit.decision.plan import PlannedHit
from tollgate.actors.ratelimit.decision.round import Round

ConditionalCounts = list[int | Unreachable]


def count_conditionally(
    requests: Sequence[Sequence[PlannedHit]],
    addends: Sequence[Sequence[int]],
    round_: Round,
    store: CounterStore,
) -> list[ConditionalCounts]:
    """Count each request's hits by `addends` (signed; 0 looks only): counts after, per request."""
    is_apart = [len({hit.partition for hit in hits}) > 1 for hits in requests]
    seen = _look(requests, round_, store) if any(is_apart) else None
    calls: dict[int, list[Conditional]] = {}
    places: list[list[tuple[int, int, int]]] = []
    for hits, signed, apart in zip(requests, addends, is_apart, strict=True):
        request = _conditional(hits, signed, round_)
        if seen is not None:
            # What earlier requests of this batch are about to count is seen by the later ones.
            decided = conditional_addends({key: seen.get(key, 0) for key in request.keys}, request)
            for key, addend in zip(request.keys, decided, strict=True):
                seen[key] = max(0, seen.get(key, 0) + addend)
            if apart:
                request = request._replace(addends=decided, limits=[None] * len(hits))
        places.append(_add_to_calls(calls, hits, request))
    answers = store.hit_conditionally(calls, round_.now_s) if calls else {}
    return [[_count_at(answers[place[0]], place) for place in request] for request in places]


def _conditional(hits: Sequence[PlannedHit], addends: Sequence[int], round_: Round) -> Conditional:
    return Conditional(
        [round_.end_s(hit.unit) for hit in hits],
        [hit.key for hit in hits],
        list(addends),
        [None if hit.is_refund else hit.limit for hit in hits],
    )


def _look(
    requests: Sequence[Sequence[PlannedHit]], round_: Round, store: CounterStore
) -> dict[bytes, int]:
    """The counts of all counters, as far as their partitions can be reached."""
    looks: dict[int, dict[int, LimitedHits]] = {}
    for hit in {hit.key: hit for hits in requests for hit in hits}.values():
        look = looks.setdefault(hit.partition, {}).setdefault(
            hit.unit, LimitedHits(round_.end_s(hit.unit), [], [], [])
        )
        look.keys.append(hit.key)
        look.addends.append(0)
        look.limits.append(hit.limit)
    answers = store.hit(
        {partition: list(by_unit.values()) for partition, by_unit in looks.items()}, round_.now_s
    )
    seen: dict[bytes, int] = {}
    for partition, by_unit in looks.items():
        answer = answers[partition]
        if not isinstance(answer, Unreachable):
            for look, counts in zip(by_unit.values(), answer, strict=True):
                counted = zip(look.keys, counts, strict=True)
                seen |= {key: n for key, n in counted if not isinstance(n, Unreachable)}
    return seen


def _add_to_calls(
    calls: dict[int, list[Conditional]], hits: Sequence[PlannedHit], request: Conditional
) -> list[tuple[int, int, int]]:
    """Divide the request by partition; where each hit's count will stand in the answers."""
    parts: dict[int, Conditional] = {}
    places: list[tuple[int, int, int]] = []
    for position, hit in enumerate(hits):
        call = calls.setdefault(hit.partition, [])
        part = parts.get(hit.partition)
        if part is None:
            part = parts[hit.partition] = Conditional([], [], [], [])
            call.append(part)
        places.append((hit.partition, len(call) - 1, len(part.keys)))
        part.end_s.append(request.end_s[position])
        part.keys.append(request.keys[position])
        part.addends.append(request.addends[position])
        part.limits.append(request.limits[position])
    return places


def _count_at(answer: PartitionCounts, place: tuple[int, int, int]) -> int | Unreachable:
    return answer if isinstance(answer, Unreachable) else answer[place[1]][place[2]]
