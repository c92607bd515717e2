"""The other partitions as Ray's actors, and the nodes that partitions are placed on."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.copies.messages import (
    CopyDescription,
    CopyPage,
    CopyPart,
    CopyReply,
)
from tollgate.actors.ratelimit.copies.shelf import CopyShelf

LOG = logging.getLogger("tollgate.counters")
NEIGHBOURS_MAX = 8
"""Partitions that are asked whether they live elsewhere."""
ANSWER_WITHIN_S = 2.0
FOUND_WITHIN_S = 3.0
"""A new process waits no longer for all others to say whether they hold a copy."""


class CopyHolder:
    """The part of a partition's actor that holds copies of others, in a concurrency group of its
    own, "copying"."""

    def __init__(self, shelf: CopyShelf) -> None:
        self._shelf = shelf
        self._node = str(ray.get_runtime_context().get_node_id())

    @ray.method(concurrency_group="copying")
    def node(self) -> str:
        """The node of this process."""
        return self._node

    @ray.method(concurrency_group="copying")
    def hold_copy(self, part: CopyPart) -> CopyReply:
        """Add a part to the copy of another partition."""
        return CopyReply(self._node, self._shelf.take(part))

    @ray.method(concurrency_group="copying")
    def describe_copy(self, partition: int) -> CopyDescription | None:
        """The copy of another partition, if there is one."""
        return self._shelf.describe_copy(partition)

    @ray.method(concurrency_group="copying")
    def copy_page(self, partition: int, first_slot: int) -> CopyPage:
        """Counters of another partition, from a slot on."""
        return self._shelf.page(partition, first_slot)


class RayNeighbours:
    """The partitions of these names, as number `own` sees them. Calls block, never for long."""

    def __init__(self, names: Sequence[str], own: int, clock: Clock) -> None:
        context = ray.get_runtime_context()
        self.node = str(context.get_node_id())
        self._namespace = context.namespace
        self._names = names
        self._clock = clock
        self._others = [(own + step) % len(names) for step in range(1, len(names))]
        self.numbers = self._others[:NEIGHBOURS_MAX]
        self._handles: dict[int, Any] = {}

    def node_of(self, number: int) -> str | None:
        node: str | None = self._ask(number, "node")
        return node

    def give(self, number: int, part: CopyPart) -> CopyReply | None:
        reply: CopyReply | None = self._ask(number, "hold_copy", part)
        return reply

    def page(self, holder: int, partition: int, first_slot: int) -> CopyPage | None:
        page: CopyPage | None = self._ask(holder, "copy_page", partition, first_slot)
        return page

    def descriptions(self, partition: int) -> Iterator[tuple[int, CopyDescription]]:
        asked: dict[Any, int] = {}
        for number in self._others:
            with suppress(RayError, ValueError):  # (one that is not there has no copy)
                asked[self._handle(number).describe_copy.remote(partition)] = number
        until_s = self._clock.monotonic_s() + FOUND_WITHIN_S
        while asked:
            left_s = max(0.0, until_s - self._clock.monotonic_s())
            answered, _ = ray.wait(list(asked), timeout=left_s)
            if not answered:
                return
            for answer in answered:
                number = asked.pop(answer)
                with suppress(RayError):
                    description = ray.get(answer, timeout=ANSWER_WITHIN_S)
                    if description is not None:
                        yield number, description

    def _ask(self, number: int, question: str, *about: object) -> Any:
        try:
            asked = getattr(self._handle(number), question).remote(*about)
            return ray.get(asked, timeout=ANSWER_WITHIN_S)
        except (RayError, ValueError) as error:
            LOG.debug("partition %d does not answer: %s", number, type(error).__name__)
            self._handles.pop(number, None)
            return None

    def _handle(self, number: int) -> Any:
        """ValueError when nobody has the name."""
        if number not in self._handles:
            self._handles[number] = ray.get_actor(self._names[number], self._namespace)
        return self._handles[number]


def spread_over_nodes(count: int) -> list[dict[str, Any]]:
    """Options for so many actors that belong on different nodes, as far as there are any. One whose
    node is gone starts on any other."""
    known: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    nodes = sorted(
        node["NodeID"] for node in known if node["Alive"] and node["Resources"].get("CPU")
    )
    if len(nodes) < 2:
        return [{}] * count
    places = [nodes[number % len(nodes)] for number in range(count)]
    return [
        {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=True)} for node in places
    ]
