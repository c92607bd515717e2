"""Many documents in one call: a line in, a line out, and a summary at the end.

    in     a document, or an envelope, per line    as it comes, in pieces of any size
    out    {"line": n, "valid": …, …}              or {"line": n, "error": …}: it cannot be judged
           {"summary": {…}}                        the last; "complete": the input did not break off

Memory is bounded: no more than one line, and LUMPS_MAX results that the caller has yet to read. A
caller who sends everything before reading anything gets that much rope; when it is used up, and
they still do not read, the call ends after `patience_s`. So it does when the reply becomes longer
than REPLY_BYTES_FREE and REPLY_PER_SENT_MAX times what was sent: lines that say nothing cost their
sender next to nothing when they are compressed, and each is answered.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from msgspec.json import Encoder

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.catalog_auth.api.bodies import SentCount
from tollgate.serve.catalog_auth.api.problems import (
    BadBody,
    NotJson,
    Problem,
    TooLarge,
    Unprocessable,
)

encode_json = Encoder().encode
# Results travel in lumps of about so many bytes, or fewer when there is nothing more to judge.
LUMP_BYTES = 64 * 1024
LUMPS_MAX = 64
# So many lines are judged before others get their turn, or lines of so many bytes.
LINES_PER_TURN = 8
BYTES_PER_TURN = 8 * 1024
REPLY_BYTES_FREE = 1024 * 1024
REPLY_PER_SENT_MAX = 1_000
_TOO_LONG = (
    f"the reply is longer than {REPLY_PER_SENT_MAX:,} times what was sent: "
    "send fewer lines that are empty or the same, or do not compress them"
)
Judge = Callable[[bytes], Awaitable[dict[str, Any]]]
# Lines; None: it is too long.
BulkBatch = list[bytes | None]


async def lines(
    chunks: AsyncGenerator[bytes, None], bytes_max: int
) -> AsyncGenerator[BulkBatch, None]:
    """The lines that each chunk completes, without their ends.

    An end of line at the very end begins no other line.
    """
    pending = bytearray()
    is_over = False
    async with aclosing(chunks):
        async for chunk in chunks:
            *ended, rest = chunk.split(b"\n")
            found: BulkBatch = []
            for piece in ended:
                pending += piece
                is_over = is_over or len(pending) > bytes_max
                found.append(None if is_over else bytes(pending))
                pending.clear()
                is_over = False
            pending += rest
            if is_over or len(pending) > bytes_max:
                is_over = True
                pending.clear()
            if found:
                yield found
    if pending or is_over:
        yield [None if is_over else bytes(pending)]


class BulkSummary:
    """The sums over all lines."""

    def __init__(self) -> None:
        self.lines = 0
        self._sums: Counter[str] = Counter()
        self._severities: Counter[str] = Counter()
        self._rules: Counter[str] = Counter()

    def add(self, result: Json) -> None:
        self.lines += 1
        if "error" in result:
            self._sums["unusable"] += 1
            return
        self._sums["valid" if result["valid"] else "invalid"] += 1
        self._sums["schema_valid"] += result["schema_valid"] is True
        self._severities.update(result["counts"])
        self._rules.update(finding["rule"] for finding in result["findings"])

    def members(self, interrupted: Problem | None) -> Json:
        sums: Json = {"lines": self.lines}
        sums |= {
            name: self._sums[name] for name in ("valid", "invalid", "unusable", "schema_valid")
        }
        sums["counts"] = {name: self._severities[name] for name in ("info", "warning", "error")}
        sums["rules"] = dict(sorted(self._rules.items()))
        sums["complete"] = interrupted is None
        if interrupted is not None:
            sums["error"] = interrupted.members()
        return {"summary": sums}


async def bulk_results(
    chunks: AsyncGenerator[bytes, None],
    judge: Judge,
    bytes_max: int,
    patience_s: float,
    sent: SentCount,
) -> AsyncGenerator[bytes, None]:
    """The reply to a bulk call, in lumps of whole lines. `sent`: of which the chunks are made.

    The input is read and judged ahead of what the caller takes, up to LUMPS_MAX.
    """
    ready: asyncio.Queue[bytes | None] = asyncio.Queue(LUMPS_MAX)
    working = asyncio.create_task(_work(chunks, judge, bytes_max, patience_s, sent, ready))
    try:
        while (lump := await _next(ready, working)) is not None:
            yield lump
    finally:
        working.cancel()


async def _next(ready: asyncio.Queue[bytes | None], working: asyncio.Task[None]) -> bytes | None:
    """The next lump; None at the end. What ended the work early is raised."""
    getting = asyncio.create_task(ready.get())
    try:
        await asyncio.wait((getting, working), return_when=asyncio.FIRST_COMPLETED)
        if getting.done():
            return getting.result()
        working.result()
        return await getting
    finally:
        getting.cancel()


async def _work(
    chunks: AsyncGenerator[bytes, None],
    judge: Judge,
    bytes_max: int,
    patience_s: float,
    sent: SentCount,
    ready: asyncio.Queue[bytes | None],
) -> None:
    summary = BulkSummary()
    interrupted: Problem | None = None
    lump = bytearray()
    turn = replied = 0
    try:
        async with aclosing(_patient(lines(chunks, bytes_max), patience_s)) as batches:
            async for batch in batches:
                for line in batch:
                    result = await _result(line, judge, summary, bytes_max)
                    lump += result
                    replied += len(result)
                    if replied > REPLY_BYTES_FREE + REPLY_PER_SENT_MAX * sent.bytes:
                        raise Unprocessable(_TOO_LONG)
                    if len(lump) >= LUMP_BYTES:
                        await _hand_over(ready, lump, patience_s)
                    turn += max(len(line or b""), BYTES_PER_TURN // LINES_PER_TURN)
                    if turn >= BYTES_PER_TURN:
                        turn = 0
                        await asyncio.sleep(0)
                await _hand_over(ready, lump, patience_s)
    except Problem as problem:
        interrupted = problem
    lump += encode_json(summary.members(interrupted)) + b"\n"
    await _hand_over(ready, lump, patience_s)
    await ready.put(None)


async def _hand_over(
    ready: asyncio.Queue[bytes | None], lump: bytearray, patience_s: float
) -> None:
    """Raises TimeoutError when the caller does not take what is ready."""
    if not lump:
        return
    async with asyncio.timeout(patience_s):
        await ready.put(bytes(lump))
    lump.clear()


async def _patient(
    batches: AsyncGenerator[BulkBatch, None], patience_s: float
) -> AsyncGenerator[BulkBatch, None]:
    """The same, but nobody waits for ever. Raises BadBody."""
    async with aclosing(batches):
        while True:
            try:
                async with asyncio.timeout(patience_s):
                    batch = await anext(batches)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise BadBody(f"nothing came for {patience_s:g} s") from None
            yield batch


async def _result(line: bytes | None, judge: Judge, summary: BulkSummary, bytes_max: int) -> bytes:
    """The line about a line."""
    members: dict[str, Any] = {"line": summary.lines + 1}
    try:
        if line is None:
            raise TooLarge(f"the line is longer than {bytes_max} bytes")
        if not line.strip():
            raise NotJson("the line is empty", 1, 1)
        members |= await judge(line)
    except Problem as problem:
        members["error"] = problem.members()
    summary.add(members)
    return encode_json(members) + b"\n"
