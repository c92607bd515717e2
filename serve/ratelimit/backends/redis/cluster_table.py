"""What nodes of a Redis Cluster say of it: who has which slots, and who belongs to it."""

from collections.abc import Sequence

from tollgate.serve.settings.values import Address

SLOTS = 16_384


def slot_table(
    reply: Sequence[object], host: str
) -> tuple[list[Address | None], frozenset[Address]]:
    """The masters by slot, and all nodes that have slots, replicas among them: out of the reply to
    CLUSTER SLOTS of a node at this host. Raises ValueError."""
    slots: list[Address | None] = [None] * SLOTS
    members: set[Address] = set()
    for row in reply:
        match row:
            case [int(first), int(last), *nodes] if nodes and 0 <= first <= last < SLOTS:
                found = [_address(node, host) for node in nodes]
                members.update(found)
                slots[first : last + 1] = [found[0]] * (last + 1 - first)
            case _:
                raise ValueError(f"{row!r:.200} is no range of slots")
    return slots, frozenset(members)


def _address(node: object, host: str) -> Address:
    match node:
        case [bytes() | None as name, int(port), *_]:
            return Address((name or b"").decode() or host, port)
    raise ValueError(f"{node!r:.200} is no node")


def named_nodes(reply: object, host: str) -> frozenset[Address]:
    """All nodes, those without slots too, under each of their names: out of the reply to CLUSTER
    NODES of a node at this host. What says nothing names nobody."""
    lines = reply.decode(errors="replace").splitlines() if isinstance(reply, bytes) else []
    return frozenset(address for line in lines for address in _named(line, host))


def _named(line: str, host: str) -> list[Address]:
    """`<id> <ip:port@bus[,host name[,…]]> <flags> …`"""
    words = line.split()
    place, *names = words[1].split(",") if len(words) > 1 else [""]
    ip, _, port = place.partition("@")[0].rpartition(":")
    if not port.isdecimal():
        return []
    hosts = [ip or host, *(name for name in names[:1] if name)]
    return [Address(each, int(port)) for each in hosts]
