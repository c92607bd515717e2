"""The process that Ray's workers are forked from, so that no worker spends seconds on imports.

    raylet --runs--> program --asks--> origin --forks--> worker, which has all modules already

Ray starts a worker with the interpreter that `sys.executable` names. The program that stands in its
place asks the origin for a fork and ends; a worker tells Ray its pid itself. For all else, and when
the origin does not answer, the program is that interpreter.

The origin is forked before Ray starts, so nothing but the imports is shared: no thread, no
connection, and no generator of random ids that was used already, for workers would all go on from
there. Whoever shares the imports is 30 MB instead of 160, and there in 0.1 s instead of 2.
"""

import gc
import json
import logging
import os
import runpy
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from struct import Struct
from typing import NoReturn

from tollgate.actors.kernel.atomic_file import replace_file
from tollgate.serve.node.parenthood import end_with_parent
from tollgate.serve.node.workers import request

LOG = logging.getLogger("tollgate.node")
TITLE = "tollgate-origin"  # (the kernel keeps 15 characters)
WORKER = "default_worker.py"
PENDING_MAX = 128
REQUEST_BYTES_MAX = 1024 * 1024
REQUEST_WITHIN_S = 5.0
STANDARD_FILES = 3
# pid, uid, gid (struct ucred, unix(7)).
_PEER = Struct("iII")


def inherited_environment(pid: int) -> dict[str, str]:
    """The values that Ray's core takes from the environment of a worker when it is imported, for
    processes that fork workers: no job yet, as for a worker that Ray starts ahead of need, and a
    process that no worker outlives, where Ray would name its raylet. `pid`: of that process."""
    return {"RAY_JOB_ID": "ffffffff", "RAY_RAYLET_PID": str(pid)}


def start_origin(folder: Path) -> Path:
    """Forks the origin, which ends with this process. The program that asks it for workers.

    Whatever workers are to share must be imported by now, under `inherited_environment`, and this
    process have a single thread. Raises OSError.
    """
    for name in inherited_environment(0):
        os.environ.pop(name, None)
    address = folder / "origin.sock"
    address.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(address))
        address.chmod(0o600)  # (nobody connects before it listens)
        listener.listen(PENDING_MAX)
        # No collection writes to what is shared, and no text is written twice.
        gc.collect()
        gc.freeze()
        gc.enable()
        sys.stdout.flush()
        sys.stderr.flush()
        if _forked_id() == _forked_id():
            LOG.warning("workers start by themselves, for forks would give the same ids")
            return Path(sys.executable)
        if os.fork() == 0:
            _be_the_origin(listener)
    return _write_program(folder / "python", address)


def _forked_id() -> bytes:
    """The id that a fork of this process draws first."""
    from ray import ObjectID  # imported here: the supervisor, which needs this file, imports no Ray

    output, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(end, ObjectID.from_random().binary())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(end)
    with open(output, "rb") as drawn:
        return drawn.read()


def _write_program(program: Path, address: Path) -> Path:
    python = quote(sys.executable)
    ask = f"{python} -I -S {quote(request.__file__)} {quote(str(address))} {python}"
    lines = f'#!/bin/sh\ncase "$1" in */{WORKER}) exec {ask} "$@" ;; esac\nexec {python} "$@"\n'
    replace_file(program, lines.encode(), mode=0o700)
    return program


@dataclass(frozen=True, slots=True)
class Request:
    """The start of a worker; `files`: its standard input, output and error."""

    words: Sequence[str]
    environment: dict[str, str]
    folder: str
    files: Sequence[int]


def _be_the_origin(listener: socket.socket) -> NoReturn:
    """Forks a worker for each request, until the kernel ends it with its parent."""
    from ray._raylet import setproctitle  # type: ignore[attr-defined]

    end_with_parent(signal.SIGKILL)
    setproctitle(TITLE)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # (the kernel clears away who has ended)
    while True:
        connection, _ = listener.accept()
        asked = None
        try:
            with connection:
                asked = _forked(connection)
        except (OSError, TypeError, ValueError) as error:
            sys.stderr.write(f"a worker was not forked: {error}\n")
        if asked is not None:
            listener.close()
            _be_a_worker(asked)


def _forked(connection: socket.socket) -> Request | None:
    """Answers a request with a fork: in the fork, the request; in the origin, None, and no file of
    the request stays open, whatever becomes of it."""
    connection.settimeout(REQUEST_WITHIN_S)
    _refuse_strangers(connection)
    pid, files = -1, list[int]()
    try:
        part, files, _, _ = socket.recv_fds(connection, REQUEST_BYTES_MAX, STANDARD_FILES)
        parts = [part]
        while part:
            part = connection.recv(REQUEST_BYTES_MAX)
            parts.append(part)
        words, environment, folder = json.loads(b"".join(parts))
        pid = os.fork()
        if pid == 0:
            return Request(words, environment, folder, files)
        connection.sendall(str(pid).encode())
    finally:
        if pid != 0:
            for file in files:
                os.close(file)
    return None


def _refuse_strangers(connection: socket.socket) -> None:
    """Raises PermissionError for a peer of another user than this process's."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    _, user, _ = _PEER.unpack(credentials)
    if user != os.getuid():
        raise PermissionError(f"uid {user} asked for it")


def _be_a_worker(asked: Request) -> NoReturn:
    """Runs what the interpreter would have run."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setpgid(0, 0)
    for number, file in enumerate(asked.files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(asked.environment)
    os.chdir(asked.folder)
    sys.argv = list(asked.words)
    sys.path[0] = str(Path(asked.words[0]).parent)
    runpy.run_path(asked.words[0], run_name="__main__")
    sys.exit()
