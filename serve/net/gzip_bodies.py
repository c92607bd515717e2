"""Bodies that are compressed, unpacked in pieces of a bounded size.

What is unpacked counts against whatever bound a caller has, and so does what was sent: gzip files
may be joined, and files that hold nothing would come without an end.
"""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator

GZIP_WINDOW = 16 + zlib.MAX_WBITS
INFLATED_CHUNK_BYTES = 64 * 1024
# As much is unpacked at a time: the rest of it is copied for every file and every full chunk.
SENT_PIECE_BYTES = 4 * 1024
# Pieces or files between two turns of the event loop.
STEPS_PER_TURN = 64
# Compressed texts are shorter than what they hold. Short files are not, and get so much.
SENT_PER_INFLATED_MAX = 4
SENT_BYTES_FREE = 64 * 1024


class GzipError(Exception):
    """A body that is said to be gzip and is not; `str()` says why in one line."""


async def inflated(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The contents of these chunks of gzip. Raises GzipError."""
    inflating = zlib.decompressobj(GZIP_WINDOW)
    sent = given = steps = 0
    try:
        async for chunk in chunks:
            sent += len(chunk)
            for piece in _cut(chunk):
                rest = piece
                while rest:
                    if inflating.eof:  # (gzip files may be joined: the next one begins)
                        inflating = zlib.decompressobj(GZIP_WINDOW)
                    found = inflating.decompress(rest, INFLATED_CHUNK_BYTES)
                    given += len(found)
                    yield found
                    rest = inflating.unconsumed_tail or inflating.unused_data
                    steps += 1
                    if steps % STEPS_PER_TURN == 0:
                        await asyncio.sleep(0)
            if sent > SENT_BYTES_FREE + SENT_PER_INFLATED_MAX * given:
                raise GzipError("the body is gzip, and longer than what it holds")
        if not inflating.eof:
            yield inflating.flush()  # (what the last chunk had no room for)
    except zlib.error:
        raise GzipError("the body is said to be gzip, and is not") from None
    if not inflating.eof:
        raise GzipError("the body is gzip, and ends early")


def _cut(chunk: bytes) -> Iterator[bytes]:
    for start in range(0, len(chunk), SENT_PIECE_BYTES):
        yield chunk[start : start + SENT_PIECE_BYTES]
