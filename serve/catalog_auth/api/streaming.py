"""A reply in pieces while the request is still coming, optionally compressed.

Starlette's own streaming reply listens for the caller's leaving, and swallows the request's body
while it does: here nobody else reads. A reply that breaks off ends without its last chunk, which
every client takes for what it is.
"""

import logging
import zlib
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tollgate.serve.net.gzip_bodies import GZIP_WINDOW

LOG = logging.getLogger("tollgate.catalog_auth")
# Between the time a level costs and what it saves: results repeat themselves.
GZIP_LEVEL = 3


class Streamed(Response):
    """A reply of lumps, each on its way as soon as it is there. `slot` is held meanwhile; when
    there is none, what it raises becomes the reply."""

    def __init__(
        self,
        lumps: AsyncGenerator[bytes, None],
        media_type: str,
        *,
        is_compressed: bool,
        slot: AbstractContextManager[None],
    ) -> None:
        headers = {"Vary": "Accept-Encoding", "X-Accel-Buffering": "no"}
        if is_compressed:
            headers["Content-Encoding"] = "gzip"
        super().__init__(None, 200, headers, media_type)
        del self.headers["content-length"]
        self._lumps = lumps
        self._is_compressed = is_compressed
        self._slot = slot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._slot:
            await self._send(send)

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        lumps = _compressed(self._lumps) if self._is_compressed else self._lumps
        try:
            async with aclosing(lumps):
                async for lump in lumps:
                    await send({"type": "http.response.body", "body": lump, "more_body": True})
        except (TimeoutError, OSError) as error:
            LOG.info("a caller did not take their results: %s", type(error).__name__)
            return
        await send({"type": "http.response.body", "body": b""})


def takes_gzip(request: Request) -> bool:
    """Tells whether the caller says that they understand gzip."""
    parts = request.headers.get("accept-encoding", "").lower().split(",")
    names = [part.partition(";") for part in parts]
    return any(
        name.strip() in ("gzip", "x-gzip") and weight.replace(" ", "") not in ("q=0", "q=0.0")
        for name, _, weight in names
    )


async def _compressed(lumps: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Each lump compressed to its end, so that nothing waits for the next."""
    compressing = zlib.compressobj(GZIP_LEVEL, wbits=GZIP_WINDOW)
    async with aclosing(lumps):
        async for lump in lumps:
            yield compressing.compress(lump) + compressing.flush(zlib.Z_SYNC_FLUSH)
    yield compressing.flush()
