"""The origin of workers with real processes: who is forked, with what, and what if it is gone."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.support.waiting import until

# Has a module that workers need not import again, and says where the program is.
NODE = """\
import os, sys
from pathlib import Path
import tollgate.serve.node.workers.collection_pause
import tollgate.serve.node.workers.class_ids
from ray import ObjectID, serve
from tollgate.serve.node.workers.origin import inherited_environment, start_origin
os.environ.update(inherited_environment(1))
sys.imported_long_ago = True
if "used" in sys.argv:
    ObjectID.from_random()
print(start_origin(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""
# What a worker finds, one object a line; it stays until its input ends.
WORKER = """\
import gc, json, os, signal, subprocess, sys
ray = sys.modules.get("ray")
print(json.dumps({
    "pid": os.getpid(),
    "parent": os.getppid(),
    "group": os.getpgid(0),
    "words": sys.argv,
    "path": sys.path[0],
    "folder": os.getcwd(),
    "environment": dict(os.environ),
    "is_forked": hasattr(sys, "imported_long_ago"),
    "main": sys.modules["__main__"].__dict__["__name__"],
    "drawn": ray.ObjectID.from_random().hex() if ray else "",
    "child": subprocess.run(["true"]).returncode,
    "frees": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
    "collects": gc.isenabled(),
}), flush=True)
sys.stdin.read()
sys.exit(7)
"""


@dataclass(frozen=True, slots=True)
class Node:
    """A process with an origin: `program` asks for workers."""

    process: "subprocess.Popen[str]"
    program: Path

    @property
    def origin(self) -> psutil.Process:
        (child,) = psutil.Process(self.process.pid).children()
        return child


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node in the middle of its start. Nobody ends it."""
    with started(tmp_path_factory.mktemp("node")) as node:
        yield node


@contextmanager
def started(tmp_path: Path, *words: str) -> Iterator[Node]:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "default_worker.py").write_text(WORKER)
    with subprocess.Popen(
        [sys.executable, "-c", NODE, str(folder), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None, "its output is a pipe"
        yield Node(process, Path(process.stdout.readline().strip()))
        process.kill()


def run(node: Node, *words: str) -> "subprocess.Popen[str]":
    # (Python adds LC_CTYPE where there is no locale.)
    environment = {
        "PATH": os.environ["PATH"],
        "LC_CTYPE": "C.UTF-8",
        "RAY_JOB_ID": "01000000",
    }
    return subprocess.Popen(
        [node.program, *words],
        cwd=node.program.parent,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def worker(node: Node) -> tuple["subprocess.Popen[str]", dict[str, object]]:
    """What Ray has started, and what the worker found."""
    asked = run(node, str(node.program.parent / "default_worker.py"), "--worker-id=1", "two words")
    assert asked.stdout is not None, "its output is a pipe"
    found: dict[str, object] = json.loads(asked.stdout.readline())
    return asked, found


def test_a_worker_is_a_fork_with_the_words_environment_and_files_of_who_asked(node: Node) -> None:
    asked, found = worker(node)
    with asked:
        assert asked.wait(10) == 0
        program = node.program.parent / "default_worker.py"
        assert found["is_forked"] is True
        assert found["parent"] == node.origin.pid
        assert found["group"] == found["pid"] != asked.pid
        assert found["words"] == [str(program), "--worker-id=1", "two words"]
        assert found["path"] == found["folder"] == str(program.parent)
        assert found["main"] == "__main__"
        assert found["environment"] == {
            "PATH": os.environ["PATH"],
            "PWD": str(program.parent),
            "LC_CTYPE": "C.UTF-8",
            "RAY_JOB_ID": "01000000",
        }
        assert found["child"] == 0, "it can wait for children of its own"
        assert found["frees"] is True
        assert found["collects"] is True
        assert asked.stdin is not None
        asked.stdin.close()
        until(lambda: not psutil.pid_exists(int(str(found["pid"]))), "no zombie is left of it")


def test_workers_are_each_their_own(node: Node) -> None:
    started = [worker(node) for _ in range(3)]
    assert len({str(found["pid"]) for _, found in started}) == 3
    assert len({str(found["drawn"]) for _, found in started} - {""}) == 3, "ids are unique"
    for asked, _ in started:
        with asked:
            pass


def test_where_forks_would_draw_the_same_ids_there_is_no_origin(tmp_path: Path) -> None:
    with started(tmp_path, "used") as node:
        assert node.program == Path(sys.executable)
        assert psutil.Process(node.process.pid).children() == []


def test_without_the_origin_a_worker_starts_by_itself(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.origin.kill()
        until(lambda: not node.origin.is_running() or node.origin.status() == "zombie", "it ends")
        asked, found = worker(node)
        with asked:
            assert found["is_forked"] is False
            assert found["pid"] == asked.pid
            assert asked.stdin is not None
            asked.stdin.close()
            assert asked.wait(10) == 7


def test_nobody_else_reaches_the_origin(node: Node) -> None:
    assert (node.program.parent / "origin.sock").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("request_", [b"{", b"5", b"[1]", b'"'], ids=str)
def test_a_request_that_breaks_leaves_no_file_open(node: Node, request_: bytes) -> None:
    origin = node.origin
    until(lambda: origin.name() == "tollgate-origin", "it takes requests")
    before = origin.num_fds()
    for _ in range(3):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(node.program.parent / "origin.sock"))
            socket.send_fds(connection, [request_], [0, 1, 2])
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(100) == b"", "nobody was forked"
    until(lambda: origin.num_fds() <= before, "its files are closed")
    asked, found = worker(node)
    with asked:
        assert found["is_forked"] is True


def test_everything_else_is_run_by_the_interpreter(node: Node) -> None:
    with run(node, "-c", "import os, sys; print(os.getpid(), sys.argv[1:])", "a b") as asked:
        output, _ = asked.communicate(timeout=10)
    assert output == f"{asked.pid} ['a b']\n"


def test_the_origin_ends_with_the_node(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        origin = node.origin
        until(lambda: origin.name() == "tollgate-origin", "it says what it is")
        os.kill(node.process.pid, signal.SIGKILL)
        until(lambda: not origin.is_running(), "it is gone")
