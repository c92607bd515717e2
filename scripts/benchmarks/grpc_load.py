"""A load generator for one unary gRPC method, with as many different requests as one likes.

h2load repeats a single body, so it cannot show what distinct keys cost. This one writes prepared
HTTP/2 frames to plain sockets and counts the streams that end; it reads nothing of the answers but
frame headers, and so takes a fraction of the processor time that the server takes.
"""

import selectors
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4
FRAME_HEADER = struct.Struct(">HBBBI")  # length (high 16 bits, low 8 bits), type, flags, stream
WINDOW_MAX = 2**31 - 1
READ_BYTES = 256 * 1024
SILENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Load:
    """What came of a run: latencies in seconds, sorted; failed streams are in `errors`."""

    seconds: float
    latencies_s: list[float]
    errors: int

    @property
    def per_second(self) -> float:
        return len(self.latencies_s) / self.seconds

    def quantile_s(self, share: float) -> float:
        """The latency that `share` (0 to 1) of the calls stayed below."""
        return self.latencies_s[min(len(self.latencies_s) - 1, int(len(self.latencies_s) * share))]


def run_load(
    address: tuple[str, int],
    path: str,
    messages: Iterator[bytes],
    *,
    calls: int,
    in_flight: int,
    connections: int,
) -> Load:
    """Send `calls` messages, `in_flight` at a time over `connections`. OSError when the server
    closes a connection or is silent for SILENCE_S."""
    headers = _headers(f"{address[0]}:{address[1]}", path)
    selector = selectors.DefaultSelector()
    opened = [_Connection(address, headers) for _ in range(connections)]
    for connection in opened:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
    latencies_s: list[float] = []
    errors = 0
    begun_s = perf_counter()
    sent = min(calls, in_flight)
    for number in range(sent):
        opened[number % connections].queue(next(messages))
    for connection in opened:
        connection.flush()
    while len(latencies_s) + errors < calls:
        ready = selector.select(SILENCE_S)
        if not ready:
            raise TimeoutError(f"no answer within {SILENCE_S:g} s")
        for key, _ in ready:
            connection = key.data
            ended, failed = connection.read(latencies_s)
            errors += failed
            for _ in range(min(ended + failed, calls - sent)):
                connection.queue(next(messages))
                sent += 1
            connection.flush()
    seconds = perf_counter() - begun_s
    for connection in opened:
        connection.socket.close()
    selector.close()
    return Load(seconds, sorted(latencies_s), errors)


class _Connection:
    def __init__(self, address: tuple[str, int], headers: bytes) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._headers = headers
        self._next_stream = 1
        self._begun_s: dict[int, float] = {}
        self._answered: set[int] = set()
        self._read = b""
        # Windows as large as they get: the answers are small, and never acknowledged one by one.
        settings = struct.pack(">HI", 4, WINDOW_MAX)
        self._out = bytearray(PREFACE + _frame(SETTINGS, 0, 0, settings))
        self._out += _frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW_MAX - 65_535))

    def queue(self, message: bytes) -> None:
        stream = self._next_stream
        self._next_stream += 2
        body = b"\0" + struct.pack(">I", len(message)) + message
        self._out += _frame(HEADERS, END_HEADERS, stream, self._headers)
        self._out += _frame(DATA, END_STREAM, stream, body)
        self._begun_s[stream] = perf_counter()

    def flush(self) -> None:
        if self._out:
            self.socket.sendall(self._out)
            self._out.clear()

    def read(self, latencies_s: list[float]) -> tuple[int, int]:
        """Take what has arrived: how many streams ended well, and how many were reset."""
        arrived = self.socket.recv(READ_BYTES)
        if not arrived:
            raise ConnectionError("the server closed the connection")
        data = self._read + arrived
        now_s = perf_counter()
        position, ended, failed = 0, 0, 0
        while position + 9 <= len(data):
            high, low, kind, flags, stream = FRAME_HEADER.unpack_from(data, position)
            end = position + 9 + (high << 8 | low)
            if end > len(data):
                break
            if kind == DATA:
                self._answered.add(stream)
            elif kind == HEADERS and flags & END_STREAM:
                begun_s = self._begun_s.pop(stream)
                if stream in self._answered:
                    self._answered.remove(stream)
                    latencies_s.append(now_s - begun_s)
                    ended += 1
                else:  # an error status comes without a message
                    failed += 1
            elif kind not in (HEADERS, WINDOW_UPDATE):
                failed += self._control(kind, flags, stream, data[position + 9 : end])
            position = end
        self._read = data[position:]
        return ended, failed

    def _control(self, kind: int, flags: int, stream: int, content: bytes) -> int:
        if kind == SETTINGS and not flags & ACK:
            self._out += _frame(SETTINGS, ACK, 0, b"")
        elif kind == PING and not flags & ACK:
            self._out += _frame(PING, ACK, 0, content)
        elif kind == RST_STREAM:
            del self._begun_s[stream]
            return 1
        elif kind == GOAWAY:
            raise ConnectionError("the server is going away")
        return 0


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    length = len(content)
    return FRAME_HEADER.pack(length >> 8, length & 0xFF, kind, flags, stream) + content


def _headers(authority: str, path: str) -> bytes:
    """The request's header block: HPACK literals that touch no table (RFC 7541, 6.2.2)."""
    fields = (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", authority),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    )
    block = b""
    for name, value in fields:
        for text in (name, value):
            assert len(text) < 127, "a length of one byte is enough here"
        block += b"\0" + bytes((len(name),)) + name.encode()
        block += bytes((len(value),)) + value.encode()
    return block
