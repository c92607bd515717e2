"""Both ways to the JSON door where calls are traced: they keep what a call says of its trace."""

import asyncio

from starlette.requests import Request

from tollgate.serve.ratelimit.fronts.batcher import CallBatcher
from tollgate.serve.ratelimit.fronts.front import CallTracer, Service
from tollgate.serve.ratelimit.json_door.connection import Door, HttpCall, HttpConnection, Stage
from tollgate.serve.ratelimit.json_door.endpoint import JsonEndpoint
from tollgate.serve.ratelimit.json_door.exchange import HttpAnswer, JsonExchange
from tollgate.serve.ratelimit.json_door.server import JsonDoor, Turns
from tollgate.serve.ratelimit.tracing.propagation_headers import TRACE_HEADERS

_NAMES = frozenset(name.encode() for name in TRACE_HEADERS)


class TracedJsonDoor(JsonDoor):
    """A JsonDoor (see there) that tells a tracer of its calls."""

    def _new_turns(self, service: Service, exchange: JsonExchange) -> Turns:
        assert service.tracer is not None, "this is the door of a service that is traced"
        return _TracedTurns(self._loop, service, exchange, service.tracer)

    def _new_connection(self) -> HttpConnection:
        return _TracedConnection(self._turns)


class _TracedConnection(HttpConnection):
    """A connection that remembers the trace headers of the request that it is reading."""

    def __init__(self, door: Door) -> None:
        super().__init__(door)
        self.trace_headers: list[tuple[str, str]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._stage is Stage.HEAD and (lower := name.lower()) in _NAMES:
            self.trace_headers.append((lower.decode(), value.decode("latin-1")))
        super().on_header(name, value)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self.trace_headers = []

    def _keep(self, piece: bytes, call: HttpCall) -> None:
        """Nothing, for a head that is not read says nothing of its trace."""


class _TracedTurns(Turns):
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        service: Service,
        exchange: JsonExchange,
        tracer: CallTracer,
    ) -> None:
        super().__init__(loop, service, exchange)
        self._tracer = tracer
        self._monotonic_s = service.clock.monotonic_s

    def decide(self, call: HttpCall) -> None:
        connection = call.connection
        assert isinstance(connection, _TracedConnection), "this door makes no others"
        call.begun = self._tracer.begin(connection.trace_headers)
        super().decide(call)

    def _answers(self, batch: list[tuple[HttpCall, bytes]]) -> list[HttpAnswer]:
        replies = self._replies(batch)
        self._tracer.end(
            (call.begun, payload, reply)
            for (call, payload), reply in zip(batch, replies, strict=True)
        )
        decided_s = self._monotonic_s()
        answers = [self.exchange.decided(reply) for reply in replies]
        self._tracer.rendered([call.begun for call, _ in batch], decided_s)
        return answers


class TracedJsonEndpoint(JsonEndpoint):
    """A JsonEndpoint (see there) that tells a tracer of its calls, as its batcher does."""

    def __init__(self, batcher: CallBatcher, exchange: JsonExchange, service: Service) -> None:
        assert service.tracer is not None, "this is the door of a service that is traced"
        super().__init__(batcher.decide, exchange)
        self._batcher = batcher
        self._tracer = service.tracer
        self._monotonic_s = service.clock.monotonic_s

    async def _decided(self, request: Request, payload: bytes) -> HttpAnswer:
        begun = self._tracer.begin(request.headers.items())
        reply = await self._batcher.decide(payload, begun)
        decided_s = self._monotonic_s()
        answer = self._exchange.decided(reply)
        self._tracer.rendered([begun], decided_s)
        return answer
