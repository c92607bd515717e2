"""The front on grpcio: slower than the native one, with TLS, unix sockets and connection ages."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import grpc.aio

from tollgate.serve.ratelimit.codec.messages import METHOD_NAME, SERVICE_NAME
from tollgate.serve.ratelimit.fronts.aio_server import AioServer
from tollgate.serve.ratelimit.fronts.front import Answer, Door, Refused, Service
from tollgate.serve.ratelimit.fronts.gatherer import Gatherer
from tollgate.serve.ratelimit.fronts.guard import guarded
from tollgate.serve.ratelimit.fronts.health_service import HealthService, ReflectionService
from tollgate.serve.ratelimit.fronts.tls import RequireSan, server_credentials
from tollgate.serve.ratelimit.health import Component

# The reference's defaults (B15). gRPC itself varies the age by 10 % either way.
CONNECTION_AGE_S = 24 * 3600.0
CONNECTION_AGE_GRACE_S = 3600.0

_STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}


class GrpcioFront:
    """A Front (see there) with one batch in flight at a time."""

    def __init__(self, door: Door, service: Service) -> None:
        self._door = door
        self._health = service.health
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="decide")
        tls = door.tls
        self._server = AioServer(
            (
                _RateLimitService(service, self._executor),
                HealthService(service),
                ReflectionService(),
            ),
            options=_connection_age(door),
            interceptors=(RequireSan(tls.client_san),) if tls and tls.client_san else (),
        )
        self._address = ""

    @property
    def address(self) -> str:
        return self._address

    def start(self) -> None:
        tls = self._door.tls
        credentials = None if tls is None else server_credentials(tls)
        self._address = self._server.start(self._door, credentials)

    def drain(self, grace_s: float) -> None:
        self._health.set(Component.SIGTERM, is_healthy=False)
        self._server.stop(grace_s)
        self._executor.shutdown(wait=False, cancel_futures=True)


def _connection_age(door: Door) -> list[tuple[str, int]]:
    age_s = CONNECTION_AGE_S if door.connection_age_s is None else door.connection_age_s
    grace_s = door.connection_age_grace_s
    if grace_s is None:
        grace_s = CONNECTION_AGE_GRACE_S
    return [
        ("grpc.max_connection_age_ms", round(age_s * 1000)),
        ("grpc.max_connection_age_grace_ms", round(grace_s * 1000)),
    ]


class _RateLimitService:
    """ShouldRateLimit, on raw bytes."""

    def __init__(self, service: Service, executor: ThreadPoolExecutor) -> None:
        self._gatherer = Gatherer(guarded(service), executor)
        self._clock = service.clock
        self._observe = service.observe

    def install(self, server: grpc.aio.Server) -> None:
        # Without (de)serialisers the handler gets and gives bytes.
        handler = grpc.unary_unary_rpc_method_handler(self._should_rate_limit)
        methods = {METHOD_NAME: handler}
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE_NAME, methods),)
        )

    def drain(self) -> None:
        """Nothing to end: every call gets its answer."""

    async def _should_rate_limit(self, payload: bytes, context: Any) -> Answer:
        started_s = self._clock.monotonic_s()
        try:
            answer = await self._gatherer.decide(payload)
            if isinstance(answer, Refused):
                await context.abort(_STATUS_CODES[answer.code], answer.message)
            return answer
        finally:
            self._observe(METHOD_NAME, 1, self._clock.monotonic_s() - started_s)
