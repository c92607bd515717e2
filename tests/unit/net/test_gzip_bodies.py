"""Compressed bodies: unpacked in bounded pieces, while others get their turn."""

import asyncio
import gzip
from collections.abc import AsyncIterator

import pytest

from tollgate.serve.net.gzip_bodies import (
    INFLATED_CHUNK_BYTES,
    SENT_BYTES_FREE,
    GzipError,
    inflated,
)


async def chunks(*bodies: bytes) -> AsyncIterator[bytes]:
    for body in bodies:
        yield body


def unpacked(*bodies: bytes) -> list[bytes]:
    async def whole() -> list[bytes]:
        return [chunk async for chunk in inflated(chunks(*bodies))]

    return asyncio.run(whole())


@pytest.mark.parametrize("size", [1, 3, 4_096, 5_000, 1_000_000])
def test_however_it_is_cut_the_content_is_the_same(size: int) -> None:
    content = bytes(range(256)) * 400
    sent = gzip.compress(content[:50_000]) + gzip.compress(content[50_000:])
    pieces = [sent[start : start + size] for start in range(0, len(sent), size)]
    assert b"".join(unpacked(*pieces)) == content


def test_no_piece_is_large() -> None:
    found = unpacked(gzip.compress(b"x" * 5_000_000))
    assert sum(map(len, found)) == 5_000_000
    assert max(map(len, found)) <= INFLATED_CHUNK_BYTES


def test_files_that_hold_nothing_do_not_come_without_an_end() -> None:
    nothing = gzip.compress(b"")
    assert b"".join(unpacked(nothing * 100)) == b""
    with pytest.raises(GzipError, match="longer than what it holds"):
        unpacked(*[nothing * 100] * (SENT_BYTES_FREE // len(nothing * 100) + 1))


def test_short_files_are_taken() -> None:
    lines = [b'{"number": %d}\n' % number for number in range(10_000)]
    assert b"".join(unpacked(b"".join(map(gzip.compress, lines)))) == b"".join(lines)


@pytest.mark.parametrize("body", [b"no gzip", gzip.compress(b"x" * 99)[:-1], b""])
def test_what_is_no_gzip_is_refused(body: bytes) -> None:
    with pytest.raises(GzipError):
        unpacked(body)


def test_others_get_their_turn() -> None:
    async def turns() -> int:
        count = 0

        async def other() -> None:
            nonlocal count
            while True:
                count += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        async for _ in inflated(chunks(gzip.compress(b"x" * 20_000_000))):
            pass
        task.cancel()
        return count

    assert asyncio.run(turns()) > 3
