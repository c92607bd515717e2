"""`tollgate status`: whether it runs, what listens where, and whether it is healthy."""

import json
import sys
import urllib.error
import urllib.request

import click

from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.node.run_record import RunRecord, running
from tollgate.serve.payments.mail.outbox import letters_waiting, outbox_folder
from tollgate.serve.settings import Settings, process_environment

ANSWER_WITHIN_S = 2.0


@click.command()
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
def status(is_json: bool) -> None:
    """Say whether Tollgate runs here; exit code 0 when it is healthy, 1 when not, 3 when down."""
    data = Settings.from_environment(process_environment()).process.data
    record = running(data)
    state = "down" if record is None else _state(record)
    letters = letters_waiting(data)
    if is_json:
        addresses = {} if record is None else dict(record.addresses)
        told = {"state": state, "data": data, "addresses": addresses, "lettersWaiting": letters}
        click.echo(json.dumps(told))
    elif record is None:
        click.echo(f"Tollgate is not running with the data folder {data}.")
    else:
        up_s = SystemClock().now_s() - record.started_s
        click.echo(f"Tollgate is {state} (pid {record.pid}, for {up_s:.0f} s).")
        for name, address in record.addresses.items():
            click.echo(f"  {name:<14}{address}")
    if letters and not is_json:
        click.echo(f"  {letters} letters wait to be sent, in {outbox_folder(data)}")
    sys.exit({"healthy": 0, "down": 3}.get(state, 1))


def _state(record: RunRecord) -> str:
    if record.is_stopping:
        return "stopping"
    if not record.is_ready:
        return "starting"
    port = record.addresses["HTTP"].rpartition(":")[2]
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/healthcheck", timeout=ANSWER_WITHIN_S
        ):
            return "healthy"
    except urllib.error.HTTPError:
        return "unhealthy"
    except OSError:
        return "not answering"
