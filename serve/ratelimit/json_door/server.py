"""The JSON door by itself: it listens in a thread of its own, and decides there, in batches.

What all connections bring in one turn of the loop is decided together, as gRPC's calls are, in a
thread that decides one batch after another: while counters keep one waiting, the next one gathers,
and the door goes on reading, answering for its health, and ending what takes too long.
"""

import asyncio
import socket
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from threading import Thread

import uvloop

from tollgate.serve.net.public_addresses import network_of
from tollgate.serve.net.shared_ports import (
    HANDSHAKES_WITHIN_S,
    callers_waiting,
    turn_callers_away,
)
from tollgate.serve.ratelimit.fronts.call_queue import QUEUE_MAX
from tollgate.serve.ratelimit.fronts.front import (
    BATCH_MAX,
    CALLS_SHED,
    ListenAddress,
    Service,
    WireReply,
    host_port,
    unfailing,
)
from tollgate.serve.ratelimit.json_door.connection import HttpCall, HttpConnection
from tollgate.serve.ratelimit.json_door.exchange import (
    KEPT_BODY_BYTES_MAX,
    HttpAnswer,
    JsonExchange,
)
from tollgate.serve.ratelimit.json_door.known_calls import KnownCalls

# As many as one HAProxy has for all, and for one caller (`serve/node/haproxy.py`).
CONNECTIONS_MAX = 4_096
CONNECTIONS_OF_ONE_MAX = 1_024
BODY_BYTES_UNDER_WAY_MAX = 64 * 1024 * 1024
BODY_BYTES_OF_ONE_MAX = 16 * 1024 * 1024
LARGE_BODIES_MAX = 64
BACKLOG = 1_024
LOOK_EVERY_S = 1.0
DRAIN_LOOK_S = 0.025
# Whoever asks for health once a second has heard by then, as at the gRPC door.
NOTICE_S = 1.0
START_WITHIN_S = 10.0


class JsonDoor:
    """`start` listens, once; `drain` ends it. From any thread but its own."""

    def __init__(self, listen: ListenAddress, service: Service, exchange: JsonExchange) -> None:
        self._listen = listen
        self._loop = uvloop.new_event_loop()
        self._turns = self._new_turns(service, exchange)
        self._thread = Thread(target=self._loop.run_forever, name="json-door", daemon=True)
        self._server: asyncio.AbstractServer | None = None
        self._listening: socket.socket | None = None
        self.address = ""

    def start(self) -> None:
        """Binds and serves. OSError when the address cannot be bound."""
        self._thread.start()
        step = asyncio.run_coroutine_threadsafe(self._open(), self._loop)
        try:
            step.result(START_WITHIN_S)
        except OSError:
            self._end()
            raise

    @property
    def has_ended_threads(self) -> bool:
        """True when its thread has ended though it serves."""
        return not self._thread.is_alive()

    def drain(self, grace_s: float, *, hands_over: bool = False) -> None:
        """Takes no new connection, answers what is under way within the grace, then closes.

        `hands_over`: others go on at the shared port, and get those who come meanwhile."""
        if self.has_ended_threads:
            return
        closing = self._close(grace_s, hands_over=hands_over)
        step = asyncio.run_coroutine_threadsafe(closing, self._loop)
        step.result()
        self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self) -> None:
        listen = self._listen
        listening = self._listening = _listening(listen)
        self._server = await self._loop.create_server(
            self._new_connection, sock=listening, backlog=BACKLOG
        )
        self.address = host_port(listen.host or "0.0.0.0", listening.getsockname()[1])
        self._turns.look()

    def _new_turns(self, service: Service, exchange: JsonExchange) -> "Turns":
        return Turns(self._loop, service, exchange)

    def _new_connection(self) -> HttpConnection:
        return HttpConnection(self._turns)

    async def _close(self, grace_s: float, *, hands_over: bool) -> None:
        assert self._server is not None, "only a door that listens is drained"
        give_up_s = self._loop.time() + grace_s
        self._turns.is_draining = True
        await asyncio.sleep(min(grace_s, NOTICE_S))
        if hands_over:
            await self._leave(give_up_s)
        self._server.close()
        await self._turns.drain(give_up_s - self._loop.time())
        self._turns.end()

    async def _leave(self, give_up_s: float) -> None:
        """Has the kernel give new callers to others, and accepts those that came before."""
        assert self._listening is not None, "only a door that listens is drained"
        turn_callers_away(self._listening)
        await asyncio.sleep(HANDSHAKES_WITHIN_S)
        while callers_waiting(self._listening) and self._loop.time() < give_up_s:
            await asyncio.sleep(DRAIN_LOOK_S)


class Turns:
    """The Door of the connections (see there)."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, service: Service, exchange: JsonExchange
    ) -> None:
        self.exchange = exchange
        self.known = KnownCalls()
        self.is_draining = False
        self.now_s = loop.time
        self._loop = loop
        self._decide_batch = unfailing(service)
        self._count = service.count
        self._connections: dict[HttpConnection, str] = {}
        self._of_network: Counter[str] = Counter()
        self._body_bytes: Counter[str] = Counter()
        self._body_bytes_of_all = 0
        self._calls: deque[tuple[HttpCall, bytes]] = deque()
        self._is_deciding = False
        self._deciders = ThreadPoolExecutor(1, "json-decisions")
        self._readers = ThreadPoolExecutor(1, "json-body")
        self._large_bodies = 0
        self._date = b""
        self._date_until_s = 0.0

    # As a Door.

    def add(self, connection: HttpConnection, peer: str) -> bool:
        network = network_of(peer)
        if (
            len(self._connections) >= CONNECTIONS_MAX
            or self._of_network[network] >= CONNECTIONS_OF_ONE_MAX
        ):
            return False
        self._connections[connection] = network
        self._of_network[network] += 1
        return True

    def remove(self, connection: HttpConnection) -> None:
        network = self._connections.pop(connection, None)
        if network is not None:
            self._of_network[network] -= 1
            if not self._of_network[network]:
                del self._of_network[network]

    def takes_body(self, connection: HttpConnection, added_bytes: int) -> bool:
        network = self._connections.get(connection, "")
        of_one = self._body_bytes[network] + added_bytes
        of_all = self._body_bytes_of_all + added_bytes
        if added_bytes > 0 and (
            of_one > BODY_BYTES_OF_ONE_MAX or of_all > BODY_BYTES_UNDER_WAY_MAX
        ):
            return False
        self._body_bytes_of_all = of_all
        self._body_bytes[network] = of_one
        if not of_one:
            del self._body_bytes[network]
        return True

    def decide(self, call: HttpCall) -> None:
        if len(call.body) <= KEPT_BODY_BYTES_MAX:
            self._decide(call, self.exchange.payload(call.body))
        elif self._large_bodies < LARGE_BODIES_MAX:
            self._large_bodies += 1
            read = self._loop.run_in_executor(self._readers, self.exchange.payload, call.body)
            read.add_done_callback(lambda read: self._has_read(call, read))
        else:
            call.answered(self.exchange.too_busy())

    def soon(self, step: Callable[[], None]) -> None:
        self._loop.call_soon(step)

    def date(self) -> bytes:
        now_s = self._loop.time()
        if now_s >= self._date_until_s:
            self._date = f"Date: {formatdate(usegmt=True)}\r\n".encode()
            self._date_until_s = now_s + 1.0
        return self._date

    # The door's own.

    def look(self) -> None:
        """Ends what takes too long, every LOOK_EVERY_S."""
        now_s = self._loop.time()
        for connection in list(self._connections):
            connection.look(now_s)
        self._loop.call_later(LOOK_EVERY_S, self.look)

    async def drain(self, grace_s: float) -> None:
        """Closes connections when they have their answers, until none is left or time is up."""
        give_up_s = self._loop.time() + grace_s
        while self._connections and self._loop.time() < give_up_s:
            for connection in list(self._connections):
                if connection.is_idle:
                    connection.close()
            await asyncio.sleep(DRAIN_LOOK_S)

    def end(self) -> None:
        for connection in list(self._connections):
            connection.close()
        for threads in (self._readers, self._deciders):
            threads.shutdown(wait=False, cancel_futures=True)

    def _has_read(self, call: HttpCall, read: "asyncio.Future[bytes | HttpAnswer]") -> None:
        self._large_bodies -= 1
        if not read.cancelled():
            self._decide(call, read.result())

    def _decide(self, call: HttpCall, payload: bytes | HttpAnswer) -> None:
        if isinstance(payload, HttpAnswer):
            call.answered(payload)
            return
        self._calls.append((call, payload))
        if len(self._calls) > QUEUE_MAX:
            self._calls.popleft()[0].answered(self.exchange.too_busy())
            self._count(CALLS_SHED, 1)
        if not self._is_deciding:
            self._is_deciding = True
            # Soon, not now: what else this turn of the loop brings comes along.
            self._loop.call_soon(self._decide_next)

    def _decide_next(self) -> None:
        if not self._calls:
            self._is_deciding = False
            return
        batch = [self._calls.popleft() for _ in range(min(BATCH_MAX, len(self._calls)))]
        deciding = self._loop.run_in_executor(self._deciders, self._answers, batch)
        deciding.add_done_callback(lambda answers: self._tell(batch, answers))

    def _answers(self, batch: list[tuple[HttpCall, bytes]]) -> list[HttpAnswer]:
        answers: list[HttpAnswer] = []
        last: WireReply = b""
        for reply in self._replies(batch):
            # Equal replies that stand beside each other are one object (see the decider).
            answers.append(answers[-1] if reply is last else self.exchange.decided(reply))
            last = reply
        return answers

    def _replies(self, batch: list[tuple[HttpCall, bytes]]) -> list[WireReply]:
        return self._decide_batch([payload for _, payload in batch])

    def _tell(
        self, batch: list[tuple[HttpCall, bytes]], answers: "asyncio.Future[list[HttpAnswer]]"
    ) -> None:
        if not answers.cancelled():
            for (call, _), answer in zip(batch, answers.result(), strict=True):
                call.answered(answer)
        self._decide_next()


def _listening(listen: ListenAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    try:
        return socket.create_server(
            (listen.host, listen.port),
            family=family,
            backlog=BACKLOG,
            reuse_port=listen.is_port_shared,
        )
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]
        where = host_port(listen.host or "0.0.0.0", listen.port)
        raise OSError(error.errno, f"the JSON door cannot listen on {where}: {reason}") from None
