"""The process above a node's: it starts the node, starts it again when it is lost, and cleans up.

    starting -> ready --SIGTERM, SIGINT, SIGHUP--> stopping -> ended
                  \\--node, raylet or GCS gone--> everything ended -> starting

All processes of a node descend from this one, and orphans among them come back to it, for it is
their subreaper: so nothing outlives it that it does not know, HAProxy least of all, which would
go on listening with nobody behind. It imports no Ray and holds no state.

Run as `python -m tollgate.serve.node.supervisor`, in the environment of `environment.py`.
"""

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from math import inf
from threading import Event

import click
import psutil

from tollgate.actors.kernel.clock import Clock, SystemClock
from tollgate.serve.node.logs import configure_logs
from tollgate.serve.node.parenthood import adopt_orphans
from tollgate.serve.node.run_record import RunRecord, read_record, remove_record, write_record
from tollgate.serve.node.socket_folder import remove_socket_folder
from tollgate.serve.node.workers.origin import TITLE, inherited_environment
from tollgate.serve.settings import Settings, process_environment

LOG = logging.getLogger("tollgate.node")
NODE = [sys.executable, "-m", "tollgate.serve.node.process"]
# Without one of these Ray is lost; the others it starts again by itself. (Workers lose their parent
# with their origin.)
VITAL = frozenset({"gcs_server", "raylet", TITLE})
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LOOK_EVERY_S = 0.25
# All processes of the machine are looked through for that.
LOOK_FOR_ORPHANS_EVERY_S = 1.0
READY_WITHIN_S = 300.0
# A node that is asked to stop while it starts finishes that first.
STOP_MARGIN_S = 60.0
ENDED_WITHIN_S = 10.0
# So many losses within the time, and whatever is wrong is not mended by another start.
LOSSES_MAX = 8
LOSSES_WITHIN_S = 600.0
PAUSE_S, PAUSE_MAX_S = 0.5, 30.0
EXIT_LOST = 70
NOTIFY_SOCKET = "NOTIFY_SOCKET"


class Supervisor:
    """One machine's Tollgate, from its start to its end."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        notify: Callable[[str], None],
        command: Sequence[str] = NODE,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._settings = settings
        self._command = command
        self._pause_s = pause_s
        self._data = settings.process.data
        self._clock = clock
        self._notify = notify
        self._stop = Event()
        self._losses: list[float] = []

    def run(self) -> int:
        """Keeps a node running until a signal comes; the exit status."""
        for number in STOP_SIGNALS:
            signal.signal(number, lambda *_: self._stop.set())
        adopt_orphans()
        try:
            while True:
                status = self._run_node()
                if status is not None:
                    return status
                may_start_again = self._may_start_again()
                if self._stop.is_set():
                    return 0
                if not may_start_again:
                    click.echo(f"tollgate: lost {LOSSES_MAX} times: giving up", err=True)
                    return EXIT_LOST
        finally:
            remove_record(self._data)
            remove_socket_folder(self._data)

    def _run_node(self) -> int | None:
        """Runs one node to its end. The exit status of all, or None when the node was lost."""
        write_record(self._data, RunRecord(os.getpid(), self._clock.now_s()))
        environment = process_environment()
        environment.pop(NOTIFY_SOCKET, None)
        environment |= inherited_environment(os.getpid())
        # A group of its own: a Ctrl-C of the terminal is for the supervisor alone.
        node = subprocess.Popen(
            self._command, env=environment, process_group=0, stdin=subprocess.DEVNULL
        )
        try:
            loss = self._watch(node)
        finally:
            _end_descendants(self._clock)
        if loss:
            LOG.error("%s: everything is ended and started again", loss)
            return None
        return node.returncode if node.returncode >= 0 else EXIT_LOST

    def _watch(self, node: "subprocess.Popen[bytes]") -> str:
        """Waits for the node's end, and ends it when asked to. What was lost; empty: nothing."""
        ready_by_s = self._clock.monotonic_s() + READY_WITHIN_S
        orphans_s, stopped_by_s = 0.0, inf
        is_ready = False
        vital: set[psutil.Process] = set()
        while node.poll() is None:
            if self._stop.wait(LOOK_EVERY_S):
                self._end_in_order(node)
                return ""
            now_s = self._clock.monotonic_s()
            if now_s >= orphans_s:
                _end_orphans(node.pid)
                vital |= set() if is_ready else _vital_processes(node.pid)
                orphans_s = now_s + LOOK_FOR_ORPHANS_EVERY_S
            record = read_record(self._data)
            if record is not None and record.is_stopping:
                # Its end tells why; Ray ends before it.
                stopped_by_s = min(stopped_by_s, now_s + STOP_MARGIN_S)
                if now_s > stopped_by_s:
                    return f"the node did not stop within {STOP_MARGIN_S:.0f} s"
            elif not is_ready and record is not None and record.is_ready:
                is_ready = True
                vital |= _vital_processes(node.pid)
                self._notify("READY=1")
            elif not is_ready and now_s > ready_by_s:
                return f"the node was not ready within {READY_WITHIN_S:.0f} s"
            elif gone := [process.pid for process in vital if not _is_alive(process)]:
                return f"Ray is lost (process {gone[0]} has ended)"
        # An orderly end was written down, and the first start may fail.
        record = read_record(self._data)
        is_orderly = record is not None and record.is_stopping and node.returncode == 0
        is_first = not (is_ready or self._losses)
        return "" if is_orderly or is_first else f"the node has ended ({node.returncode})"

    def _end_in_order(self, node: "subprocess.Popen[bytes]") -> None:
        self._notify("STOPPING=1")
        node.terminate()
        try:
            node.wait(self._settings.process.drain_grace_s + STOP_MARGIN_S)
        except subprocess.TimeoutExpired:
            LOG.error("the node did not stop in time and is ended")
            node.kill()
            node.wait()

    def _may_start_again(self) -> bool:
        """True if the losses are few enough; waits longer from one to the next."""
        now_s = self._clock.monotonic_s()
        self._losses = [at_s for at_s in self._losses if at_s > now_s - LOSSES_WITHIN_S]
        self._losses.append(now_s)
        if len(self._losses) >= LOSSES_MAX:
            return False
        pause_s = self._pause_s * 2 ** (len(self._losses) - 1)
        return not self._stop.wait(min(pause_s, PAUSE_MAX_S))


def service_notifier(address: str) -> Callable[[str], None]:
    """Tells a service manager the state, if there is one (sd_notify: one datagram a state)."""

    def notify(state: str) -> None:
        if not address:
            return
        # (a first @ stands for the NUL of an abstract address)
        name = f"\0{address[1:]}" if address.startswith("@") else address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as messenger:
            try:
                messenger.sendto(state.encode(), name)
            except OSError as error:
                LOG.warning("cannot tell the service manager: %s", error.strerror)

    return notify


def _vital_processes(node_pid: int) -> set[psutil.Process]:
    try:
        return {child for child in psutil.Process(node_pid).children() if child.name() in VITAL}
    except psutil.NoSuchProcess:  # one of them has just ended, and the node with it
        return set()


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _end_orphans(node_pid: int) -> None:
    """Ends processes whose parent is gone: a HAProxy without its manager keeps the port."""
    for child in psutil.Process().children():
        if child.pid != node_pid:
            _end(child)


def _end_descendants(clock: Clock) -> None:
    """Ends whatever is left. Processes may start others meanwhile, so until none is left."""
    give_up_s = clock.monotonic_s() + ENDED_WITHIN_S
    while descendants := psutil.Process().children(recursive=True):
        for process in descendants:
            _end(process)
        if clock.monotonic_s() > give_up_s:
            LOG.error("cannot end %s", ", ".join(str(each.pid) for each in descendants))
            return


def _end(process: psutil.Process) -> None:
    try:
        process.kill()
        process.wait(LOOK_EVERY_S)
    except (psutil.NoSuchProcess, psutil.TimeoutExpired):
        pass


def main() -> int:
    """Runs a node, and again when it is lost, with the settings of the process environment."""
    environment = process_environment()
    settings = Settings.from_environment(environment)
    configure_logs(settings)
    notify = service_notifier(environment.get(NOTIFY_SOCKET, ""))
    return Supervisor(settings, SystemClock(), notify).run()


if __name__ == "__main__":
    sys.exit(main())
