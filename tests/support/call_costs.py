"""The cost of one call: processor time, how long the event loop was held for it, bytes of reply.

Time is processor time of this process, so other work on the machine makes no difference to it. The
loop counts as held by whatever keeps it from its next turn: its own callbacks, and a thread that
does not let go of the interpreter. Of some rounds the best counts, and a good one is enough: chance
makes a round look worse, never better. A small body and a large one are compared as they were
measured one after the other, for a machine is slow for a while, not for a call. What the tests
themselves have left in memory is out of the garbage collector's way meanwhile.

A processor that two threads share does half as much for each in the same time: so a yardstick, some
work of Python's that is always the same, is measured beside a call, and how long the loop was held
is said in seconds of a processor on which the yardstick takes YARDSTICK_S.
"""

import asyncio
import gc
import json
import sys
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from time import process_time
from typing import Any

from starlette.types import ASGIApp, Message

# Nobody waits longer than this for another's call.
LOOP_HELD_S_MAX = 0.050
TURN_EVERY_S = 0.001
ROUNDS = 3
# For what does not look good: others may be at work for a while.
ROUNDS_MAX = 8
PAIRS_MAX = 5
BURST = 2
# The work of the yardstick, and the processor time that it takes where nobody else is at work.
YARDSTICK = json.dumps([{f"name {number}": [number, str(number)]} for number in range(3_000)])
YARDSTICK_S = 0.004
# As servers hand a body over.
PIECE_BYTES = 64 * 1024
# What is quadratic takes as many times longer again as the body is larger.
GROWTH_TOLERANCE = 2.0
# Below this, a measurement says nothing about growth.
MEASURABLE_S = 0.002


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply as it was put on the wire."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a call: seconds of processor time."""

    answer: Answer = field(repr=False)
    cpu_s: float
    held_s: float


Ask = Callable[[], Awaitable[Answer]]


async def asked(
    app: ASGIApp,
    method: str,
    path: str,
    body: bytes | Iterable[bytes] = b"",
    headers: Sequence[tuple[str, str]] = (),
    query: bytes = b"",
    root_path: str = "",
) -> Answer:
    """The answer of an application, without the price of a client: a body is handed over as
    servers do, a piece a turn of the loop."""
    pieces = iter(pieces_of(body) if isinstance(body, bytes) else body)
    given = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    if isinstance(body, bytes):
        given.append((b"content-length", b"%d" % len(body)))
    sent: list[Message] = []

    async def receive() -> Message:
        await asyncio.sleep(0)
        piece = next(pieces, None)
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": root_path + path,
        "raw_path": (root_path + path).encode(),
        "root_path": root_path,
        "query_string": query,
        "headers": [(b"host", b"test"), *given],
        "client": ("192.0.2.7", 4711),
        "server": ("test", 80),
        "state": {},
    }
    await app(scope, receive, send)
    return Answer(sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:]))


def pieces_of(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), PIECE_BYTES):
        yield body[start : start + PIECE_BYTES]


class LoopWatch:
    """Asks the running loop for a turn every TURN_EVERY_S. `held_s`: the most processor time that
    went by between two of them."""

    def __init__(self) -> None:
        self.held_s = 0.0

    async def watch(self) -> None:
        last_s = process_time()
        while True:
            await asyncio.sleep(TURN_EVERY_S)
            now_s = process_time()
            self.held_s = max(self.held_s, now_s - last_s)
            last_s = now_s


@asynccontextmanager
async def watched_loop() -> AsyncIterator[LoopWatch]:
    """A watch over the running loop, until the turn after the end of the block."""
    watch = LoopWatch()
    watching = asyncio.create_task(watch.watch())
    await asyncio.sleep(0)
    try:
        yield watch
        await asyncio.sleep(2 * TURN_EVERY_S)
    finally:
        watching.cancel()


def spare_garbage() -> None:
    """Keeps the garbage collector from what is there already, as the processes that serve do. (That
    is not collected first: after thousands of tests, it would take longer than what is measured.)
    """
    gc.freeze()


def slowness() -> float:
    """How many times as long as alone on its processor this process takes for the same work just
    now; never below 1."""
    begun_s = process_time()
    json.dumps(json.loads(YARDSTICK))
    return max(1.0, (process_time() - begun_s) / YARDSTICK_S)


def is_loop_free(cost: Cost) -> bool:
    """Whether nobody had to wait longer than LOOP_HELD_S_MAX."""
    return cost.held_s < LOOP_HELD_S_MAX


async def cost_of(
    ask: Ask, is_enough: Callable[[Cost], bool] = is_loop_free, rounds_max: int = ROUNDS_MAX
) -> Cost:
    """The cost of a call: the least of each kind, over some rounds, or until it is good enough."""
    cost = Cost(Answer(0, b""), inf, inf)
    spare_garbage()
    for _ in range(rounds_max):
        async with watched_loop() as watch:
            begun_s = process_time()
            answer = await ask()
            cpu_s = process_time() - begun_s
        held_s = watch.held_s if watch.held_s < LOOP_HELD_S_MAX else watch.held_s / slowness()
        cost = Cost(answer, min(cost.cpu_s, cpu_s), min(cost.held_s, held_s))
        if is_enough(cost):
            break
    return cost


@dataclass(frozen=True, slots=True)
class Growth:
    """The costs of a call with a small body and with a large one."""

    small: Cost
    large: Cost
    times: int

    @property
    def is_linear(self) -> bool:
        """Whether the time grows no faster than the size."""
        small_s = max(self.small.cpu_s, MEASURABLE_S)
        return self.large.cpu_s < GROWTH_TOLERANCE * self.times * small_s


async def growth_of(ask: Callable[[int], Ask], bound: int, times: int = 4) -> Growth:
    """What becomes of the cost of a call from a body of `bound / times` bytes to one of `bound`."""
    for _ in range(PAIRS_MAX):
        growth = await _measured_growth(ask, bound, times)
        if growth.is_linear and is_loop_free(growth.small) and is_loop_free(growth.large):
            break
    return growth


async def _measured_growth(ask: Callable[[int], Ask], bound: int, times: int) -> Growth:
    """Both costs, one right after the other."""
    small = await cost_of(ask(bound // times), lambda _: False, ROUNDS)

    def is_enough(large: Cost) -> bool:
        return is_loop_free(large) and Growth(small, large, times).is_linear

    return Growth(small, await cost_of(ask(bound), is_enough), times)


def assert_linear(growth: Growth) -> None:
    """Fails when the time grows faster than the size."""
    assert growth.is_linear, f"{growth.times} times the size took too long: {growth}"


def assert_loop_is_free(cost: Cost) -> None:
    """Fails when others had to wait longer than LOOP_HELD_S_MAX."""
    assert is_loop_free(cost), f"the loop was held for {cost.held_s * 1000:.0f} ms"


async def kept_bytes(ask: Ask, enough: int) -> int:
    """The memory that BURST calls leave behind, each time, when as many were made before: what
    Python allocated. (A cache fills once; a thread may keep its last call until the next comes.)
    Less than `enough` is not measured again."""
    kept = sys.maxsize
    spare_garbage()
    tracemalloc.start()
    try:
        before = await _allocated_after(ask)
        for _ in range(ROUNDS - 1):
            after = await _allocated_after(ask)
            kept, before = min(kept, after - before), after
            if kept < enough:
                break
    finally:
        tracemalloc.stop()
    return kept


async def _allocated_after(ask: Ask) -> int:
    for _ in range(BURST):
        await ask()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
