"""The standard gRPC health service (B17), and reflection, for both fronts.

`ratelimit` mirrors the overall health, the empty name is always SERVING, others are not found.

The health package's own servicer is not used: it holds a lock while it writes to a watcher, so one
that does not read would keep the news from all others, and its watches never end by themselves,
so every drain with a watcher would take its whole grace.
"""

import asyncio
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from tollgate.serve.ratelimit.codec.message_pool import MESSAGE_POOL
from tollgate.serve.ratelimit.codec.messages import SERVICE_NAME
from tollgate.serve.ratelimit.fronts.front import Service

HEALTH_NAME = "ratelimit"
_ALWAYS_SERVING = ""
_HEALTH_SERVICE_NAME = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name

_Request = health_pb2.HealthCheckRequest
_Response = health_pb2.HealthCheckResponse


class HealthService:
    """Answers Check and Watch from a Health. Lives in one event loop."""

    def __init__(self, service: Service) -> None:
        self._health = service.health
        self._clock = service.clock
        self._observe = service.observe
        self._is_draining = False

    def install(self, server: grpc.aio.Server) -> None:
        loop = asyncio.get_running_loop()
        # Set and replaced at every change: a watcher waits for the one that it saw.
        self._changed = asyncio.Event()

        def on_turn(is_healthy: bool) -> None:
            loop.call_soon_threadsafe(self._wake_watchers)

        self._end_subscription = self._health.subscribe(on_turn)
        form = {
            "request_deserializer": _Request.FromString,
            "response_serializer": _Response.SerializeToString,
        }
        methods = {
            "Check": grpc.unary_unary_rpc_method_handler(self._check, **form),
            "Watch": grpc.unary_stream_rpc_method_handler(self._watch, **form),
        }
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(_HEALTH_SERVICE_NAME, methods),)
        )

    def drain(self) -> None:
        """Watchers get the last state and the end of their stream."""
        self._end_subscription()
        self._is_draining = True
        self._wake_watchers()

    def _wake_watchers(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _response(self, name: str) -> Any:
        if name not in (_ALWAYS_SERVING, HEALTH_NAME):
            return _Response(status=_Response.SERVICE_UNKNOWN)
        is_serving = name == _ALWAYS_SERVING or self._health.is_healthy
        return _Response(status=_Response.SERVING if is_serving else _Response.NOT_SERVING)

    async def _check(self, request: Any, context: Any) -> Any:
        started_s = self._clock.monotonic_s()
        try:
            response = self._response(request.service)
            if response.status == _Response.SERVICE_UNKNOWN:
                await context.abort(
                    grpc.StatusCode.NOT_FOUND, f"unknown service {request.service!r}"
                )
            return response
        finally:
            self._observe("Check", 1, self._clock.monotonic_s() - started_s)

    async def _watch(self, request: Any, context: Any) -> None:
        response_sent = None
        while True:
            changed = self._changed
            response = self._response(request.service)
            if response != response_sent:
                await context.write(response)
                response_sent = response
            elif self._is_draining:
                return
            else:
                await changed.wait()


class ReflectionService:
    """Lets tools list and describe the rate-limit and health services."""

    def install(self, server: grpc.aio.Server) -> None:
        for file in (health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR):
            MESSAGE_POOL.AddSerializedFile(file.serialized_pb)
        names = (SERVICE_NAME, _HEALTH_SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server, MESSAGE_POOL)

    def drain(self) -> None:
        """Nothing to end: these calls end with their callers."""
