"""A control plane on the loopback: sends what it is told, and remembers all that it was asked.

State of the world over the aggregated stream, written from B20 and Envoy's published messages. It
has a port of its own, which it keeps when it is stopped and started again.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import grpc
import trustme
from google.protobuf import any_pb2

from tests.support.ratelimit.sent_rules import TYPE_URL
from tests.support.waiting import until
from tollgate.serve.ratelimit.rule_sources.resource_messages import (
    METHOD_NAME,
    SERVICE_NAME,
    DiscoveryRequest,
    DiscoveryResponse,
)

STREAMS_MAX = 8
STOPPED_WITHIN_S = 30.0


@dataclass(eq=False)
class Stream:
    """One subscription: its headers, and what was said in it."""

    headers: dict[str, str]
    requests: list[Any] = field(default_factory=list)
    sending: "SimpleQueue[bytes | None]" = field(default_factory=SimpleQueue)


class ControlPlaneServer:
    """`certificate`: of the server; `client_authority`: whose certificates clients have to show."""

    def __init__(
        self,
        certificate: trustme.LeafCert | None = None,
        client_authority: trustme.CA | None = None,
    ) -> None:
        self._certificate = certificate
        self._client_authority = client_authority
        self._lock = Lock()
        self._server: grpc.Server | None = None
        self._current: Any = None
        self._nonce = 0
        self.streams: list[Stream] = []
        self.port = 0

    def __enter__(self) -> "ControlPlaneServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def target(self) -> str:
        return f"localhost:{self.port}"

    @property
    def requests(self) -> list[Any]:
        """All that was asked, in all streams."""
        return [request for stream in self.streams for request in stream.requests]

    def renew(self, certificate: trustme.LeafCert) -> None:
        """Have this certificate from the next start on."""
        self._certificate = certificate

    def start(self) -> None:
        """Listen, on the port of the last time if there was one."""
        pool = ThreadPoolExecutor(STREAMS_MAX)
        # Nobody else may have the port, also none of the same user.
        server = grpc.server(pool, options=[("grpc.so_reuseport", 0)])
        handler = grpc.stream_stream_rpc_method_handler(
            self._serve, DiscoveryRequest.FromString, lambda content: content
        )
        methods = grpc.method_handlers_generic_handler(SERVICE_NAME, {METHOD_NAME: handler})
        server.add_generic_rpc_handlers((methods,))
        address = f"localhost:{self.port}"
        if self._certificate is None:
            self.port = server.add_insecure_port(address)
        else:
            self.port = server.add_secure_port(address, self._credentials(self._certificate))
        server.start()
        self._server = server

    def stop(self) -> None:
        """End all streams and listen no more."""
        if self._server is not None:
            assert self._server.stop(None).wait(STOPPED_WITHIN_S)
            self._server = None

    def publish(self, version: str, *resources: any_pb2.Any) -> str:
        """Send these resources, to whoever is there and whoever comes; their nonce."""
        with self._lock:
            self._nonce += 1
            self._current = DiscoveryResponse(
                version_info=version, nonce=f"nonce-{self._nonce}", type_url=TYPE_URL
            )
            for each in resources:
                self._current.resources.add(type_url=each.type_url, value=each.value)
            streams = [stream for stream in self.streams if stream.requests]
            for stream in streams:
                stream.sending.put(self._current.SerializeToString())
            return self._current.nonce

    def send(self, content: bytes) -> None:
        """Send these bytes to whoever is there."""
        for stream in self.streams:
            stream.sending.put(content)

    def answer_to(self, nonce: str) -> Any:
        """The request that acknowledges or refuses what was sent with this nonce."""
        answers = until(
            lambda: [each for each in self.requests if each.response_nonce == nonce],
            f"{nonce} is answered",
        )
        assert len(answers) == 1
        return answers[0]

    def wait_for_streams(self, count: int) -> Stream:
        """The last of so many streams, once it has asked for something."""
        until(
            lambda: len(self.streams) >= count and self.streams[count - 1].requests,
            f"{count} streams were opened",
        )
        return self.streams[count - 1]

    def _credentials(self, certificate: trustme.LeafCert) -> grpc.ServerCredentials:
        chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
        pair = (certificate.private_key_pem.bytes(), chain)
        clients = self._client_authority
        authority = None if clients is None else clients.cert_pem.bytes()
        return grpc.ssl_server_credentials([pair], authority, clients is not None)

    def _serve(self, requests: Iterable[Any], context: grpc.ServicerContext) -> Iterator[bytes]:
        stream = Stream(dict(context.invocation_metadata()))
        self.streams.append(stream)
        context.add_callback(lambda: stream.sending.put(None))
        Thread(target=self._hear, args=(stream, requests), daemon=True).start()
        yield from iter(stream.sending.get, None)

    def _hear(self, stream: Stream, requests: Iterable[Any]) -> None:
        try:
            for request in requests:
                self._take(stream, request)
        except grpc.RpcError:
            pass  # the stream is over

    def _take(self, stream: Stream, request: Any) -> None:
        with self._lock:
            is_first = not stream.requests
            stream.requests.append(request)
            if is_first and self._current and request.version_info != self._current.version_info:
                stream.sending.put(self._current.SerializeToString())


def sent_in(requests: Sequence[Any]) -> list[tuple[str, str, str]]:
    """Version, nonce and error of each request."""
    return [(r.version_info, r.response_nonce, r.error_detail.message) for r in requests]
