"""The decision engine of a front process, out of the settings: counters, decider, and a shadow."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import Any

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.actor import PartitionedCounters
from tollgate.actors.ratelimit.counting.counters import CounterStore
from tollgate.actors.ratelimit.decision.decider import Decider
from tollgate.actors.ratelimit.decision.policy import FailureMode, HeaderNames, Policy
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.actor import RayChannel
from tollgate.actors.ratelimit.lent_counting.store import BorrowedCounters
from tollgate.actors.ratelimit.rules.descriptors import RequestBounds
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.backends.choice import outside_store
from tollgate.serve.ratelimit.backends.outside_store import Counters
from tollgate.serve.ratelimit.codec.answers import current_limit_bytes
from tollgate.serve.ratelimit.counting_shadow.shadow import CountingShadow
from tollgate.serve.ratelimit.replies import decoded_request, encoded_decision
from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import Backend, Counting, WhenFull


def decision_policy(settings: Settings) -> Policy:
    """The settings of the decision, as the engine takes them."""
    decision, counting = settings.decision, settings.counting
    names = HeaderNames(decision.limit_header, decision.remaining_header, decision.reset_header)
    return Policy(
        near_limit_ratio=decision.near_limit_ratio,
        is_shadow_mode=decision.is_shadow,
        is_quota_mode=decision.is_quota,
        # (with Memcached nothing is held back, as in the reference: B9)
        stops_when_over=counting.stops_when_over_limit and counting.backend is not Backend.ALTCACHE,
        has_calendar_months=decision.has_calendar_months,
        has_dynamic_metadata=decision.has_dynamic_metadata,
        headers=names if decision.has_headers else None,
        failure_mode=decision.failure_mode,
        counter_key_prefix=counting.cache_key_prefix,
        has_outside_counters=counting.backend is not Backend.ACTORS,
        local_cache_bytes=counting.local_cache_bytes,
        plan_memo_entries_max=settings.bounds.plan_memo_entries_max,
    )


def request_bounds(settings: Settings) -> RequestBounds:
    """The bounds of a request."""
    return RequestBounds(
        descriptors_max=settings.bounds.descriptors_per_request_max,
        entries_max=settings.bounds.entries_per_descriptor_max,
        entry_bytes_max=settings.bounds.entry_bytes_max,
        request_bytes_max=settings.bounds.request_bytes_max,
    )


def lending_terms(settings: Settings) -> Terms:
    """The terms that fronts and partitions lend by."""
    return Terms(
        term_s=settings.counting.term_s,
        counters_max=settings.bounds.counters_per_partition_max,
        refuses_when_full=settings.counting.when_full is WhenFull.REFUSE,
    )


def counter_store(settings: Settings, partitions: Sequence[Any], clock: Clock) -> Counters:
    """The way of this process to the partitions."""
    deadline_s = settings.counting.deadline_s
    if settings.counting.place is Counting.DIRECT:
        return PartitionedCounters(partitions, deadline_s, clock)
    # Another process may get the same pid, also on another machine.
    front = f"{os.getpid()}-{token_hex(8)}"
    channels = [RayChannel(handle) for handle in partitions]
    store = BorrowedCounters(channels, lending_terms(settings), front, deadline_s, clock)
    store.start()
    return store


def front_counters(
    settings: Settings, partitions: Sequence[Any], clock: Clock, tallies: Tallies
) -> Counters:
    """The counters of a front process, in the place that the settings choose."""
    outside = outside_store(settings)
    if outside is None:
        return counter_store(settings, partitions, clock)
    return outside.open(clock, tallies)


def front_decider(
    settings: Settings, store: CounterStore, clock: Clock, tallies: Tallies
) -> Decider:
    """A decider by these settings, without rules yet."""
    outside = outside_store(settings)
    return Decider(
        policy=decision_policy(settings),
        store=store,
        tallies=tallies,
        clock=clock,
        decode=partial(decoded_request, bounds=request_bounds(settings)),
        render_limit=current_limit_bytes,
        encode=encoded_decision,
        route=None if outside is None else outside.route,
    )


def counting_shadow(
    settings: Settings, partitions: Sequence[Any], clock: Clock, tallies: Tallies
) -> CountingShadow | None:
    """What counts in a second place, and decides there as though that were the chosen one."""
    backend = settings.counting.shadow
    if backend is None:
        return None
    there = replace(
        settings,
        counting=replace(settings.counting, backend=backend, shadow=None, local_cache_bytes=0),
        decision=replace(settings.decision, failure_mode=FailureMode.ERROR),
    )
    outside = outside_store(there)
    store = front_counters(there, partitions, clock, tallies)
    return CountingShadow(
        # (what its rules count is what the deciding ones have counted already)
        front_decider(there, store, clock, Tallies(f"shadow-{os.getpid()}")),
        store,
        "Tollgate's partitions" if outside is None else outside.place,
        partial(decoded_request, bounds=request_bounds(settings)),
        clock,
        tallies.count,
    )
