"""No command tells a proxy of the environment what it says to its own Tollgate."""

import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from tollgate.serve.cli import main
from tollgate.serve.commands import status
from tollgate.serve.node.run_record import RunRecord


class Proxy:
    """Listens, and answers 200 to whatever it is asked."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        heard = self.heard

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                heard.append(f"{self.path} {self.headers.get('Authorization')}")
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy that the environment names."""
    proxy = Proxy()
    thread = Thread(target=proxy.server.serve_forever)
    thread.start()
    # urllib remembers what the environment has said first.
    monkeypatch.setattr(urllib.request, "_opener", None)
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", proxy.url)
    yield proxy
    proxy.server.shutdown()
    thread.join()
    proxy.server.server_close()


@pytest.fixture
def closed_port() -> int:
    """A port on which nobody listens."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        return server.server_port


def test_the_proxy_hears_what_is_said_through_it(proxy: Proxy) -> None:
    with urllib.request.urlopen("http://tollgate.invalid/seen", timeout=60.0):
        pass
    assert proxy.heard == ["http://tollgate.invalid/seen None"]


def test_the_key_of_the_debug_port_goes_to_no_proxy(proxy: Proxy, closed_port: int) -> None:
    environment = {"DEBUG_PORT": str(closed_port), "DEBUG_TRACING_KEY": "a secret"}
    result = CliRunner().invoke(main, ["counters", "list"], env=environment)
    assert (result.exit_code, "nobody answers at" in result.stderr) == (1, True)
    assert proxy.heard == []


def test_a_proxy_does_not_say_how_it_is(
    proxy: Proxy, closed_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = {"HTTP": f"127.0.0.1:{closed_port}"}
    record = RunRecord(0, 0.0, addresses, is_ready=True)
    monkeypatch.setattr(status, "running", lambda data: record)
    result = CliRunner().invoke(main, ["status"], env={"TOLLGATE_DATA": str(tmp_path)})
    assert "Tollgate is not answering" in result.stdout
    assert proxy.heard == []
