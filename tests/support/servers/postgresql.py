"""A PostgreSQL server of the tests' own: in a temporary folder, on a unix socket, with fsync on."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Where Debian keeps what is not meant to be typed.
DEBIAN_PROGRAMS = Path("/usr/lib/postgresql")
# Its servers refuse to run as root; this user comes with the package.
UNPRIVILEGED = "postgres"


def programs() -> Path:
    """The folder of initdb and pg_ctl: of the newest version that is installed."""
    found = sorted(DEBIAN_PROGRAMS.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    assert found, "no PostgreSQL server: apt-get install postgresql, or run scripts/test as root"
    return found[-1].parent


class PostgresqlServer:
    """A server in a folder. `url`: of its database `postgres`."""

    def __init__(self, folder: Path, user: str | None) -> None:
        self.url = f"postgresql://tollgate@/postgres?host={folder}"
        self._user = user
        self._pg_ctl = [programs() / "pg_ctl", "-D", folder / "data", "-w"]
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=on"
        self._start = ["-l", folder / "log", "-o", options, "start"]

    def start(self) -> None:
        """Returns when it answers."""
        _run([*self._pg_ctl, *self._start], self._user)

    def stop(self) -> None:
        """At once, as when its machine is switched off."""
        _run([*self._pg_ctl, "-m", "immediate", "stop"], self._user)


@contextmanager
def stoppable_postgresql() -> Iterator[PostgresqlServer]:
    """A running server that a test may stop, and starts again before the context ends."""
    user = UNPRIVILEGED if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="tg-pg-") as name:
        folder = Path(name)
        if user is not None:
            _run(["chown", user, folder], None)
        initdb = [programs() / "initdb", "-D", folder / "data", "-U", "tollgate", "-A", "trust"]
        _run([*initdb, "-E", "UTF8", "--locale", "C.UTF-8"], user)
        server = PostgresqlServer(folder, user)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def postgresql_server() -> Iterator[str]:
    """The url of a running server's database `postgres`; the server ends with the context."""
    with stoppable_postgresql() as server:
        yield server.url


def _run(command: list[str | Path], user: str | None) -> None:
    done = subprocess.run(
        command,
        user=user,
        cwd="/",
        # (a server that is started keeps its output open)
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE if command[-1] != "start" else subprocess.DEVNULL,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command} failed: {done.stderr}"
