"""The nodes of Memcached: a list of the settings, or what the DNS says (SRV), looked up anew.

    node of an item = CRC-32 of its name, modulo the number of nodes (items.py)

Of an SRV record the nodes are taken in the order of their names, so that all processes, and the
reference's, agree. A look-up that fails changes nothing.
"""

import logging
from collections.abc import Callable, Iterable
from threading import Event, Thread
from typing import Protocol

from dns.exception import DNSException
from dns.rdtypes.IN.SRV import SRV
from dns.resolver import Resolver

from tollgate.serve.ratelimit.backends.memcached.items import node_number
from tollgate.serve.ratelimit.backends.memcached.node import MemcachedNode
from tollgate.serve.settings.values import Address

LOG = logging.getLogger("tollgate.ratelimit")
LOOK_UP_WITHIN_S = 5.0
RETRY_AFTER_S = 1.0
RETRY_AFTER_MAX_S = 30.0
NODES_MAX = 1_024


class Nodes(Protocol):
    """The nodes there are at the moment."""

    @property
    def all(self) -> tuple[MemcachedNode, ...]: ...

    def close(self) -> None: ...


def node_of(nodes: tuple[MemcachedNode, ...], item: bytes) -> MemcachedNode:
    """The node that has this item."""
    return nodes[0] if len(nodes) == 1 else nodes[node_number(item, len(nodes))]


class ListedNodes:
    """Nodes that stay as they are."""

    def __init__(self, nodes: Iterable[MemcachedNode]) -> None:
        self.all = tuple(nodes)

    def close(self) -> None:
        """End them."""
        _close(self.all)


def srv_addresses(name: str, resolver: Resolver | None) -> list[Address]:
    """The addresses of an SRV record, in the order of their names; `resolver` None: the machine's.
    Raises DNSException."""
    answer = (resolver or Resolver()).resolve(name, "SRV", lifetime=LOOK_UP_WITHIN_S)
    found = [(each.target.to_text(), each.port) for each in answer if isinstance(each, SRV)]
    # As texts, with the dot at the end of a name: so does the reference.
    found.sort(key=lambda each: f"{each[0]}:{each[1]}")
    return [Address(target.rstrip("."), port) for target, port in found[:NODES_MAX]]


class DiscoveredNodes:
    """The nodes of an SRV record. `refresh_s`: time between look-ups; 0: the first one that
    succeeds is the last. There are none until then."""

    def __init__(
        self,
        look_up: Callable[[], list[Address]],
        make: Callable[[Address], MemcachedNode],
        refresh_s: float,
    ) -> None:
        self.all: tuple[MemcachedNode, ...] = ()
        self._look_up = look_up
        self._make = make
        self._refresh_s = refresh_s
        self._is_closed = Event()
        self._thread = Thread(target=self._follow, name="memcached-srv", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the look-ups, and the nodes."""
        self._is_closed.set()
        _close(self.all)

    def _follow(self) -> None:
        failures = 0
        while not self._is_closed.is_set():
            try:
                addresses = self._look_up()
            except (DNSException, OSError) as error:
                if not failures:
                    LOG.error("the nodes of Memcached cannot be looked up: %s", error)
                failures += 1
            else:
                failures = 0
                self._take(addresses)
            if failures and not self.all:
                wait_s = min(RETRY_AFTER_S * 2 ** min(failures - 1, 10), RETRY_AFTER_MAX_S)
            elif self._refresh_s:
                wait_s = self._refresh_s
            else:
                return
            self._is_closed.wait(wait_s)

    def _take(self, addresses: list[Address]) -> None:
        if [node.address for node in self.all] == addresses:
            return
        known = {node.address: node for node in self.all}
        self.all = tuple(
            known.pop(each) if each in known else self._make(each) for each in addresses
        )
        LOG.warning("the nodes of Memcached are %s", ", ".join(map(str, self.all)) or "none")
        _close(known.values())


def _close(nodes: Iterable[MemcachedNode]) -> None:
    """End nodes side by side: some may be silent."""
    for node in (nodes := tuple(nodes)):
        node.begin_to_close()
    for node in nodes:
        node.close()
