"""Puts a response together from statuses: overall code, headers and metadata (B12 to B14).

    overall = OVER  iff  a descriptor that is not a quota is over,
                    or   there are quotas and every one of them is over

A descriptor is a quota by its rule or by the global quota mode; under the latter an unmatched
descriptor is a quota that passes. Global shadow mode turns the overall code, and nothing else.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tollgate.actors.ratelimit.decision.plan import PlannedHit, RequestPlan, Unmet
from tollgate.actors.ratelimit.decision.policy import HeaderNames
from tollgate.actors.ratelimit.rules.descriptors import RateLimitDescriptor, RateLimitRequest

OK = 1
OVER_LIMIT = 2
REMAINING_UNLIMITED = 2**32 - 1

ResponseHeaders = tuple[tuple[str, str], ...]


class Status(NamedTuple):
    """One descriptor's outcome. `hit` None: no limit was met, so there is no reset either.

    A named tuple, like `RateLimitDecision`, for both are made on the hot path. `code` is OK or
    OVER_LIMIT, `remaining` in hits, `reset_s` in seconds until the window ends.
    """

    code: int
    remaining: int
    reset_s: int
    hit: PlannedHit | None


class RateLimitDecision(NamedTuple):
    """The answer to one request: statuses in the order of its descriptors."""

    overall: int
    statuses: list[Status]
    headers: ResponseHeaders
    metadata: Mapping[str, object] | None


WITHOUT_LIMIT = Status(OK, 0, 0, None)
UNLIMITED = Status(OK, REMAINING_UNLIMITED, 0, None)
UNMET_STATUS = {Unmet.NO_RULE: WITHOUT_LIMIT, Unmet.UNLIMITED: UNLIMITED}


def overall_code(plan: RequestPlan, statuses: Iterable[Status]) -> int:
    """The overall code before global shadow mode."""
    quotas = plan.passing_quotas
    quotas_over = 0
    for code, _, _, hit in statuses:
        if hit is None:
            continue
        if hit.is_quota:
            quotas += 1
            quotas_over += code == OVER_LIMIT
        elif code == OVER_LIMIT:
            return OVER_LIMIT
    return OVER_LIMIT if quotas and quotas == quotas_over else OK


def response_headers(names: HeaderNames, statuses: Iterable[Status]) -> ResponseHeaders:
    """The headers of the one descriptor that B13 chooses; none when no descriptor met a limit."""
    chosen: Status | None = None
    fewest = REMAINING_UNLIMITED
    for status in statuses:
        if status.hit is None:
            continue
        if status.code == OVER_LIMIT and not status.hit.is_quota:
            chosen, fewest = status, 0
        elif status.remaining < fewest:
            chosen, fewest = status, status.remaining
    if chosen is None or chosen.hit is None:
        return ()
    return (
        (names.limit, str(chosen.hit.limit)),
        (names.remaining, str(chosen.remaining)),
        (names.reset, str(chosen.reset_s)),
    )


def dynamic_metadata(request: RateLimitRequest, statuses: Iterable[Status]) -> dict[str, object]:
    """The structure of B14, JSON-like; rule metadata is copied, never shared."""
    described: dict[str, object] = {
        "domain": request.domain,
        "descriptors": [_described(descriptor) for descriptor in request.descriptors],
    }
    if request.hits_addend:
        described["hitsAddend"] = request.hits_addend
    merged: dict[str, object] = {}
    for status in statuses:
        if status.hit is not None and status.code == OK and status.hit.metadata is not None:
            _merge(merged, status.hit.metadata)
    if merged:
        described["metadata"] = merged
    return described


def _described(descriptor: RateLimitDescriptor) -> dict[str, object]:
    described: dict[str, object] = {
        "entries": [f"{key}={value}" for key, value in descriptor.entries]
    }
    override = descriptor.override
    if override is not None and override.unit is not None:
        described["limit"] = (
            f"requests_per_unit:{override.requests_per_unit} unit:{override.unit.name}"
        )
    if descriptor.hits_addend is not None:
        described["hitsAddend"] = descriptor.hits_addend
    return described


def _merge(target: dict[str, object], source: Mapping[str, object]) -> None:
    """First writer wins; mappings on both sides merge, level by level."""
    for key, value in source.items():
        present = target.get(key)
        if key not in target:
            target[key] = _copied(value)
        elif isinstance(present, dict) and isinstance(value, Mapping):
            _merge(present, value)


def _copied(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(each) for each in value]
    return value
