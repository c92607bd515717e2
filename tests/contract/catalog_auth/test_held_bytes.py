"""The memory that callers hold with bodies that do not end and replies that they do not take: it
is bounded, small calls are answered meanwhile, and all of it comes back."""

import asyncio
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from starlette.types import Message

from tests.support.call_costs import asked
from tests.support.catalog_auth.api import PREFIX, CatalogApi, item
from tests.support.catalog_auth.hostile_documents import DOCUMENTS
from tests.support.virtual_loop import VirtualLoop
from tollgate.serve.catalog_auth.api.held_bytes import (
    PIECE_BYTES,
    SMALL_BYTES,
    TIME_S,
    HeldBytes,
)

LARGE = json.dumps(item(title=["x" * 100_000] * 3)).encode()
HEADERS = [("content-type", "application/json")]
GZIP = [*HEADERS, ("content-encoding", "gzip")]


def api_that_holds(bytes_max: int) -> CatalogApi:
    return CatalogApi(replace(CatalogApi().context, held=HeldBytes(bytes_max)))


class Caller:
    """A caller who sends these pieces and then nothing; `takes` pieces of the reply, then none."""

    def __init__(self, pieces: Sequence[bytes], *, ends: bool, takes: int = 1_000) -> None:
        self._pieces = [*pieces]
        self._ends = ends
        self._takes = takes
        self.messages: list[Message] = []
        self.waits = asyncio.Event()

    async def receive(self) -> Message:
        if self._pieces:
            body = self._pieces.pop(0)
            has_more = bool(self._pieces) or not self._ends
            return {"type": "http.request", "body": body, "more_body": has_more}
        self.waits.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(self, message: Message) -> None:
        if len(self.messages) == self._takes:
            self.waits.set()
            await asyncio.Event().wait()
        self.messages.append(message)

    async def call(self, api: CatalogApi, path: str, headers: Sequence[tuple[str, str]]) -> None:
        scope: dict[str, Any] = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "path": PREFIX + path,
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers],
            "server": ("test", 80),
            "scheme": "http",
        }
        await api.app(scope, self.receive, self.send)

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.messages)


@asynccontextmanager
async def calling(
    api: CatalogApi, callers: Sequence[Caller], headers: Sequence[tuple[str, str]]
) -> AsyncIterator[None]:
    """Calls that are under way, each until its caller waits for ever."""
    tasks = [asyncio.create_task(each.call(api, "/fix", headers)) for each in callers]
    try:
        for caller in callers:
            await caller.waits.wait()
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def test_a_compressed_body_that_does_not_end_holds_what_was_sent() -> None:
    """Eight megabytes of blanks, from eight kilobytes."""
    compressing = zlib.compressobj(wbits=31)
    sent = compressing.compress(b"[" + b" " * 8_000_000) + compressing.flush(zlib.Z_SYNC_FLUSH)
    api = CatalogApi()

    async def held() -> tuple[int, int]:
        before = tracemalloc.get_traced_memory()[0]
        async with calling(api, [Caller([sent], ends=False) for _ in range(4)], GZIP):
            return tracemalloc.get_traced_memory()[0] - before, api.context.held.bytes

    tracemalloc.start()
    try:
        traced, counted = asyncio.run(held())
    finally:
        tracemalloc.stop()
    assert counted == 4 * len(sent)
    assert traced < 1_000_000
    assert api.context.held.bytes == 0


def test_when_others_hold_as_much_as_is_allowed_a_large_body_is_refused() -> None:
    api = api_that_holds(1_000_000)
    pieces = [LARGE[:PIECE_BYTES]] * 4

    async def call(document: bytes) -> tuple[int, bytes]:
        answer = await asked(api.app, "POST", "/fix", document, HEADERS, b"", PREFIX)
        return answer.status, answer.body

    async def story() -> None:
        async with calling(api, [Caller(pieces, ends=False) for _ in range(3)], HEADERS):
            status, body = await call(LARGE)
            assert status == 503
            assert json.loads(body)["type"].endswith(":busy")
            assert "call again" in json.loads(body)["detail"]
            status, _ = await call(json.dumps(item()).encode())
            assert status == 200
        status, _ = await call(LARGE)
        assert status == 200
        assert api.context.held.bytes == 0

    asyncio.run(story())


def test_small_bodies_are_bounded_together_too() -> None:
    api = api_that_holds(SMALL_BYTES)
    small = b" " * (SMALL_BYTES - 1)

    async def story() -> list[int]:
        async with calling(api, [Caller([small], ends=False) for _ in range(2)], HEADERS):
            answer = await asked(api.app, "POST", "/fix", small, HEADERS, b"", PREFIX)
            return [answer.status, api.context.held.bytes]

    assert asyncio.run(story()) == [503, 2 * len(small)]


@pytest.mark.parametrize(("count", "late_s"), [(0, TIME_S), (2, TIME_S + 2)])
def test_a_body_has_a_time_to_come_in(count: int, late_s: float) -> None:
    api = CatalogApi()
    caller = Caller([b" " * PIECE_BYTES] * count, ends=False)

    async def story() -> float:
        begun_s = asyncio.get_running_loop().time()
        await caller.call(api, "/validate", HEADERS)
        return asyncio.get_running_loop().time() - begun_s

    assert VirtualLoop().run(story()) == pytest.approx(late_s)
    start, *_ = caller.messages
    assert start["status"] == 408
    assert (b"retry-after", b"1") in start["headers"]
    told = json.loads(caller.body)
    assert told["type"].endswith(":too-slow")
    assert "send it faster" in told["detail"]
    assert api.context.held.bytes == 0


def test_a_reply_that_is_not_taken_is_held_in_part_and_then_given_up() -> None:
    """The server is handed a piece at a time: what it has not taken, the call still holds."""
    api = CatalogApi()
    caller = Caller([DOCUMENTS["many_identifiers"](13_000)], ends=True, takes=3)
    held: list[int] = []

    async def story() -> None:
        calling = asyncio.create_task(caller.call(api, "/validate", HEADERS))
        await caller.waits.wait()
        held.append(api.context.held.bytes)
        await calling

    VirtualLoop().run(story())
    start, first, second = caller.messages
    assert start["status"] == 200
    assert len(first["body"]) == len(second["body"]) == PIECE_BYTES
    assert second["more_body"]
    (while_waiting,) = held
    (length,) = (int(value) for name, value in start["headers"] if name == b"content-length")
    assert while_waiting == length - 2 * PIECE_BYTES
    assert api.context.held.bytes == 0


def test_a_long_reply_is_whole() -> None:
    document = item(title="é" * 40_000)
    reply = CatalogApi().post("/fix", document).json()
    assert reply["document"] == document
