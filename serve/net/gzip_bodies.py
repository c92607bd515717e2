"""Bodies that are compressed, unpacked in pieces of a bounded size."""

import zlib
from collections.abc import AsyncGenerator, AsyncIterator

GZIP_WINDOW = 16 + zlib.MAX_WBITS
INFLATED_CHUNK_BYTES = 64 * 1024


class GzipError(Exception):
    """A body that is said to be gzip and is not; `str()` says why in one line."""


async def inflated(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The contents of these chunks of gzip. Raises GzipError."""
    inflating = zlib.decompressobj(GZIP_WINDOW)
    try:
        async for chunk in chunks:
            rest = chunk
            while rest:
                if inflating.eof:  # (gzip files may be joined: the next one begins)
                    inflating = zlib.decompressobj(GZIP_WINDOW)
                yield inflating.decompress(rest, INFLATED_CHUNK_BYTES)
                rest = inflating.unconsumed_tail or inflating.unused_data
        if not inflating.eof:
            yield inflating.flush()  # (what the last chunk had no room for)
    except zlib.error:
        raise GzipError("the body is said to be gzip, and is not") from None
    if not inflating.eof:
        raise GzipError("the body is gzip, and ends early")
