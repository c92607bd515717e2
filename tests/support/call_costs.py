"""The cost of one call: processor time, how long the event loop was held for it, bytes of reply.

Time is processor time of this process, so other work on the machine makes no difference to it. The
loop counts as held by whatever keeps it from its next turn: its own callbacks, and a thread that
does not let go of the interpreter. Of some rounds the best counts; what the tests themselves have
left in memory is out of the garbage collector's way meanwhile.
"""

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from time import process_time
from typing import Any

from starlette.types import ASGIApp, Message

# Nobody waits longer than this for another's call.
LOOP_HELD_S_MAX = 0.050
TURN_EVERY_S = 0.001
ROUNDS = 3
BURST = 3
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


@contextmanager
def spared_garbage() -> Iterator[None]:
    """Keeps the garbage collector from what is there already, as the processes that serve do. (That
    is not collected first: after thousands of tests, it would take longer than what is measured.)
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def cost_of(ask: Ask, rounds: int = ROUNDS) -> Cost:
    """The cost of a call: the least of each kind, over all rounds."""
    costs: list[Cost] = []
    with spared_garbage():
        for _ in range(rounds):
            async with watched_loop() as watch:
                begun_s = process_time()
                answer = await ask()
                cpu_s = process_time() - begun_s
            costs.append(Cost(answer, cpu_s, watch.held_s))
    return Cost(
        costs[-1].answer, min(each.cpu_s for each in costs), min(each.held_s for each in costs)
    )


async def costs_of(ask: Callable[[int], Ask], sizes: Sequence[int]) -> list[Cost]:
    """The costs of a call with bodies of these sizes."""
    return [await cost_of(ask(size)) for size in sizes]


def doublings(bound: int, times: int = 3) -> list[int]:
    """Sizes that double, up to a bound."""
    return [bound >> halvings for halvings in reversed(range(times + 1))]


def assert_linear(costs: Sequence[Cost], sizes: Sequence[int]) -> None:
    """Fails when the time grows faster than the size, from the first to the last."""
    growth = sizes[-1] / sizes[0]
    first_s, last_s = max(costs[0].cpu_s, MEASURABLE_S), costs[-1].cpu_s
    told = f"{growth:g} times the size took {last_s / first_s:.1f} times as long: {costs}"
    assert last_s < GROWTH_TOLERANCE * growth * first_s, told


def assert_loop_is_free(cost: Cost) -> None:
    """Fails when others had to wait longer than LOOP_HELD_S_MAX."""
    assert cost.held_s < LOOP_HELD_S_MAX, f"the loop was held for {cost.held_s * 1000:.0f} ms"


async def kept_bytes(ask: Ask) -> int:
    """The memory that BURST calls leave behind, each time, when as many were made before: what
    Python allocated. (A cache fills once; a thread may keep its last call until the next comes.)"""
    with spared_garbage():
        tracemalloc.start()
        try:
            after = [await _allocated_after(ask) for _ in range(3)]
            return min(after[1] - after[0], after[2] - after[1])
        finally:
            tracemalloc.stop()


async def _allocated_after(ask: Ask) -> int:
    for _ in range(BURST):
        await ask()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
