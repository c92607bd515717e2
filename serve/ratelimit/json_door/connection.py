"""One connection to the JSON door: HTTP/1.1 in (RFC 9112), answers out in the order of the calls.

    head --complete--> body --complete--> waiting --answered--> written, and the next head

The parser is llhttp's; what it leaves open is bounded here: bytes of a head and of a body, calls
that wait for an answer, and the time that a caller may take for a request, or be silent. A
connection parses a slice of what it brought in a turn of the loop, so that one which brings much
takes turns with all the others.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol, cast
from urllib.parse import unquote_to_bytes

import httptools

from tollgate.serve.ratelimit.fronts.front import BegunCall
from tollgate.serve.ratelimit.json_door.exchange import (
    BAD_REQUEST,
    DECISION_PATH,
    HttpAnswer,
    JsonExchange,
)
from tollgate.serve.ratelimit.json_door.known_calls import KnownCalls

# Of a head; and of what is neither head nor body: the ends of chunks, and the fields behind them.
HEAD_BYTES_MAX = 32 * 1024
SLICE_BYTES = 4 * 1024
# With so many calls waiting for answers, or bytes of answers that it does not take, a connection is
# not parsed, and what it did not parse yet keeps it from being read.
WAITING_MAX = 64
UNREAD_BYTES_MAX = 64 * 1024
REQUEST_WITHIN_S = 10.0
SILENCE_MAX_S = 60.0
LINGER_S = 2.0

_TEXT = (("Content-Type", "text/plain; charset=utf-8"),)
HEAD_TOO_LARGE = HttpAnswer(431, b"Request Header Fields Too Large\n", _TEXT)
TOO_LATE = HttpAnswer(408, b"Request Timeout\n", _TEXT)
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class Stage(Enum):
    """The part of a request that a connection is in."""

    NONE = "none"
    HEAD = "head"
    BODY = "body"


class HttpCall:
    """One call, in its place among those of its connection. `body`: of a call for a decision.
    `begun`: as it is traced, where calls are traced."""

    __slots__ = ("answer", "begun", "body", "connection", "is_head", "is_last")
    begun: BegunCall | None

    def __init__(self, connection: "HttpConnection", *, is_head: bool, is_last: bool) -> None:
        self.connection = connection
        self.is_head = is_head
        self.is_last = is_last
        self.body = b""
        self.answer: HttpAnswer | None = None

    def answered(self, answer: HttpAnswer) -> None:
        """Gives the call its answer; it is written when those before it have theirs."""
        self.answer = answer
        self.connection.write_answers()


class Door(Protocol):
    """Where the calls of all connections come together. It lives in one event loop."""

    exchange: JsonExchange
    known: KnownCalls
    is_draining: bool

    def add(self, connection: "HttpConnection", peer: str) -> bool:
        """Takes a connection on, from this address; False when there are too many."""

    def remove(self, connection: "HttpConnection") -> None:
        """Forgets a connection that is closed."""

    def takes_body(self, connection: "HttpConnection", added_bytes: int) -> bool:
        """Adds to the bodies under way, or takes from them; False when there are too many."""

    def soon(self, step: Callable[[], None]) -> None:
        """Has it done in the next turn of the loop."""

    def decide(self, call: HttpCall) -> None:
        """Has the call decided, together with whatever else comes at this moment."""

    def now_s(self) -> float:
        """The loop's time, in seconds."""

    def date(self) -> bytes:
        """The Date header, with its line's end (RFC 9110, 6.6.1)."""


class HttpConnection(asyncio.Protocol):
    """Reads calls, and writes their answers."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[HttpCall] = deque()
        self._method = self._url = self._framing = b""
        self._body = bytearray()
        self._unparsed = b""
        self._idle_bytes = 0  # since a head was complete, or a piece of a body came
        self._of_piece: list[HttpCall] = []  # the calls that a piece has completed
        self._stage = Stage.NONE
        self._has_host = False
        self._expects_continue = False
        self._is_unread = False
        self._is_parsing = False
        self._is_half_closed = False
        self._is_ended = False  # no further call is taken
        self._deadline_s = 0.0

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = self._transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=UNREAD_BYTES_MAX)
        self._deadline_s = self._door.now_s() + REQUEST_WITHIN_S
        peer = transport.get_extra_info("peername") or ("",)
        if not self._door.add(self, peer[0]):
            self._is_ended = True
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._is_ended = True
        self._forget_body()
        self._door.remove(self)

    def pause_writing(self) -> None:
        self._is_unread = True
        self._go_on()

    def resume_writing(self) -> None:
        self._is_unread = False
        self._go_on()

    def data_received(self, data: bytes) -> None:
        if self._is_ended:
            return
        if self._stage is Stage.NONE and not self._unparsed:
            body = self._door.known.body(data)
            if body is not None:
                self._take(body)
                return
        self._unparsed += data
        if not self._is_parsing:
            self._parse()

    def eof_received(self) -> bool:
        """Keeps the way back open while something is to be answered."""
        self._is_half_closed = True
        return bool(self._waiting or self._unparsed) and not self._is_ended

    def _take(self, body: bytes) -> None:
        """Takes a call whose bytes are known."""
        call = HttpCall(self, is_head=False, is_last=False)
        call.body = body
        self._waiting.append(call)
        self._door.decide(call)
        if self._is_unread or len(self._waiting) >= WAITING_MAX:
            self._go_on()

    # Parsing, slice by slice.

    def _parse(self) -> None:
        """Parses a slice; the rest has its turn later."""
        self._is_parsing = False
        piece, self._unparsed = self._unparsed[:SLICE_BYTES], self._unparsed[SLICE_BYTES:]
        self._idle_bytes += len(piece)
        is_between_calls = self._stage is Stage.NONE
        self._of_piece.clear()
        try:
            self._feed(piece)
        except httptools.HttpParserError:
            self._end_with(BAD_REQUEST)
        if self._stage is not Stage.NONE and self._idle_bytes > HEAD_BYTES_MAX:
            self._end_with(HEAD_TOO_LARGE)
        if self._is_ended:
            self._unparsed = b""
        elif is_between_calls and self._stage is Stage.NONE and len(self._of_piece) == 1:
            self._keep(piece, self._of_piece[0])
        self._go_on()

    def _keep(self, piece: bytes, call: HttpCall) -> None:
        if call.body and not (call.is_head or self._expects_continue):
            self._door.known.keep(piece, call.body)

    def _go_on(self) -> None:
        """Parses what is left in the next turn, or reads more, unless answers are behind."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        may_parse = not self._is_unread and len(self._waiting) < WAITING_MAX
        if self._unparsed:
            transport.pause_reading()
            if may_parse and not self._is_parsing:
                self._is_parsing = True
                self._door.soon(self._parse)
        elif self._is_half_closed and not self._waiting:
            self.close()
        elif may_parse or self._is_ended:
            transport.resume_reading()
        else:
            transport.pause_reading()

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as wish:
                # Another protocol is only wished for (RFC 9110, 7.8), but the parser stops there:
                # the request is read once more, without the wish.
                data = data[wish.args[0] :]
            if self._is_ended:
                return
            version = self._parser.get_http_version().encode()
            head = b"%b %b HTTP/%b\r\n%b\r\n" % (self._method, self._url, version, self._framing)
            self._parser = httptools.HttpRequestParser(self)
            self._parser.feed_data(head)

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._url = self._framing = b""
        self._has_host = self._expects_continue = False
        self._stage = Stage.HEAD
        if not self._waiting:
            self._deadline_s = self._door.now_s() + REQUEST_WITHIN_S

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._stage is not Stage.HEAD:
            return  # (it is a trailer, and none means anything here)
        name = name.lower()
        if name == b"expect":
            self._expects_continue = value.lower() == b"100-continue"
        elif name == b"host":
            self._has_host = True
            self._framing += b"Host: %b\r\n" % value
        elif name in (b"content-length", b"transfer-encoding"):
            self._framing += b"%b: %b\r\n" % (name, value)
        elif name == b"connection" and b"close" in value.lower():
            self._framing += b"Connection: close\r\n"

    def on_headers_complete(self) -> None:
        self._stage = Stage.BODY
        self._idle_bytes = 0
        if not self._has_host and self._parser.get_http_version() == "1.1":
            self._end_with(BAD_REQUEST)  # (RFC 9112, 3.2)
        elif self._expects_continue and not self._waiting and self._transport is not None:
            self._transport.write(_CONTINUE)

    def on_body(self, body: bytes) -> None:
        if self._is_ended:
            return
        exchange = self._door.exchange
        if len(self._body) + len(body) > exchange.body_bytes_max:
            self._end_with(exchange.body_too_large())
        elif not self._door.takes_body(self, len(body)):
            self._end_with(exchange.too_busy())
        else:
            self._body += body
            self._idle_bytes = 0

    def on_message_complete(self) -> None:
        self._method = self._parser.get_method()
        if self._is_ended or (self._parser.should_upgrade() and self._method != b"CONNECT"):
            return
        self._stage = Stage.NONE
        self._idle_bytes = 0
        self._is_ended = not self._parser.should_keep_alive() or self._method == b"CONNECT"
        call = HttpCall(self, is_head=self._method == b"HEAD", is_last=self._is_ended)
        self._waiting.append(call)
        self._of_piece.append(call)
        path = _path(self._url)
        if path == DECISION_PATH:
            call.body = bytes(self._body)
            self._forget_body()
            self._door.decide(call)
        else:
            self._forget_body()
            call.answered(self._door.exchange.undecided(path))

    # What the door calls.

    @property
    def is_idle(self) -> bool:
        """True when no call is under way."""
        return not self._waiting and not self._unparsed and self._stage is Stage.NONE

    def write_answers(self) -> None:
        """Writes the answers that are there, as far as none is missing before them."""
        written = bytearray()
        is_last = False
        while self._waiting and (answer := self._waiting[0].answer) is not None:
            call = self._waiting.popleft()
            is_last = is_last or call.is_last or (self._door.is_draining and not self._waiting)
            written += _message(answer, self._door.date(), is_head=call.is_head, is_last=is_last)
        if self._transport is None or not written:
            return
        self._deadline_s = self._door.now_s() + SILENCE_MAX_S
        self._transport.write(bytes(written))
        if self._is_ended and not self._waiting and self._stage is not Stage.NONE:
            self._linger()
        elif is_last or (self._is_ended and not self._waiting):
            self.close()
        else:
            self._go_on()

    def close(self) -> None:
        """Closes the connection, with whatever is written and not yet sent."""
        self._is_ended = True
        if self._transport is not None:
            self._transport.close()

    def look(self, now_s: float) -> None:
        """Ends a connection whose caller takes too long, or says nothing."""
        if now_s < self._deadline_s or self._waiting:
            return
        if self.is_idle or self._transport is None or self._is_ended:
            if self._transport is not None:
                self._transport.abort()
            return
        self._end_with(TOO_LATE)

    # Its own.

    def _forget_body(self) -> None:
        if self._body:
            self._door.takes_body(self, -len(self._body))
            self._body.clear()

    def _end_with(self, answer: HttpAnswer) -> None:
        if self._is_ended:
            return
        self._is_ended = True
        self._forget_body()
        last = HttpCall(self, is_head=False, is_last=True)
        self._waiting.append(last)
        last.answered(answer)

    def _linger(self) -> None:
        """Ends what we say, and drops what still comes: closed at once, the answer could be lost
        on its way (RFC 9112, 9.6)."""
        assert self._transport is not None, "there is somebody to hear it"
        self._transport.write_eof()
        self._deadline_s = self._door.now_s() + LINGER_S


def _path(url: bytes) -> str:
    """The path of a request's target, which may be a whole URL (RFC 9112, 3.2.2)."""
    path = url.partition(b"?")[0]
    if not path.startswith(b"/"):
        with suppress(httptools.HttpParserInvalidURLError):
            path = httptools.parse_url(url).path or b"/"
    return unquote_to_bytes(path).decode("latin-1") if b"%" in path else path.decode("latin-1")


def _message(answer: HttpAnswer, date: bytes, *, is_head: bool, is_last: bool) -> bytes:
    """The answer as HTTP/1.1. HEAD gets the head that GET would (RFC 9110, 9.3.2)."""
    length = b"Content-Length: %d\r\n\r\n" % len(answer.body)
    head = _start(answer.status, answer.headers, is_last) + date + length
    return head if is_head else head + answer.body


@lru_cache(maxsize=64)
def _start(status: int, headers: tuple[tuple[str, str], ...], is_last: bool) -> bytes:
    fields = headers + ((("Connection", "close"),) if is_last else ())
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"HTTP/1.1 {status} {_REASONS[status]}\r\n{lines}".encode()
