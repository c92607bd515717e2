"""The front on grpcio: slower than the native one, with TLS, unix sockets and connection ages."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import grpc.aio

from tollgate.serve.ratelimit.codec.messages import METHOD_NAME, SERVICE_NAME
from tollgate.serve.ratelimit.fronts.aio_server import AioServer
from tollgate.serve.ratelimit.fronts.batcher import CallBatcher
from tollgate.serve.ratelimit.fronts.front import (
    ErrorStatus,
    ListenAddress,
    Service,
    WireReply,
    unfailing,
)
from tollgate.serve.ratelimit.fronts.hand_over import AnswerGate, hand_over
from tollgate.serve.ratelimit.fronts.health_service import HealthService, ReflectionService
from tollgate.serve.ratelimit.fronts.tls import RequireSan, server_credentials
from tollgate.serve.ratelimit.health import Component

# gRPC counts in milliseconds, in an int of C, and takes its largest value for "never".
DURATION_MS_MAX = 2**31 - 2
NOTICE_S = 1.0

_STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}


class GrpcioFront:
    """A Front (see there) with one batch in flight at a time."""

    def __init__(self, listen: ListenAddress, service: Service) -> None:
        self._listen = listen
        self._health = service.health
        self._clock = service.clock
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="decide")
        self._gate = AnswerGate()
        tls = listen.tls
        self._server = AioServer(
            (
                _RateLimitService(service, self._executor, self._gate),
                HealthService(service),
                ReflectionService(),
            ),
            options=connection_age_arguments(listen),
            interceptors=(RequireSan(tls.client_san),) if tls and tls.client_san else (),
        )
        self._address = ""

    @property
    def address(self) -> str:
        return self._address

    def start(self) -> None:
        tls = self._listen.tls
        credentials = None if tls is None else server_credentials(tls)
        self._address = self._server.start(self._listen, credentials)

    @property
    def has_ended_threads(self) -> bool:
        return not self._server.is_running

    def drain(self, grace_s: float, *, hands_over: bool = False) -> None:
        if hands_over:
            grace_s = self._hand_over(grace_s)
        else:
            self._health.set(Component.SIGTERM, is_healthy=False)
        self._server.stop(grace_s)
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _hand_over(self, grace_s: float) -> float:
        is_plain = self._listen.tls is None
        left_s = hand_over(self._address, grace_s, self._clock, self._gate, says_goaway=is_plain)
        # What was on its way when its caller heard of it comes within this time.
        notice_s = min(left_s, NOTICE_S)
        time.sleep(notice_s)
        return left_s - notice_s


def connection_age_arguments(listen: ListenAddress) -> list[tuple[str, int]]:
    """The channel arguments for the ages that were asked for. A connection ends earlier than an age
    that gRPC cannot count (24.8 days), and gRPC varies every age by 10 % either way."""
    ages = {
        "grpc.max_connection_age_ms": listen.connection_age_s,
        "grpc.max_connection_age_grace_ms": listen.connection_age_grace_s,
    }
    return [
        (name, min(max(1, round(age_s * 1000)), DURATION_MS_MAX))
        for name, age_s in ages.items()
        if age_s is not None
    ]


class _RateLimitService:
    """ShouldRateLimit, on raw bytes."""

    def __init__(self, service: Service, executor: ThreadPoolExecutor, gate: AnswerGate) -> None:
        decide_batch = gate.held(unfailing(service))
        self._tracer = service.tracer
        self._gatherer = CallBatcher(
            decide_batch, executor, count=service.count, tracer=service.tracer
        )
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

    async def _should_rate_limit(self, payload: bytes, context: Any) -> WireReply:
        started_s = self._clock.monotonic_s()
        tracer = self._tracer
        begun = None if tracer is None else tracer.begin(context.invocation_metadata() or ())
        try:
            answer = await self._gatherer.decide(payload, begun)
            if isinstance(answer, ErrorStatus):
                await context.abort(_STATUS_CODES[answer.code], answer.message)
            return answer
        finally:
            self._observe(METHOD_NAME, 1, self._clock.monotonic_s() - started_s)
