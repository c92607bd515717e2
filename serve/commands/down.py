"""`tollgate down`: stop what `tollgate up` started with this data folder."""

import os
import signal
import sys
import time

import click

from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.node.run_record import running
from tollgate.serve.settings import Settings, process_environment

LOOK_EVERY_S = 0.1
MARGIN_S = 30.0


@click.command()
def down() -> None:
    """Drain and stop the Tollgate that runs with this data folder."""
    settings = Settings.from_environment(process_environment())
    record = running(settings.process.data)
    if record is None:
        click.echo(f"Tollgate is not running with the data folder {settings.process.data}.")
        return
    os.kill(record.pid, signal.SIGTERM)
    clock = SystemClock()
    give_up_s = clock.monotonic_s() + settings.process.drain_grace_s + MARGIN_S
    while running(settings.process.data) is not None:
        if clock.monotonic_s() > give_up_s:
            click.echo(f"tollgate: it is still stopping (pid {record.pid}); see its log", err=True)
            sys.exit(1)
        time.sleep(LOOK_EVERY_S)
    click.echo("Tollgate has stopped.")
