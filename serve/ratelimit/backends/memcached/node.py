"""One Memcached node: counts are read when they are asked for, and written by a thread behind.

    up --cannot be reached, or does not answer in time--> down --answers a probe--> up

A node that is down is not waited for: its counts are unknown, and what waits to be written to it is
given up with the first probe that fails. An increment is written as the reference writes it (B11):

    increment -> not there: add -> somebody else did: increment
"""

import logging
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread

from tollgate.serve.ratelimit.backends.memcached.connections import (
    ITEMS_PER_EXCHANGE_MAX,
    IdleConnections,
    MemcachedClient,
    NodeFailure,
)
from tollgate.serve.ratelimit.backends.memcached.increments import IncrementQueue, Increments
from tollgate.serve.ratelimit.backends.memcached.items import (
    COUNT_MAX,
    DECREMENT_MAX,
    count_of,
    expiry,
)
from tollgate.serve.settings.values import Address

LOG = logging.getLogger("tollgate.ratelimit")
PROBE_EVERY_S = 0.25
SENT_WITHIN_S = 1.0
"""The longest wait for increments when the process ends."""

MULTIGET = "ratelimit.memcache.multiget"
INCREMENT = "ratelimit.memcache.increment"
ADD = "ratelimit.memcache.add"
KEYS_REQUESTED = "ratelimit.memcache.keys_requested"
KEYS_FOUND = "ratelimit.memcache.keys_found"
SUCCESS, ERROR, MISS, NOT_STORED = "success", "error", "miss", "not_stored"

Step = tuple[bytes, int, int]
"""An item, what it gains, and the length of its window in seconds."""


class MemcachedNode:
    """A node and its increments. Thread-safe. `count`: into the statistics; `now_s`: the time;
    `draw_jitter_s`: seconds added to the lifetime of an item (B6)."""

    def __init__(
        self,
        address: Address,
        connections: IdleConnections,
        count: Callable[[str, int], None],
        now_s: Callable[[], float],
        draw_jitter_s: Callable[[], int],
    ) -> None:
        self.address = address
        self.is_down = False
        self._connections = connections
        self._count = count
        self._now_s = now_s
        self._draw_jitter_s = draw_jitter_s
        self._increments = IncrementQueue()
        self._has_work = Event()
        self._is_closed = Event()
        self._has_ended = False
        self._last_said = ""
        self._turning = Lock()
        self._writer = Thread(target=self._write, name=f"memcached {self}", daemon=True)
        self._writer.start()

    def __str__(self) -> str:
        host = f"[{self.address.host}]" if ":" in self.address.host else self.address.host
        return f"{host}:{self.address.port}"

    @property
    def is_at_work(self) -> bool:
        """False when increments are not written any more."""
        return self._writer.is_alive() or self._is_closed.is_set()

    # Reading

    def read(self, items: Sequence[bytes]) -> dict[bytes, int] | None:
        """The counts of these items, 0 for those that are not there; None: the node is down."""
        self._count(KEYS_REQUESTED, len(items))
        try:
            if self.is_down:
                raise NodeFailure("it is down", is_down=True)
            values = self._connections.values(items)
        except NodeFailure as failure:
            self._count_code(MULTIGET, ERROR)
            self._note(failure)
            return None
        self._count_code(MULTIGET, SUCCESS)
        self._count(KEYS_FOUND, len(values))
        counts = {item: count_of(values.get(item, b"0")) for item in items}
        # (after the reply: what waits now was not sent before it)
        return {item: self._increments.applied_to(item, count) for item, count in counts.items()}

    def count_later(self, hits: Sequence[Step]) -> None:
        """Let hits be counted soon."""
        refused = self._increments.add(hits)
        if refused:
            self._count_code(INCREMENT, ERROR, refused)
            self._say("takes increments more slowly than they come: some hits are not counted")
        if self._has_ended:
            self._give_up()
        self._has_work.set()

    # Writing

    def wait_until_sent(self, timeout_s: float) -> bool:
        """Wait until all hits so far are counted, or given up. False: it took too long."""
        return self._increments.wait_until_sent(timeout_s)

    def begin_to_close(self) -> None:
        """Count what waits, as far as the node takes it, and then no more."""
        self._is_closed.set()
        self._has_work.set()

    def close(self) -> None:
        """The same, and wait until it is done, for SENT_WITHIN_S at most."""
        self.begin_to_close()
        self._writer.join(SENT_WITHIN_S)
        self._connections.close()

    def _write(self) -> None:
        client = self._connections.new()
        self._probe(client)
        while not self._is_closed.is_set():
            self._has_work.wait(PROBE_EVERY_S if self.is_down else None)
            self._has_work.clear()
            if self.is_down:
                self._probe(client)
            self._send_all(client)
        self._send_all(client)
        client.close()
        # A hit that comes between these two lines is given up by whoever brings it.
        self._has_ended = True
        self._give_up()

    def _probe(self, client: MemcachedClient) -> None:
        try:
            client.replies([b"version\r\n"])
        except NodeFailure as failure:
            self._give_up()
            self._note(failure)
            self._has_work.clear()
        else:
            if self.is_down:
                self.is_down = False
                self._last_said = ""
                LOG.warning("the Memcached node %s answers again", self)

    def _give_up(self) -> None:
        """Count what waits as errors, and forget it."""
        if lost := self._increments.clear():
            self._count_code(INCREMENT, ERROR, lost)

    def _send_all(self, client: MemcachedClient) -> None:
        while not self.is_down and (taken := self._increments.take(ITEMS_PER_EXCHANGE_MAX)):
            for steps in _rounds(taken):
                self._send(client, steps)

    def _send(self, client: MemcachedClient, steps: Sequence[Step]) -> None:
        try:
            missing = self._increment(client, steps)
            present = self._add(client, missing) if missing else ()
            if present:
                self._increment(client, present)
        except NodeFailure as failure:
            self._count_code(INCREMENT, ERROR, len(steps))
            self._note(failure)

    def _increment(self, client: MemcachedClient, steps: Sequence[Step]) -> list[Step]:
        """Increment items that are there; those to be added."""
        replies = client.replies([_change(item, addend) for item, addend, _ in steps])
        codes = [self._code(reply, MISS, b"NOT_FOUND") for reply in replies]
        for code in set(codes):
            self._count_code(INCREMENT, code, codes.count(code))
        # What is given back to a counter that is not there is given back to nobody.
        return [
            step for step, code in zip(steps, codes, strict=True) if code == MISS and step[1] > 0
        ]

    def _add(self, client: MemcachedClient, steps: Sequence[Step]) -> list[Step]:
        """Add items; those that somebody else has added meanwhile."""
        now_s = int(self._now_s())
        additions = [
            _addition(item, addend, expiry(length_s + self._draw_jitter_s(), now_s))
            for item, addend, length_s in steps
        ]
        replies = client.replies(additions)
        codes = [self._code(reply, NOT_STORED, b"NOT_STORED") for reply in replies]
        for code in set(codes):
            self._count_code(ADD, code, codes.count(code))
        return [step for step, code in zip(steps, codes, strict=True) if code == NOT_STORED]

    def _code(self, reply: bytes, other: str, other_reply: bytes) -> str:
        if reply == other_reply:
            return other
        if reply == b"STORED" or reply.rstrip().isdigit():
            return SUCCESS
        self._say(f"refuses to count: {reply[:256].decode('ascii', 'replace')}")
        return ERROR

    # Saying it

    def _note(self, failure: NodeFailure) -> None:
        if failure.is_down:
            with self._turning:
                is_new, self.is_down = not self.is_down, True
            if is_new:
                self._say(f"is out of reach, and what it counts is unknown: {failure}")
            self._has_work.set()
        else:
            self._say(f"gave no answer: {failure}")

    def _say(self, text: str) -> None:
        """Log what is wrong, unless that was the last thing that was said of this node."""
        if text != self._last_said:
            self._last_said = text
            LOG.error("the Memcached node %s %s", self, text)

    def _count_code(self, command: str, code: str, by: int = 1) -> None:
        self._count(f"{command}.__code={code}", by)


def _rounds(taken: dict[bytes, Increments]) -> list[list[Step]]:
    """The steps of these items: the first of each, then the second of those that have more, …"""
    longest = max(len(each.addends) for each in taken.values())
    return [
        [
            (item, each.addends[number], each.length_s)
            for item, each in taken.items()
            if number < len(each.addends)
        ]
        for number in range(longest)
    ]


def _change(item: bytes, addend: int) -> bytes:
    if addend > 0:
        return b"incr %b %d\r\n" % (item, min(addend, COUNT_MAX))
    return b"decr %b %d\r\n" % (item, min(-addend, DECREMENT_MAX))


def _addition(item: bytes, addend: int, expires: int) -> bytes:
    value = b"%d" % min(addend, COUNT_MAX)
    return b"add %b 0 %d %d\r\n%b\r\n" % (item, expires, len(value), value)
