"""`tollgate status` against services that are well, and that are not."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner

import tollgate.serve.commands.status as module
from tollgate.serve.node.run_record import RunRecord

PATHS = ("/healthcheck", "/payments/healthcheck", "/catalog-auth/healthcheck")
WELL = dict.fromkeys(PATHS, (200, "OK"))


@contextmanager
def services(answers: dict[str, tuple[int, str]]) -> Iterator[int]:
    """A door with these answers by path; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, text = answers[self.path]
            self.send_response(code)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def told(
    monkeypatch: pytest.MonkeyPatch, data: Path, port: int, *arguments: str
) -> tuple[int, str]:
    """Exit code and output of `tollgate status` for a run whose door is at this port."""
    record = RunRecord(os.getpid(), 0.0, {"HTTP": f"127.0.0.1:{port}"}, is_ready=True)
    monkeypatch.setattr(module, "running", lambda _: record)
    environment = {"TOLLGATE_DATA": str(data)}
    ended = CliRunner().invoke(module.status, list(arguments), env=environment)
    return ended.exit_code, ended.output


def test_each_service_has_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with services(WELL) as port:
        code, said = told(monkeypatch, tmp_path, port)
    lines = said.splitlines()
    assert (code, lines[0].partition(" (")[0]) == (0, "Tollgate is healthy")
    assert [line.split("  ", 2)[1:] for line in lines[2:5]] == [
        ["rate limit", "  healthy"],
        ["payments", "    healthy"],
        ["catalog auth", "healthy"],
    ]


@pytest.mark.parametrize("service", ["rate limit", "payments", "catalog auth"])
def test_one_that_is_not_well_is_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, service: str
) -> None:
    path = dict(zip(("rate limit", "payments", "catalog auth"), WELL, strict=True))[service]
    with services({**WELL, path: (503, "something is away\nmore\n")}) as port:
        code, said = told(monkeypatch, tmp_path, port)
        _, document = told(monkeypatch, tmp_path, port, "--json")
    assert (code, said.count("healthy")) == (1, 3)  # (one of them is of "unhealthy")
    assert f"  {service:<14}something is away\n" in said
    found: dict[str, Any] = json.loads(document)
    assert found["problems"] == [f"{service}: something is away"]
    assert found["services"][service] == "something is away"
    assert sorted(found["services"].values()) == ["healthy", "healthy", "something is away"]


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with services(WELL) as port:
        pass
    code, said = told(monkeypatch, tmp_path, port)
    assert (code, said.partition(" (")[0]) == (1, "Tollgate is not answering")
