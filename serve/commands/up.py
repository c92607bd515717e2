"""`tollgate up`: check what can be checked at once, then hand over to the node."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import click

from tollgate.actors.kernel.clock import Clock, SystemClock
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.rules.rule_file import RuleFileError
from tollgate.serve.net.tls_files import TlsError
from tollgate.serve.node.environment import completed_environment, node_environment
from tollgate.serve.node.orphan_processes import end_orphans
from tollgate.serve.node.ports import free_port, port_conflicts
from tollgate.serve.node.run_record import RunRecord, running
from tollgate.serve.node.socket_folder import exposures
from tollgate.serve.payments.reference.data_file import DataFileError
from tollgate.serve.payments.reference.tables import load_reference
from tollgate.serve.payments.secrets.key_files import load_operator_key
from tollgate.serve.payments.secrets.master_secret import SecretFileError
from tollgate.serve.ratelimit.rule_sources.files import RuleDirectory
from tollgate.serve.settings import Settings, SettingsError, process_environment
from tollgate.serve.settings.choices import Backend, RuleSource, Transport

READY_WITHIN_S = 300.0
LOOK_EVERY_S = 0.1


@click.command()
@click.option("--detach", is_flag=True, help="Return once it is serving, and leave it running.")
def up(detach: bool) -> None:
    """Start Tollgate on this machine; Ctrl-C drains and stops it."""
    settings = checked_settings(process_environment())
    try:
        environment = completed_environment(process_environment(), node_environment(settings))
    except OSError as error:
        place = error.filename or settings.process.data
        _refuse([f"TOLLGATE_DATA: {place}: {error.strerror}: set a folder that can be written to"])
    if settings.http.port == 0:
        environment["PORT"] = str(free_port())
    command = [sys.executable, "-m", "tollgate.serve.node.supervisor"]
    click.echo("Starting Ray and the services on this machine.")
    if detach:
        _run_detached(command, environment, settings.process.data, SystemClock())
    else:
        sys.stdout.flush()
        os.execve(sys.executable, command, environment)


def checked_settings(environ: Mapping[str, str]) -> Settings:
    """The settings, or the end of the command with one line for each thing that is wrong."""
    try:
        settings = Settings.from_environment(environ)
    except SettingsError as error:
        _refuse(error.errors)
    for warning in settings.warnings:
        click.echo(f"tollgate: warning: {warning}", err=True)
    if exposed := list(exposures(settings.process.data)):
        _refuse(exposed)
    already = running(settings.process.data)
    if already is not None:
        _refuse(
            [
                f"runs already with data folder {settings.process.data} (pid {already.pid}): "
                "stop it with `tollgate down`, or set another TOLLGATE_DATA"
            ]
        )
    end_orphans(settings, SystemClock())
    problems = [
        *_bad_rules(settings),
        *_bad_certificates(settings),
        *_bad_store(settings),
        *_bad_certificates_of_control_plane(settings),
        *_bad_metrics(settings),
        *_bad_operator_key(settings),
        *_bad_tables(settings),
        *_bad_catalog(settings),
        *port_conflicts(settings),
    ]
    if problems:
        _refuse(problems)
    return settings


def _bad_rules(settings: Settings) -> Iterator[str]:
    """The faults that keep rules from being loaded, unless a start without rules was asked for."""
    if settings.rules.starts_without_rules or settings.rules.source is RuleSource.XDS:
        return
    try:
        files = RuleDirectory.of(settings.rules).read()
        load_rules(files, merge_domains=settings.rules.merges_domains)
    except RuleFileError as error:
        yield (
            f"{error.located}; mend it, or set FORCE_START_WITHOUT_INITIAL_CONFIG=true to start "
            "without rules"
        )


def _bad_certificates(settings: Settings) -> Iterator[str]:
    grpc = settings.grpc
    if not grpc.has_tls:
        return
    # Imported here: without TLS nothing in this command needs gRPC.
    from tollgate.serve.ratelimit.fronts.front import ServerTls
    from tollgate.serve.ratelimit.fronts.tls import server_credentials

    try:
        server_credentials(ServerTls(grpc.tls_cert, grpc.tls_key, grpc.client_ca, grpc.client_san))
    except TlsError as error:
        yield f"{settings.spelled('GRPC_SERVER_USE_TLS')}: {error}"


def _bad_store(settings: Settings) -> Iterator[str]:
    """The faults of a store outside that are seen without calling it."""
    if settings.counting.is_counted_in(Backend.KVSTORE):
        from tollgate.serve.ratelimit.backends.redis.store import check_certificates

        try:
            check_certificates(settings)
        except OSError as error:
            redis = settings.kvstore
            fault = _fault_of_files(error, redis.tls_ca, redis.tls_cert, redis.tls_key)
            yield f"{settings.spelled('KVSTORE_TLS')}: {fault}"
    memcached = settings.memcached
    if not settings.counting.is_counted_in(Backend.ALTCACHE) or not memcached.has_tls:
        return
    from tollgate.serve.ratelimit.backends.memcached.store import tls_context

    try:
        tls_context(memcached)
    except OSError as error:
        fault = _fault_of_files(error, memcached.tls_ca, memcached.tls_cert, memcached.tls_key)
        yield f"{settings.spelled('ALTCACHE_TLS')}: {fault}"


def _fault_of_files(error: OSError, *files: str) -> str:
    """The fault that TLS finds in one of these files, with their names, which it does not tell."""
    named = ", ".join(filter(None, files))
    return f"a certificate or a key cannot be used, of {named}: {error}"


def _bad_certificates_of_control_plane(settings: Settings) -> Iterator[str]:
    if settings.rules.source is not RuleSource.XDS or not settings.control_plane.has_tls:
        return
    from tollgate.serve.ratelimit.rule_sources.control_plane import channel_credentials

    try:
        channel_credentials(settings.control_plane)
    except TlsError as error:
        yield f"{settings.spelled('CONFIG_GRPC_XDS_SERVER_USE_TLS')}: {error}"


def _bad_metrics(settings: Settings) -> Iterator[str]:
    """The fault of a mapping to metrics, or of the tags beside it."""
    if settings.statistics.transport is not Transport.PULLMETRICS:
        return
    # Imported here: most starts have no metrics page, and what renders one is much.
    from tollgate.serve.ratelimit.sinks.choice import metrics_text

    try:
        metrics_text(settings)
    except ValueError as error:
        yield str(error)


def _bad_operator_key(settings: Settings) -> Iterator[str]:
    path = settings.payments.operator_key_file
    if not path or not settings.payments.is_on:
        return
    try:
        load_operator_key(Path(path))
    except SecretFileError as error:
        yield f"{settings.spelled('PAYMENTS_OPERATOR_KEY_FILE')}: {error}"


def _bad_tables(settings: Settings) -> Iterator[str]:
    """The first fault of the tables of payments."""
    if not settings.payments.is_on:
        return
    try:
        load_reference(settings.payments.tables)
    except DataFileError as error:
        yield f"{settings.spelled('PAYMENTS_CONFIG')}: {error}"


def _bad_catalog(settings: Settings) -> Iterator[str]:
    """The faults that catalog auth alone can find: in the names of rules, and in the file that says
    what is signed."""
    catalog = settings.catalog
    if not catalog.is_on or not (catalog.severities or catalog.signing):
        return
    # Imported here: all rules, and what signs, are much for a command that starts something.
    from tollgate.serve.catalog_auth.wiring import WiringError, catalog_context

    try:
        catalog_context(settings)
    except WiringError as error:
        yield str(error)


def _refuse(lines: Sequence[str]) -> NoReturn:
    for line in lines:
        click.echo(f"tollgate: {line}", err=True)
    sys.exit(1)


def _run_detached(
    command: Sequence[str], environment: Mapping[str, str], data: str, clock: Clock
) -> None:
    log = Path(data) / "node.log"
    with log.open("wb") as output:
        node = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    record = _wait_until_ready(node, data, clock)
    if record is None:
        click.echo(log.read_text(errors="replace").rstrip(), err=True)
        late = f" within {READY_WITHIN_S:.0f} s" if node.poll() is None else ""
        _refuse([f"did not start{late}; the whole log is in {log}"])
    for name, address in record.addresses.items():
        click.echo(f"  {name:<14}{address}")
    click.echo(f"Tollgate is running (pid {node.pid}), its log is {log}; stop: tollgate down")


def _wait_until_ready(node: subprocess.Popen[bytes], data: str, clock: Clock) -> RunRecord | None:
    give_up_s = clock.monotonic_s() + READY_WITHIN_S
    while clock.monotonic_s() < give_up_s:
        record = running(data)
        if record is not None and record.is_ready and record.pid == node.pid:
            return record
        try:
            node.wait(LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            continue
        return None
    node.terminate()
    return None
