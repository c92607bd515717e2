"""Bodies in: a whole document, or its bytes as they come; gzip is taken off on the way.

Nothing is read beyond its bound, compressed or not, and what was compressed counts at its full
size: a small body that swells is refused at the bound too. Until it is worked on, a whole body is
kept as it was sent, so that one that never ends holds no more memory than its sender has paid for;
and it has a time to come in.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request

from tollgate.serve.catalog_auth.api.held_bytes import HeldByCall
from tollgate.serve.catalog_auth.api.problems import BadBody, TooLarge, TooSlow, WrongMediaType
from tollgate.serve.net.gzip_bodies import GzipError, inflated, inflated_whole

JSON_TYPES = ("application/json", "application/geo+json")
NDJSON_TYPES = ("application/x-ndjson", "application/jsonl")
# What is smaller takes less time than others may have to wait.
LARGE_BYTES = 16 * 1024
_PLAIN = ("", "identity")
_GZIP = ("gzip", "x-gzip")


@dataclass(frozen=True, slots=True)
class SentBody:
    """A whole body as it was sent; without compression it may have `bytes_max`."""

    sent: bytes
    is_compressed: bool
    bytes_max: int

    @property
    def size(self) -> int:
        """Its bytes without compression, as long as they are known, or as many as they may be."""
        return self.bytes_max if self.is_compressed else len(self.sent)

    def content(self) -> bytes:
        """Its bytes without compression. Raises TooLarge, BadBody."""
        if not self.is_compressed:
            return self.sent
        try:
            content = inflated_whole(self.sent, self.bytes_max)
        except GzipError as error:
            raise BadBody(str(error)) from None
        if content is None:
            raise _too_large(self.bytes_max)
        return content


async def whole_body(request: Request, media_types: Collection[str], bytes_max: int) -> SentBody:
    """The body. Raises TooLarge, TooSlow, WrongMediaType, BadBody, BusyProblem."""
    check_media_type(request, media_types)
    is_compressed = _is_compressed(request)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 18 or int(length) > bytes_max):
        raise _too_large(bytes_max)
    sent = await _read(request, bytes_max, request.state.held)
    body = SentBody(sent, is_compressed, bytes_max)
    return _small(body) if is_compressed and len(sent) < LARGE_BYTES else body


async def _read(request: Request, bytes_max: int, held: HeldByCall) -> bytes:
    sent = bytearray()
    begun_s = asyncio.get_running_loop().time()
    try:
        async with (
            asyncio.timeout_at(begun_s + held.time_for(0)) as limit,
            aclosing(_sent_chunks(request)) as chunks,
        ):
            async for chunk in chunks:
                sent += chunk
                if len(sent) > bytes_max:
                    raise _too_large(bytes_max)
                held.grow(len(sent))
                limit.reschedule(begun_s + held.time_for(len(sent)))
    except TimeoutError:
        told = f"after {held.time_for(len(sent)):.0f} s the body was not there"
        raise TooSlow(f"{told}: send it faster, or as gzip") from None
    return bytes(sent)


def _small(body: SentBody) -> SentBody:
    """The body without its compression, if it turns out to be a small one. Raises BadBody."""
    try:
        content = inflated_whole(body.sent, min(LARGE_BYTES, body.bytes_max))
    except GzipError as error:
        raise BadBody(str(error)) from None
    return body if content is None else SentBody(content, False, body.bytes_max)


class SentCount:
    """The bytes that a caller has sent so far, compressed or not."""

    def __init__(self) -> None:
        self.bytes = 0


async def body_chunks(request: Request, sent: SentCount) -> AsyncGenerator[bytes, None]:
    """The body as it comes, without its compression. Raises WrongMediaType, BadBody."""
    is_compressed = _is_compressed(request)
    chunks = _counted(_sent_chunks(request), sent)
    try:
        async for chunk in inflated(chunks) if is_compressed else chunks:
            yield chunk
    except GzipError as error:
        raise BadBody(str(error)) from None


async def _counted(chunks: AsyncIterator[bytes], sent: SentCount) -> AsyncGenerator[bytes, None]:
    async for chunk in chunks:
        sent.bytes += len(chunk)
        yield chunk


async def _sent_chunks(request: Request) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(request.stream()) as chunks:
            async for chunk in chunks:
                yield chunk
    except ClientDisconnect:
        raise BadBody("the body ended early: the caller went away") from None


def _is_compressed(request: Request) -> bool:
    """Raises WrongMediaType."""
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in (*_PLAIN, *_GZIP):
        raise WrongMediaType(f"Content-Encoding is {encoding[:40]!r}: send it plain or as gzip")
    return encoding in _GZIP


def check_media_type(request: Request, media_types: Collection[str]) -> None:
    """Raises WrongMediaType."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in media_types:
        shown = repr(given[:80]) if given else "missing"
        wanted = " or ".join(media_types)
        raise WrongMediaType(f"Content-Type is {shown}: send {wanted}")


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(f"the body is larger than {bytes_max} bytes (CATALOG_DOCUMENT_BYTES_MAX)")
