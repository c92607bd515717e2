"""Bodies in: a whole document, or its bytes as they come; gzip is taken off on the way.

Nothing is read beyond its bound, compressed or not, and what was compressed counts at its full
size: a small body that swells is refused at the bound too.
"""

from collections.abc import AsyncGenerator, Collection

from starlette.requests import ClientDisconnect, Request

from tollgate.serve.catalog_auth.api.problems import BadBody, TooLarge, WrongMediaType
from tollgate.serve.net.gzip_bodies import GzipError, inflated

JSON_TYPES = ("application/json", "application/geo+json")
NDJSON_TYPES = ("application/x-ndjson", "application/jsonl")


async def whole_body(request: Request, media_types: Collection[str], bytes_max: int) -> bytes:
    """The body. Raises TooLarge, WrongMediaType, BadBody."""
    check_media_type(request, media_types)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 18 or int(length) > bytes_max):
        raise _too_large(bytes_max)
    body = bytearray()
    async for chunk in body_chunks(request):
        body += chunk
        if len(body) > bytes_max:
            raise _too_large(bytes_max)
    return bytes(body)


async def body_chunks(request: Request) -> AsyncGenerator[bytes, None]:
    """The body as it comes, without its compression. Raises WrongMediaType, BadBody."""
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise WrongMediaType(f"Content-Encoding is {encoding[:40]!r}: send it plain or as gzip")
    try:
        sent = request.stream()
        async for chunk in sent if encoding in ("", "identity") else inflated(sent):
            yield chunk
    except ClientDisconnect:
        raise BadBody("the body ended early: the caller went away") from None
    except GzipError as error:
        raise BadBody(str(error)) from None


def check_media_type(request: Request, media_types: Collection[str]) -> None:
    """Raises WrongMediaType."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in media_types:
        shown = repr(given[:80]) if given else "missing"
        wanted = " or ".join(media_types)
        raise WrongMediaType(f"Content-Type is {shown}: send {wanted}")


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(f"the body is larger than {bytes_max} bytes (CATALOG_DOCUMENT_BYTES_MAX)")
