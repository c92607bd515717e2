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


@contextmanager
def postgresql_server() -> Iterator[str]:
    """The url of a running server's database `postgres`; the server ends with the context."""
    user = UNPRIVILEGED if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="tg-pg-") as name:
        folder = Path(name)
        if user is not None:
            _run(["chown", user, folder], None)
        data, log = folder / "data", folder / "log"
        initdb = [programs() / "initdb", "-D", data, "-U", "tollgate", "-A", "trust", "-E", "UTF8"]
        _run([*initdb, "--locale", "C.UTF-8"], user)
        pg_ctl = [programs() / "pg_ctl", "-D", data, "-w"]
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=on"
        _run([*pg_ctl, "-l", log, "-o", options, "start"], user)
        try:
            yield f"postgresql://tollgate@/postgres?host={folder}"
        finally:
            _run([*pg_ctl, "-m", "immediate", "stop"], user)


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
