"""The process that owns a node: it starts Ray and Serve here, watches, drains and stops them.

    starting -> serving --SIGTERM, SIGINT, SIGHUP--> draining -> stopped

Run as `python -m tollgate.serve.node.process` by `tollgate up`,
with the environment of `node/environment.py`.
"""

import logging
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from types import FrameType
from typing import Any

import click
import ray
from ray import serve as ray_serve
from ray.exceptions import RayError, RayTaskError
from ray.serve.handle import DeploymentHandle
from ray.serve.schema import ApplicationStatus

from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.statistics.totals import Statistics
from tollgate.serve.catalog_auth import deployment as catalog_deployment
from tollgate.serve.node.logs import configure_logs
from tollgate.serve.node.run_record import OPERATOR, RunRecord, remove_record, write_record
from tollgate.serve.node.socket_folder import remove_socket_folder, socket_folder
from tollgate.serve.payments import deployment as payments_deployment
from tollgate.serve.ratelimit.sinks.json_lines import NO_STATISTICS, json_lines
from tollgate.serve.ratelimit.wiring import NAMESPACE, RateLimitActors, rate_limit_actors
from tollgate.serve.settings import Settings, process_environment
from tollgate.serve.settings.choices import Transport
from tollgate.serve.wiring import SERVICES, applications, new_run

LOG = logging.getLogger("tollgate.node")
OBJECT_STORE_BYTES = 100 * 1024 * 1024
DRAIN_MARGIN_S = 5.0
WATCH_EVERY_S = 1.0
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Node:
    """One machine's Tollgate."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop = Event()
        self._statistics = NO_STATISTICS
        self._record = RunRecord(pid=os.getpid(), started_s=SystemClock().now_s())

    def run(self) -> int:
        """Serve until a signal comes; the exit status."""
        self._take_signals()
        write_record(self._settings.process.data, self._record)
        try:
            self._start_ray()
            self._take_signals()  # again, for Ray put its own handlers in their place
            actors, door = self._deploy()
            self._watch(actors)
            click.echo("Stopping: finishing the calls in flight.")
            self._drain(door)
        except (OSError, NotOpenedError) as error:
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
        logging.getLogger("ray.serve").setLevel(logging.WARNING)
        ray.init(
            # A cluster of this node's own, whatever RAY_ADDRESS says: its end is ours to decide.
            address="local",
            namespace=NAMESPACE,
            include_dashboard=True,
            dashboard_host="127.0.0.1",
            dashboard_port=process.ray_dashboard_port,
            object_store_memory=OBJECT_STORE_BYTES,
            logging_level=logging.WARNING,
            # Serve talks much at its start; the processes' logs are files below the data folder.
            log_to_driver=False,
            _temp_dir=str(socket_folder(process.data) / "ray"),
        )

    def _deploy(self) -> tuple[RateLimitActors, DeploymentHandle[Any]]:
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
        door = _opened(applications(settings, run))
        addresses = {"HTTP": f"{settings.http.host}:{settings.http.port}"}
        addresses["gRPC"] = door.describe.remote().result()["grpc"]
        if settings.payments.is_on:
            prefix = payments_deployment.ROUTE_PREFIX
            addresses["payments"] = f"http://{addresses['HTTP']}{prefix} (to browse: /docs)"
            if settings.payments.operator_key_file:
                own = settings.payments
                addresses[OPERATOR] = f"http://{own.operator_host}:{own.operator_port}"
        if settings.catalog.is_on:
            addresses["catalog auth"] = (
                f"http://{addresses['HTTP']}{catalog_deployment.ROUTE_PREFIX}/"
            )
        addresses |= ray.get(listening)
        addresses["Ray dashboard"] = f"127.0.0.1:{settings.process.ray_dashboard_port}"
        self._tell(addresses, ray.get(actors.watcher.describe.remote()))
        return actors, door

    def _tell(self, addresses: dict[str, str], rules: dict[str, Any]) -> None:
        """Write the record and say what is listening where, and what is decided."""
        for name in ("gRPC", "HTTP", "debug"):
            LOG.warning("Listening for %s on '%s'", name, addresses[name])
        took_s = SystemClock().now_s() - self._record.started_s
        lines = [f"Tollgate is up after {took_s:.1f} s."]
        lines += [f"  {name:<14}{address}" for name, address in addresses.items()]
        lines.append(f"  {'domains':<14}{', '.join(rules['domains']) or 'none'}")
        lines.append(f"  {'logs':<14}{self._settings.process.data}/ray/session_latest/logs")
        if rules["error"]:
            lines.append(f"  {'rules':<14}not loaded: {rules['error']}")
        click.echo("\n".join(lines))
        self._told = (rules["generation"], rules["error"])
        self._record = replace(self._record, addresses=addresses, is_ready=True)
        write_record(self._settings.process.data, self._record)

    def _watch(self, actors: RateLimitActors) -> None:
        """Wait for the signal; meanwhile say what becomes of the rules, and of the statistics
        where standard output was chosen for them."""
        statistics = self._settings.statistics
        clock = SystemClock()
        flush_s = clock.monotonic_s()
        while not self._stop.wait(WATCH_EVERY_S):
            try:
                self._tell_rules(ray.get(actors.watcher.describe.remote(), timeout=WATCH_EVERY_S))
                is_due = clock.monotonic_s() >= flush_s + statistics.flush_interval_s
                if statistics.transport is Transport.STDOUT and is_due:
                    flush_s = clock.monotonic_s()
                    self._tell_statistics(ray.get(actors.operations.statistics.remote()))
            except RayError as error:
                LOG.debug("asked again in a moment: %s", type(error).__name__)

    def _tell_rules(self, rules: dict[str, Any]) -> None:
        news = (rules["generation"], rules["error"])
        if news != self._told and rules["error"]:
            LOG.error("rules not loaded, the last good ones stay in force: %s", rules["error"])
        elif news != self._told:
            domains = ", ".join(rules["domains"]) or "none"
            LOG.warning("rules in force: generation %d, domains %s", news[0], domains)
        self._told = news

    def _tell_statistics(self, statistics: Statistics) -> None:
        tags = dict(self._settings.statistics.extra_tags)
        for line in json_lines(self._statistics, statistics, tags):
            click.echo(line)
        self._statistics = statistics

    def _drain(self, door: DeploymentHandle[Any]) -> None:
        grace_s = self._settings.process.drain_grace_s
        try:
            door.broadcast("drain", grace_s).results(timeout_s=grace_s + DRAIN_MARGIN_S)
        except (RayError, TimeoutError) as error:
            click.echo(f"tollgate: calls in flight may have been cut: {error}", err=True)

    def _shut_down(self) -> None:
        # A second signal must not leave processes behind.
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        if ray.is_initialized():
            ray_serve.shutdown()  # type: ignore[no-untyped-call]
            ray.shutdown()
        remove_record(self._settings.process.data)
        remove_socket_folder(self._settings.process.data)


class NotOpenedError(Exception):
    """The doors are not open; the text is one line with the reason."""


def _line_of(error: OSError | NotOpenedError) -> str:
    """The reason, without the traceback that Ray puts around another process's error."""
    reason = error.cause if isinstance(error, RayTaskError) else error
    return reason.strerror or str(reason) if isinstance(reason, OSError) else str(reason)


def _opened(targets: list[ray_serve.RunTarget]) -> DeploymentHandle[Any]:
    """The handle of the first application, once all of them are running."""
    try:
        return ray_serve.run_many(targets)[0]
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
    """Run a node with the settings of the process environment."""
    settings = Settings.from_environment(process_environment())
    configure_logs(settings)
    return Node(settings).run()


if __name__ == "__main__":
    sys.exit(main())
