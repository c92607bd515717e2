"""Transport security of the grpcio front: certificates that reload, and who may connect (B15).

    files read and valid -> handed to the next handshake
    files changed, broken -> logged once, the old ones stay
    files broken at the start -> TlsError

A handshake compares the files' stamps with those last read, so no watcher is needed.
"""

import inspect
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import grpc
import grpc.aio

from tollgate.serve.net.tls_files import TlsError, check_authority, check_pair, read_file
from tollgate.serve.ratelimit.fronts.front import ServerTls

logger = logging.getLogger(__name__)

# Of each file: when it was modified (ns), its size and inode. A missing file is all zeros.
_Stamp = tuple[tuple[int, int, int], ...]


def server_credentials(tls: ServerTls) -> grpc.ServerCredentials:
    """Credentials that follow the files of `tls`. TlsError when they cannot be loaded now."""
    if tls.client_san and not tls.client_ca_file:
        raise TlsError("a client SAN (GRPC_CLIENT_TLS_SAN) needs a client CA file")
    files = _TlsFiles(tls)
    return grpc.dynamic_ssl_server_credentials(
        files.load(), files.load_if_changed, require_client_authentication=bool(tls.client_ca_file)
    )


class _TlsFiles:
    """The certificate files, with the stamp they had when they were last read."""

    def __init__(self, tls: ServerTls) -> None:
        self._tls = tls
        self._stamp_read: _Stamp = ()

    def load(self) -> Any:
        """grpcio's certificate configuration, read now. TlsError when it would not serve."""
        tls = self._tls
        # Taken before reading: a file that changes meanwhile differs from its stamp and is read
        # again at the next handshake.
        self._stamp_read = self._stamp()
        key, certificate = read_file(tls.key_file), read_file(tls.cert_file)
        client_ca = read_file(tls.client_ca_file) if tls.client_ca_file else None
        check_pair(tls.cert_file, tls.key_file)
        if client_ca is not None:
            check_authority(tls.client_ca_file, client_ca, "a client CA")
        return grpc.ssl_server_certificate_configuration([(key, certificate)], client_ca)

    def load_if_changed(self) -> Any:
        """The answer to every handshake: a new configuration, or None to go on with the last."""
        if self._stamp() == self._stamp_read:
            return None
        try:
            configuration = self.load()
        except TlsError as error:
            logger.error("The gRPC certificate in use stays, the new one is refused: %s", error)
            return None
        logger.warning("The gRPC certificate was reloaded from %s", self._tls.cert_file)
        return configuration

    def _stamp(self) -> _Stamp:
        tls = self._tls
        return tuple(_file_stamp(p) for p in (tls.cert_file, tls.key_file, tls.client_ca_file) if p)


def _file_stamp(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def is_named(dns_names: Iterable[str], wanted: str) -> bool:
    """True when a certificate with `dns_names` speaks for the host `wanted`.

    Letter case and a final dot do not count; `*` stands for exactly the leftmost label (RFC 6125).
    """
    wanted = wanted.lower().rstrip(".")
    _, _, parent = wanted.partition(".")
    names = {name.lower().rstrip(".") for name in dns_names}
    return wanted in names or (bool(parent) and f"*.{parent}" in names)


class RequireSan(grpc.aio.ServerInterceptor):  # type: ignore[type-arg] # generic only in stubs
    """Refuses every call of a client whose certificate lacks a DNS name.

    Per call, because grpcio has no way to refuse the handshake itself.
    """

    def __init__(self, san: str) -> None:
        self._san = san

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None:  # no such method
            return None
        kinds = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")
        kind = next(kind for kind in kinds if getattr(handler, kind) is not None)
        make: Any = getattr(grpc, f"{kind}_rpc_method_handler")
        inner = getattr(handler, kind)
        checked = self._stream(inner) if inspect.isasyncgenfunction(inner) else self._single(inner)
        return make(checked, handler.request_deserializer, handler.response_serializer)

    def _single(self, inner: Any) -> Any:
        async def checked(request: Any, context: Any) -> Any:
            await self._require(context)
            return await inner(request, context)

        return checked

    def _stream(self, inner: Any) -> Any:
        async def checked(request: Any, context: Any) -> AsyncIterator[Any]:
            await self._require(context)
            async for response in inner(request, context):
                yield response

        return checked

    async def _require(self, context: Any) -> None:
        dns_names = [name.decode() for name in context.auth_context().get("peer_dns", ())]
        if not is_named(dns_names, self._san):
            await context.abort(
                grpc.StatusCode.PERMISSION_DENIED,
                f"the client certificate does not carry the DNS name {self._san}",
            )
