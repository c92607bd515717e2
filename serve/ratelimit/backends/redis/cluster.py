"""A Redis Cluster: counters are spread over nodes by the slots of their names.

    command --slot of its name--> node --MOVED--> the node that has the slot now (for good)
                                       --ASK--> the node that is taking it over (this once)

What a node redirects it has not done, so it is sent again; nothing else is. A node that does not
answer costs its own counters their counts, and no others.

A redirection is followed to members alone: whoever is dialled is sent the credentials. Members are
the nodes of the settings, and those that the cluster's own table names, which these nodes are
asked for first. Of a node that is none yet the table is asked again, once in a batch.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from redis.crc import key_slot
from redis.exceptions import AskError, MovedError

from tollgate.serve.ratelimit.backends.redis.cluster_table import SLOTS, named_nodes, slot_table
from tollgate.serve.ratelimit.backends.redis.commands import Command, Reply, key_of
from tollgate.serve.ratelimit.backends.redis.server import PING, NoAnswer, SingleServer
from tollgate.serve.settings.values import Address

LOG = logging.getLogger("tollgate.ratelimit")
REDIRECTIONS_MAX = 5

OpenNode = Callable[[Address], SingleServer]


class ClusterNode:
    """A master, and whether it said nothing when it was asked last."""

    __slots__ = ("is_silent", "server")

    def __init__(self, server: SingleServer) -> None:
        self.server = server
        self.is_silent = False

    def run(self, commands: Sequence[Command]) -> list[Reply]:
        """The replies; or the reason why there are none, in the place of each."""
        if self.is_silent:
            return [NoAnswer("a node of the cluster is not answering", is_silence=False)] * len(
                commands
            )
        try:
            return self.server.run(commands)
        except NoAnswer as error:
            self.is_silent = error.is_silence
            return [error] * len(commands)


class ClusterServer:
    """A RedisServer. `seeds`: nodes that may know the others. `parallelism`: nodes that are asked
    at once; 1: one after the other."""

    def __init__(self, open_node: OpenNode, seeds: Sequence[Address], parallelism: int) -> None:
        self._open_node = open_node
        self._seeds = tuple(seeds)
        self._lock = Lock()
        self._nodes: dict[Address, ClusterNode] = {}
        self._slots: list[Address | None] = [None] * SLOTS
        self._members = frozenset(self._seeds)
        self._is_mapped = False
        self.is_whole = False
        self._threads = ThreadPoolExecutor(parallelism, "cluster") if parallelism > 1 else None

    def run(self, commands: Sequence[Command]) -> list[Reply]:
        if not self._is_mapped:
            self._map()
        replies: list[Reply] = [None] * len(commands)
        todo: Iterable[int] = range(len(commands))
        may_ask = True
        for _ in range(REDIRECTIONS_MAX):
            self._run_at_owners(commands, todo, replies)
            if any(map(self._is_stray, replies)):
                self._refuse_strays(replies, may_ask=may_ask)
                may_ask = False
            self._follow_asks(commands, replies)
            todo = [at for at, reply in enumerate(replies) if isinstance(reply, MovedError)]
            if not todo:
                break
            for at in todo:
                self._move(replies[at])
        lost = [reply for reply in replies if isinstance(reply, NoAnswer)]
        if lost:
            self.is_whole = False
            if len(lost) == len(replies):
                raise lost[0]
        return replies

    def ping(self) -> None:
        """See that every slot has a node, and every node answers. Raises NoAnswer."""
        self._map()
        for address in dict.fromkeys(self._slots):
            if address is None:
                continue
            node = self._node(address)
            node.is_silent = False
            (reply,) = node.run(PING)
            if isinstance(reply, Exception):
                self.is_whole = False
                raise NoAnswer(f"its node {address.host}:{address.port}: {reply}", is_silence=False)
        self.is_whole = True

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False)
        for node in tuple(self._nodes.values()):
            node.server.close()

    def _run_at_owners(
        self, commands: Sequence[Command], todo: Iterable[int], replies: list[Reply]
    ) -> None:
        groups: dict[Address, list[int]] = {}
        for at in todo:
            owner = self._slots[key_slot(key_of(commands[at]))]
            if owner is None:
                replies[at] = NoAnswer("CLUSTERDOWN Hash slot not served", is_silence=False)
            else:
                groups.setdefault(owner, []).append(at)
        self._run_groups(
            {owner: [commands[at] for at in group] for owner, group in groups.items()},
            groups,
            replies,
        )

    def _run_groups(
        self,
        asked: Mapping[Address, Sequence[Command]],
        groups: Mapping[Address, Sequence[int]],
        replies: list[Reply],
    ) -> None:
        def run(owner: Address) -> list[Reply]:
            return self._node(owner).run(asked[owner])

        spread = map if self._threads is None or len(asked) == 1 else self._threads.map
        for owner, answers in zip(asked, spread(run, asked), strict=True):
            for at, reply in zip(groups[owner], answers, strict=True):
                replies[at] = _with_host(reply, owner)

    def _is_stray(self, reply: Reply) -> bool:
        """Whether it redirects to somebody who is no member, as far as is known."""
        return isinstance(reply, AskError) and Address(reply.host, reply.port) not in self._members

    def _refuse_strays(self, replies: list[Reply], *, may_ask: bool) -> None:
        if may_ask:
            try:
                self._map(with_idle_nodes=True)
            except NoAnswer as error:
                LOG.debug("nobody says who is a member of the cluster: %s", error)
        for at, reply in enumerate(replies):
            if self._is_stray(reply):
                assert isinstance(reply, AskError), "only redirections are stray"
                text = f"sent to {reply.host}:{reply.port}, which is no node of the cluster"
                replies[at] = NoAnswer(text, is_silence=False)

    def _follow_asks(self, commands: Sequence[Command], replies: list[Reply]) -> None:
        for at, reply in enumerate(replies):
            if isinstance(reply, AskError):
                address = Address(reply.host, reply.port)
                asked = self._node(address).run([(b"ASKING",), commands[at]])
                replies[at] = _with_host(asked[-1], address)

    def _move(self, reply: Reply) -> None:
        assert isinstance(reply, MovedError), "only what has moved is moved"
        # (of a slot that there is not, the command is sent where it was, as often as others)
        if 0 <= reply.slot_id < SLOTS:
            self._slots[reply.slot_id] = Address(reply.host, reply.port)

    def _node(self, address: Address) -> ClusterNode:
        with self._lock:
            node = self._nodes.get(address)
            if node is None:
                node = self._nodes[address] = ClusterNode(self._open_node(address))
            return node

    def _map(self, *, with_idle_nodes: bool = False) -> None:
        """Ask who has which slots; and on demand who has none. Raises NoAnswer when nobody says."""
        problem: Reply = None
        asked = dict.fromkeys((*self._seeds, *self._nodes))
        for address in sorted(asked, key=lambda each: self._node(each).is_silent):
            node = self._node(address)
            node.is_silent = False
            (reply,) = node.run([(b"CLUSTER", b"SLOTS")])
            if isinstance(reply, list) and reply:
                try:
                    slots, members = slot_table(reply, address.host)
                except ValueError as error:
                    problem = f"its table of slots is none: {error}"
                    continue
                if with_idle_nodes:
                    (text,) = node.run([(b"CLUSTER", b"NODES")])
                    members |= named_nodes(text, address.host)
                self._use(slots, members)
                return
            problem = reply or "it is a cluster without slots"
        raise NoAnswer(
            str(problem), is_silence=isinstance(problem, NoAnswer) and problem.is_silence
        )

    def _use(self, slots: list[Address | None], members: frozenset[Address]) -> None:
        with self._lock:
            gone = self._nodes.keys() - set(slots) - set(self._seeds)
            ended = [self._nodes.pop(address) for address in gone]
            self._slots = slots
            self._members = members.union(self._seeds)
            self._is_mapped = True
        for node in ended:
            node.server.close()


def _with_host(reply: Reply, asked: Address) -> Reply:
    """The reply; a redirection without a host leads to that of the node that was asked."""
    if isinstance(reply, AskError) and not reply.host:
        reply.host = asked.host
    return reply
