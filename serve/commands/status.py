"""`tollgate status`: whether it runs, what listens where, and whether it is healthy."""

import json
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass

import click

from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.node.run_record import RunRecord, running
from tollgate.serve.payments.mail.outbox import letters_waiting, outbox_folder
from tollgate.serve.payments.reference.currencies import read_currencies
from tollgate.serve.payments.reference.data_file import DataFileError, read_data_file
from tollgate.serve.payments.reference.exchange_rates import RateFile
from tollgate.serve.payments.reference.tables import CURRENCIES_FILE, RATES_FILE
from tollgate.serve.settings import Settings, process_environment

ANSWER_WITHIN_S = 2.0
DAY_MS = 86_400_000


@click.command()
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
def status(is_json: bool) -> None:
    """Say whether Tollgate runs here; exit code 0 when it is healthy, 1 when not, 3 when down."""
    settings = Settings.from_environment(process_environment())
    data = settings.process.data
    record = running(data)
    state = "down" if record is None else _state(record)
    letters = letters_waiting(data)
    rates = _rates(settings) if settings.payments.is_on else None
    if is_json:
        addresses = {} if record is None else dict(record.addresses)
        told = {"state": state, "data": data, "addresses": addresses, "lettersWaiting": letters}
        click.echo(json.dumps(told | ({} if rates is None else {"exchangeRates": rates.document})))
    elif record is None:
        click.echo(f"Tollgate is not running with the data folder {data}.")
    else:
        up_s = SystemClock().now_s() - record.started_s
        click.echo(f"Tollgate is {state} (pid {record.pid}, for {up_s:.0f} s).")
        for name, address in record.addresses.items():
            click.echo(f"  {name:<14}{address}")
    if letters and not is_json:
        click.echo(f"  {letters} letters wait to be sent, in {outbox_folder(data)}")
    if rates is not None and rates.warning and record is not None and not is_json:
        click.echo(f"  {rates.warning}")
    sys.exit({"healthy": 0, "down": 3}.get(state, 1))


@dataclass(frozen=True, slots=True)
class RatesStatus:
    """The age of the exchange rates, for programs; and for people, when it matters."""

    document: dict[str, object]
    warning: str = ""


def _rates(settings: Settings) -> RatesStatus:
    """Of the file as it is now, which the processes read too when it changes."""
    file = settings.payments.tables / RATES_FILE
    now_ms, age_max_ms = int(SystemClock().now_s() * 1000), settings.payments.rates_age_max_ms
    try:
        currencies = read_currencies(read_data_file(settings.payments.tables / CURRENCIES_FILE))
        table = RateFile(file, currencies).table(now_ms, age_max_ms)
    except DataFileError as error:
        return RatesStatus({"file": str(file), "problem": str(error)}, str(error))
    age_days = (now_ms - table.until_ms + age_max_ms) // DAY_MS
    is_old = now_ms >= table.until_ms
    document = {"file": str(file), "dated": table.dated, "ageDays": age_days, "isTooOld": is_old}
    warning = (
        f"exchange rates are dated {table.dated}, too old for live merchants: renew {file}"
        if is_old
        else ""
    )
    return RatesStatus(document, warning)


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
