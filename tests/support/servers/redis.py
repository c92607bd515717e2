"""Redis servers of the tests' own, each at a free port of the loopback."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from tests.support.waiting import PATIENCE_S, until
from tollgate.serve.node.ports import free_port

STARTS_MAX = 5  # (another process may take the port that was free)


@dataclass
class RedisProcess:
    """A server. Killed and started again, it has the same port, and nothing in it."""

    folder: Path
    words: Sequence[str] = ()
    has_tls: bool = False
    password: str = ""
    port: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def client(self) -> Any:
        """A client that reads bytes, for looking and for planting."""
        options: dict[str, Any] = {"ssl": True, "ssl_cert_reqs": "none"} if self.has_tls else {}
        return redis.Redis(
            port=self.port, password=self.password or None, socket_timeout=PATIENCE_S, **options
        )

    def start(self) -> None:
        if self.port:
            port = self.port
            assert any(self._is_started(port) for _ in range(STARTS_MAX)), f"{port} is taken"
            return
        for _ in range(STARTS_MAX):
            port = free_port()
            if self._is_started(port):
                return
        raise AssertionError("Redis does not start: see its log")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _is_started(self, port: int) -> bool:
        places = ["--port", "0", "--tls-port"] if self.has_tls else ["--port"]
        self._process = subprocess.Popen(
            ["redis-server", *places, str(port), "--bind", "127.0.0.1", "--save", ""]
            + ["--repl-diskless-sync-delay", "0"]
            + ["--dir", str(self.folder), "--logfile", str(self.folder / f"{port}.log")]
            + (["--requirepass", self.password] if self.password else [])
            + list(self.words),
            env=dict(os.environ),
        )
        self.port = port
        if until(self._answers_or_ended, f"Redis answers at {self.address}") == "answers":
            return True
        self.port, self._process = 0, None
        return False

    def _answers_or_ended(self) -> str:
        assert self._process is not None, "it was started"
        if self._process.poll() is not None:
            return "ended"
        try:
            found = self.client.info("server")["process_id"]
        except redis.RedisError:
            return ""
        return "answers" if found == self._process.pid else ""


@contextmanager
def redis_process(*words: str, has_tls: bool = False, password: str = "") -> Iterator[RedisProcess]:
    """One that runs for as long as the block lasts; `words`: more for its command line."""
    with tempfile.TemporaryDirectory(prefix="tg-") as folder:
        server = RedisProcess(Path(folder), words, has_tls, password)
        server.start()
        try:
            yield server
        finally:
            server.kill()
