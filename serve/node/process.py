"""The process of a node: it starts Ray and Serve, watches, drains and stops them.

    starting -> serving --SIGTERM, SIGINT, SIGHUP--> draining -> stopped

Run as `python -m tollgate.serve.node.process` by the supervisor, which owns what is written about
the run and ends whatever is left when this process is gone.
"""

# First, and then so that no class gets its id in another way.
import tollgate.serve.node.workers.collection_pause

# isort: split
import tollgate.serve.node.workers.class_ids  # noqa: F401

# isort: split
import logging
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from types import FrameType
from typing import Any

import click
import ray
from ray import serve as ray_serve
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.serve.handle import DeploymentHandle
from ray.serve.schema import ApplicationStatus

from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.node.announcements import Announcements, addresses_of
from tollgate.serve.node.logs import configure_logs
from tollgate.serve.node.parenthood import end_with_parent
from tollgate.serve.node.ports import claimed_ports
from tollgate.serve.node.ray_start import (
    keep_dashboard,
    only_what_serves,
    remove_old_sessions,
)
from tollgate.serve.node.replica_health import HEARD_WITHIN_S
from tollgate.serve.node.run_record import RunRecord, write_record
from tollgate.serve.node.socket_folder import ray_folder, socket_folder
from tollgate.serve.node.workers.origin import start_origin
from tollgate.serve.ratelimit.wiring import NAMESPACE, RateLimitActors, rate_limit_actors
from tollgate.serve.settings import Settings, process_environment
from tollgate.serve.settings.choices import Transport
from tollgate.serve.wiring import SERVICES, applications, new_run

LOG = logging.getLogger("tollgate.node")
OBJECT_STORE_BYTES = 100 * 1024 * 1024
DRAIN_MARGIN_S = 5.0
# The doors are open by then; a busy machine may take a while to say where.
ANSWER_WITHIN_S = 60.0
WATCH_EVERY_S = 1.0
# A million counters are on disk within two seconds, on a busy machine within six.
KEPT_WITHIN_S = 15.0
SENT_WITHIN_S = 10.0
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Doors = list[DeploymentHandle[Any]]
"""Of the applications, the rate limit's first."""


class Node:
    """One machine's Tollgate."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop = Event()
        self._started_s = SystemClock().now_s()
        self._announcements = Announcements(settings)
        self._asked: Any = None  # for statistics

    def run(self) -> int:
        """Serves until a signal comes; the exit status."""
        self._take_signals()
        try:
            with claimed_ports(self._settings):
                self._start_ray()
                self._take_signals()  # again, for Ray put its own handlers in their place
                actors, doors = self._deploy()
                self._watch(actors)
                click.echo("Stopping: finishing the calls in flight.")
                self._drain(actors, doors)
                self._keep_counters(actors)
                self._send_statistics(actors)
        except (OSError, NotOpenedError, RayError, RuntimeError) as error:
            LOG.debug("did not start", exc_info=error)
            click.echo(f"tollgate: {_line_of(error)}", err=True)
            return 1
        finally:
            self._shut_down()
        click.echo("Stopped.")
        return 0

    def _take_signals(self) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, self._asked_to_stop)

    def _asked_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._stop.set()

    def _start_ray(self) -> None:
        process = self._settings.process
        folder = socket_folder(process.data)
        sessions = ray_folder(folder)
        remove_old_sessions(sessions)
        # Before anything of Ray runs in this process.
        sys.executable = str(start_origin(folder))
        logging.getLogger("ray.serve").setLevel(logging.WARNING)
        with only_what_serves():
            ray.init(
                # A cluster of this node's own, whatever RAY_ADDRESS says: we decide its end.
                address="local",
                namespace=NAMESPACE,
                include_dashboard=True,
                dashboard_host="127.0.0.1",
                dashboard_port=process.ray_dashboard_port,
                object_store_memory=OBJECT_STORE_BYTES,
                logging_level=logging.WARNING,
                # Serve talks much at its start; the processes' logs are files in the data folder.
                log_to_driver=False,
                _temp_dir=str(sessions),
            )

    def _deploy(self) -> tuple[RateLimitActors, Doors]:
        settings = self._settings
        run = new_run()
        with ThreadPoolExecutor(1) as pool:
            # Processes take about a second each to start: Serve's and ours side by side.
            creating = pool.submit(rate_limit_actors, settings, run)
            ray_serve.start(
                http_options={"host": settings.http.host, "port": settings.http.port},
                logging_config={"log_level": "WARNING"},
            )
            actors = creating.result()
        listening = actors.operations.begin.remote()
        targets = applications(settings, run)
        doors = _opened(targets)
        described = doors[0].describe.remote().result(timeout_s=ANSWER_WITHIN_S)
        routes = {target.name: str(target.route_prefix) for target in targets}
        addresses = addresses_of(settings, described["grpc"], described["json"], routes)
        addresses |= ray.get(listening, timeout=ANSWER_WITHIN_S)
        if settings.process.has_ray_dashboard:
            addresses["Ray dashboard"] = f"127.0.0.1:{settings.process.ray_dashboard_port}"
        rules = ray.get(actors.watcher.describe.remote(), timeout=ANSWER_WITHIN_S)
        took_s = SystemClock().now_s() - self._started_s
        self._announcements.tell_start(addresses, rules, took_s)
        record = RunRecord(os.getppid(), self._started_s, addresses, is_ready=True)
        write_record(settings.process.data, record)
        return actors, doors

    def _watch(self, actors: RateLimitActors) -> None:
        """Waits for the signal; meanwhile keeps the dashboard, and says what becomes of the rules,
        and of the statistics where standard output was chosen for them."""
        statistics = self._settings.statistics
        clock = SystemClock()
        flush_s = clock.monotonic_s()
        if self._settings.process.has_ray_dashboard:
            keep_dashboard(self._stop)
        while not self._stop.wait(WATCH_EVERY_S):
            try:
                rules = ray.get(actors.watcher.describe.remote(), timeout=WATCH_EVERY_S)
                self._announcements.tell_rules(rules)
                is_due = clock.monotonic_s() >= flush_s + statistics.flush_interval_s
                if statistics.transport is Transport.STDOUT and is_due:
                    flush_s = clock.monotonic_s()
                    self._tell_statistics(actors, WATCH_EVERY_S)
            except RayError as error:
                LOG.debug("asked again in a moment: %s", type(error).__name__)

    def _tell_statistics(self, actors: RateLimitActors, within_s: float) -> None:
        """Asks once and waits for that answer, also the next time: it is told to nobody else."""
        asked = self._asked or actors.operations.flush.remote()
        self._asked = asked
        try:
            flush = ray.get(asked, timeout=within_s)
        except GetTimeoutError:
            return
        except RayError:
            self._asked = None
            raise
        self._asked = None
        self._announcements.tell_statistics(flush)

    def _send_statistics(self, actors: RateLimitActors) -> None:
        """Has what was counted since the last time told, where that was chosen, and sent."""
        try:
            if self._settings.statistics.transport is Transport.STDOUT:
                self._tell_statistics(actors, SENT_WITHIN_S)
            ray.get(actors.operations.stop_sending.remote(), timeout=SENT_WITHIN_S)
        except RayError as error:
            LOG.warning("the last statistics may not be sent: %s", type(error).__name__)

    def _drain(self, actors: RateLimitActors, doors: Doors) -> None:
        grace_s = self._settings.process.drain_grace_s
        with suppress(RayError):
            actors.operations.dismiss.remote()  # who is slow from now on does not hang
        try:
            doors[0].broadcast("drain", grace_s).results(timeout_s=grace_s + DRAIN_MARGIN_S)
        except (RayError, TimeoutError) as error:
            click.echo(f"tollgate: calls in flight may have been cut: {error}", err=True)
        for door in doors:
            with suppress(RayError, TimeoutError):  # later it would be no gain
                door.broadcast("expect_end").results(timeout_s=HEARD_WITHIN_S)

    def _keep_counters(self, actors: RateLimitActors) -> None:
        """Has the partitions write what was counted, now that the fronts have told everything."""
        try:
            finished = [partition.finish.remote() for partition in actors.partitions]
            if not all(ray.get(finished, timeout=KEPT_WITHIN_S)):
                LOG.warning("not all counters are on disk: the partitions' logs say why")
        except RayError as error:
            LOG.warning("the last second's hits may count as never made: %s", type(error).__name__)

    def _shut_down(self) -> None:
        # A second signal must not leave processes behind.
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        record = RunRecord(os.getppid(), self._started_s, is_stopping=True)
        write_record(self._settings.process.data, record)
        if ray.is_initialized():
            ray_serve.shutdown()  # type: ignore[no-untyped-call]
            ray.shutdown()


class NotOpenedError(Exception):
    """The doors are not open; the text is one line with the reason."""


def _line_of(error: Exception) -> str:
    """The reason in one line, without the traceback that Ray puts around another process's."""
    reason = error.cause if isinstance(error, RayTaskError) else error
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    lines = str(reason).strip().splitlines()
    return lines[-1] if lines else type(reason).__name__


def _opened(targets: list[ray_serve.RunTarget]) -> Doors:
    """The handles of the applications, once all of them are running."""
    try:
        return ray_serve.run_many(targets)
    except RuntimeError as error:
        raise NotOpenedError(_reason(error)) from None


def _reason(error: RuntimeError) -> str:
    """Serve's own error names no cause. Its status holds the replica's traceback: the last line
    says what happened there."""
    for name, status in ray_serve.status().applications.items():
        if status.status == ApplicationStatus.RUNNING:
            continue
        said = "\n".join(each.message for each in status.deployments.values()).strip()
        if said:
            return f"the {SERVICES[name]} service did not start: {said.splitlines()[-1]}"
    return f"Tollgate did not start: {str(error).splitlines()[-1]}"


def main() -> int:
    """Runs a node with the settings of the process environment."""
    end_with_parent(signal.SIGTERM)
    settings = Settings.from_environment(process_environment())
    configure_logs(settings)
    return Node(settings).run()


if __name__ == "__main__":
    sys.exit(main())
