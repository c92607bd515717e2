"""HTTP/2 by hand: for what no gRPC client would send, and for callers that read as they like."""

import socket
import struct
from dataclasses import dataclass

from tests.support.ratelimit.grpc_peers import PATIENCE_S
from tollgate.serve.ratelimit.codec.messages import METHOD_PATH

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS, _PING, _WINDOW_UPDATE = 0, 1, 4, 6, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
GOAWAY = 7
KINDS = 10
FRAME_BYTES_MAX = 16_384
_INITIAL_WINDOW_SIZE, _WINDOW_MAX = 4, 2**31 - 1


def _frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    length = len(content).to_bytes(3, "big")
    return length + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


def _header(name: str, value: str) -> bytes:
    """A literal without indexing and without Huffman coding (RFC 7541, 6.2.2)."""
    return b"\x00" + b"".join(bytes([len(text)]) + text.encode() for text in (name, value))


def _headers(address: str, more: dict[str, str]) -> bytes:
    pseudo = {":method": "POST", ":scheme": "http", ":path": METHOD_PATH, ":authority": address}
    return b"".join(_header(*item) for item in (pseudo | more).items())


def send_by_hand(address: str, headers: dict[str, str], body: bytes) -> None:
    """One HTTP/2 request; returns once the server has read it all, or has closed the connection."""
    host, port = address.rsplit(":", 1)
    block = _headers(address, headers)
    with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
        connection.sendall(
            _PREFACE
            + _frame(_SETTINGS, 0, 0)
            + _frame(_HEADERS, _END_HEADERS, 1, block)
            + _frame(_DATA, _END_STREAM, 1, body)
            + _frame(_PING, 0, 0, b"all read")
        )
        with connection.makefile("rb") as stream:
            while len(start := stream.read(9)) == 9:
                kind, flags = start[3], start[4]
                stream.read(int.from_bytes(start[:3], "big"))
                if kind == _PING and flags & _ACK:
                    return


def connect_by_hand(address: str, buffer_bytes: int) -> socket.socket:
    """A connection that takes in no more than about so much while nobody reads."""
    host, port = address.rsplit(":", 1)
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    link.settimeout(PATIENCE_S)
    link.connect((host, int(port)))
    return link


def calls_by_hand(address: str, count: int) -> bytes:
    """So many calls, whose answers may be as large as they like."""
    headers = {"te": "trailers", "content-type": "application/grpc"}
    block, body = _headers(address, headers), b"\0" + (1).to_bytes(4, "big") + b"x"
    calls = b"".join(
        _frame(_HEADERS, _END_HEADERS, stream, block) + _frame(_DATA, _END_STREAM, stream, body)
        for stream in range(1, 2 * count, 2)
    )
    window = struct.pack(">HI", _INITIAL_WINDOW_SIZE, _WINDOW_MAX)
    more = (_WINDOW_MAX - 65_535).to_bytes(4, "big")
    return _PREFACE + _frame(_SETTINGS, 0, 0, window) + _frame(_WINDOW_UPDATE, 0, 0, more) + calls


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as a server has sent it. `is_last`: its stream ends with it."""

    kind: int
    size: int
    is_last: bool


class FrameReader:
    """Reads the frames that come, and asserts that they are frames. `data_bytes`: of all DATA."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self.data_bytes = 0

    def next(self) -> Frame:
        start = self._read(9)
        size, kind, flags = int.from_bytes(start[:3], "big"), start[3], start[4]
        assert size <= FRAME_BYTES_MAX, f"{start!r} begins no frame"
        assert kind < KINDS, f"{start!r} begins no frame"
        self._read(size)
        if kind == _DATA:
            self.data_bytes += size
        is_last = kind in (_DATA, _HEADERS) and bool(flags & _END_STREAM)
        return Frame(kind, size, is_last)

    def _read(self, size: int) -> bytes:
        read = b""
        while len(read) < size:
            piece = self._link.recv(size - len(read))
            assert piece, "the server has closed the connection"
            read += piece
        return read
