"""A gateway of a card network over HTTP, as a bank would build it, with the faults that one has.

`python -m tests.support.servers.card_gateway PORT SECRET` runs it as a process of its own.
"""

import json
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.payments.card_gateway import CardGateway
from tollgate.serve.payments.webhooks.signature import is_signed

SECRET = "a-secret-of-the-tests-of-32-characters"


class Fault(Enum):
    """What happens to the next call. CUT: the connection, without an answer."""

    ERROR_BEFORE = "500, and nothing done"
    ERROR_AFTER = "500, and done"
    CUT_BEFORE = "cut before acting"
    CUT_AFTER = "cut after acting"
    NEVER = "held without acting, until the server stops"
    LATE = "done, and the answer held until the server stops"
    GARBAGE = "done, and something else answered"
    LONG = "done, and answered at length"
    UNKNOWN = "the network itself does not know"


_ACTS_FIRST = {Fault.ERROR_AFTER, Fault.CUT_AFTER, Fault.LATE, Fault.GARBAGE, Fault.LONG}


class GatewayServer(ThreadingHTTPServer):
    """`faults`: of the next calls, in turn; then none. `unsigned`: calls that were not signed."""

    daemon_threads = True

    def __init__(self, port: int, gateway: CardGateway, secret: str = SECRET) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.gateway = gateway
        self.secret = secret
        self.faults: deque[Fault] = deque()
        self.unsigned = 0
        self.bodies: list[bytes] = []
        self.released = threading.Event()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: GatewayServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        return

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        header = self.headers.get("Tollgate-Signature", "")
        with self.server.lock:
            self.server.bodies.append(body)
            if not is_signed(header, body, self.server.secret, int(time.time())):
                self.server.unsigned += 1
                self._answer(401, b"")
                return
            fault = self.server.faults.popleft() if self.server.faults else None
            what, operation = self.path.rpartition("/")[2], json.loads(body)["operation"]
            told = {}
            if fault is None or fault in _ACTS_FIRST:
                told = self.server.gateway.answer(what, operation)
        self._end(fault, json.dumps(told).encode())

    def _end(self, fault: Fault | None, told: bytes) -> None:
        match fault:
            case None:
                self._answer(200, told)
            case Fault.ERROR_BEFORE | Fault.ERROR_AFTER:
                self._answer(500, b"")
            case Fault.GARBAGE:
                self._answer(200, b'{"outcome":"splendid"}')
            case Fault.LONG:
                self._answer(200, told[:-1] + b" " * 20_000 + b"}")
            case Fault.UNKNOWN:
                self._answer(200, b'{"outcome":"unknown"}')
            case Fault.NEVER | Fault.LATE:
                self.server.released.wait(60)
                self.close_connection = True
            case Fault.CUT_BEFORE | Fault.CUT_AFTER:
                self.close_connection = True
                self.connection.close()

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def running_gateway(gateway: CardGateway | None = None) -> Iterator[GatewayServer]:
    """In a thread, on a port of its own."""
    server = GatewayServer(0, gateway or CardGateway())
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    GatewayServer(int(sys.argv[1]), CardGateway(), sys.argv[2]).serve_forever()
