"""A file server on the loopback that answers as it is told, and remembers who asked."""

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

CONTENT = b"a tile"
# Decides what is answered to a request: a status, and headers.
Gate = Callable[["Seen"], tuple[int, dict[str, str]]]


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


@dataclass
class FileServer:
    """Answers as its gate says, and remembers what it saw."""

    url: str
    gate: Gate
    seen: list[Seen] = field(default_factory=list)


def chunks(stream: BinaryIO) -> Iterator[bytes]:
    """The chunks of a body that does not say how long it is."""
    while size := int(stream.readline(), 16):
        yield stream.read(size)
        stream.readline()
    stream.readline()


@contextmanager
def file_server(gate: Gate, host: str = "127.0.0.1") -> Iterator[FileServer]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            url = urlsplit(self.path)
            is_chunked = self.headers.get("transfer-encoding") == "chunked"
            length = int(self.headers.get("content-length") or 0)
            body = b"".join(chunks(self.rfile)) if is_chunked else self.rfile.read(length)
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen = Seen(self.command, url.path, parse_qs(url.query), headers, body)
            files.seen.append(seen)
            status, more = files.gate(seen)
            content = more.pop("body", CONTENT.decode()).encode()
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer((host, 0), Handler)
    files = FileServer(f"http://{host}:{server.server_port}", gate)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield files
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
