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
    """The contents of these chunks of gzip, by and by. Raises GzipError."""
    inflating = _Inflating()
    steps = 0
    async for chunk in chunks:
        for found in inflating.contents(chunk):
            yield found
            steps += 1
            if steps % STEPS_PER_TURN == 0:
                await asyncio.sleep(0)
    yield inflating.end()


def inflated_whole(sent: bytes, bytes_max: int) -> bytes | None:
    """The contents of a whole body of gzip; None: they are longer than that. Raises GzipError."""
    inflating = _Inflating()
    found = bytearray()
    for piece in inflating.contents(sent):
        found += piece
        if len(found) > bytes_max:
            return None
    found += inflating.end()
    return None if len(found) > bytes_max else bytes(found)


class _Inflating:
    """Gzip files, one after the other, that come in chunks."""

    def __init__(self) -> None:
        self._file = zlib.decompressobj(GZIP_WINDOW)
        self._sent = 0
        self._given = 0

    def contents(self, chunk: bytes) -> Iterator[bytes]:
        """The contents of the next chunk, but for what there was no room for. Raises GzipError."""
        for start in range(0, len(chunk), SENT_PIECE_BYTES):
            rest = chunk[start : start + SENT_PIECE_BYTES]
            self._sent += len(rest)
            while rest:
                if self._file.eof:  # (gzip files may be joined: the next one begins)
                    self._file = zlib.decompressobj(GZIP_WINDOW)
                try:
                    found = self._file.decompress(rest, INFLATED_CHUNK_BYTES)
                except zlib.error:
                    raise GzipError("the body is said to be gzip, and is not") from None
                self._given += len(found)
                yield found
                rest = self._file.unconsumed_tail or self._file.unused_data
            if self._sent > SENT_BYTES_FREE + SENT_PER_INFLATED_MAX * self._given:
                raise GzipError("the body is gzip, and longer than what it holds")

    def end(self) -> bytes:
        """The contents that are left over. Raises GzipError."""
        try:
            rest = b"" if self._file.eof else self._file.flush()
        except zlib.error:
            raise GzipError("the body is said to be gzip, and is not") from None
        if not self._file.eof:
            raise GzipError("the body is gzip, and ends early")
        return rest
