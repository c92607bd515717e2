"""Memcached as these settings describe it, as a store outside of Tollgate."""

import ssl
from functools import partial
from secrets import randbelow

from dns.resolver import Resolver

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.backends.memcached.connections import IdleConnections
from tollgate.serve.ratelimit.backends.memcached.counters import MemcachedCounters
from tollgate.serve.ratelimit.backends.memcached.node import MemcachedNode
from tollgate.serve.ratelimit.backends.memcached.nodes import (
    DiscoveredNodes,
    ListedNodes,
    Nodes,
    srv_addresses,
)
from tollgate.serve.ratelimit.backends.outside_store import OutsideStore
from tollgate.serve.settings import Settings
from tollgate.serve.settings.outside.memcached import MemcachedSettings
from tollgate.serve.settings.values import Address


def memcached_store(settings: Settings) -> OutsideStore:
    """The store of these settings, of which nothing is opened yet."""
    memcached = settings.memcached
    nodes = ",".join(f"{each.host}:{each.port}" for each in memcached.nodes) or memcached.srv
    return OutsideStore(
        place=f"Memcached ({nodes})", servers=1, route=_only, open=partial(_counters, settings)
    )


def _only(key: bytes, unit: Unit, /) -> int:
    """Which node has a counter depends on its window too: the store finds it."""
    return 0


def _counters(settings: Settings, clock: Clock, tallies: Tallies) -> MemcachedCounters:
    return MemcachedCounters(
        memcached_nodes(settings, clock, tallies),
        # Errors are counted as 0 (B11), unless the operator has said what they are.
        fails_open="FAILURE_MODE" not in settings.given,
        has_calendar_months=settings.decision.has_calendar_months,
    )


def memcached_nodes(
    settings: Settings, clock: Clock, tallies: Tallies, resolver: Resolver | None = None
) -> Nodes:
    """The nodes of these settings. `resolver`: None for the machine's."""
    memcached = settings.memcached
    tls = tls_context(memcached) if memcached.has_tls else None
    jitter_max_s = settings.counting.expiration_jitter_max_s

    def make(address: Address) -> MemcachedNode:
        connections = IdleConnections(
            address,
            timeout_s=memcached.timeout_s,
            idle_max=memcached.idle_connections_max,
            tls=tls,
        )
        return MemcachedNode(
            address,
            connections,
            tallies.count,
            clock.now_s,
            lambda: randbelow(jitter_max_s) if jitter_max_s else 0,
        )

    if memcached.srv:
        look_up = partial(srv_addresses, memcached.srv, resolver)
        return DiscoveredNodes(look_up, make, memcached.srv_refresh_s)
    return ListedNodes(map(make, memcached.nodes))


def tls_context(memcached: MemcachedSettings) -> ssl.SSLContext:
    """TLS to the nodes. Raises OSError for a file that cannot be used."""
    context = ssl.create_default_context(cafile=memcached.tls_ca or None)
    if memcached.tls_cert:
        context.load_cert_chain(memcached.tls_cert, memcached.tls_key)
    # (whom the certificate is for; who signed it is verified in any case)
    context.check_hostname = not memcached.tls_takes_any_host
    return context
