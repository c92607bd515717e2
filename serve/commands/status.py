"""`tollgate status`: whether it runs, what listens where, and whether it is healthy."""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import click

from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.net.direct_calls import call_directly
from tollgate.serve.node.run_record import RunRecord, running
from tollgate.serve.payments.mail.outbox import letters_waiting, outbox_folder
from tollgate.serve.payments.reference.currencies import read_currencies
from tollgate.serve.payments.reference.data_file import DataFileError, read_data_file
from tollgate.serve.payments.reference.exchange_rates import RateFile
from tollgate.serve.payments.reference.tables import CURRENCIES_FILE, RATES_FILE
from tollgate.serve.ratelimit.backends.choice import outside_store
from tollgate.serve.settings import Settings, process_environment

ANSWER_WITHIN_S = 3.0
PROBLEM_BYTES_MAX = 300
DAY_MS = 86_400_000
HEALTHY = "healthy"


@click.command()
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
def status(is_json: bool) -> None:
    """Say whether Tollgate runs here; exit code 0 when it is healthy, 1 when not, 3 when down."""
    settings = Settings.from_environment(process_environment())
    data = settings.process.data
    record = running(data)
    state, services = ("down", {}) if record is None else _state(record, settings)
    problems = [f"{name}: {problem}" for name, problem in services.items() if problem]
    rules = {} if record is None else _rules(record)
    letters = letters_waiting(data)
    counters = _outside_place(settings)
    rates = _rates(settings) if settings.payments.is_on else None
    if is_json:
        addresses = {} if record is None else dict(record.addresses)
        told = {
            "state": state,
            "problems": problems,
            "services": {name: problem or HEALTHY for name, problem in services.items()},
            "data": data,
            "addresses": addresses,
            "lettersWaiting": letters,
            "rules": rules,
        } | ({"counters": counters} if counters else {})
        click.echo(json.dumps(told | ({} if rates is None else {"exchangeRates": rates.document})))
    elif record is None:
        click.echo(f"Tollgate is not running with the data folder {data}.")
    else:
        up_s = SystemClock().now_s() - record.started_s
        click.echo(f"Tollgate is {state} (pid {record.pid}, for {up_s:.0f} s).")
        for name, address in record.addresses.items():
            click.echo(f"  {name:<14}{address}")
        if counters:
            click.echo(f"  {'counters':<14}{counters}")
        for name, problem in services.items():
            click.echo(f"  {name:<14}{problem or HEALTHY}")
        for trouble in _trouble_with(rules):
            click.echo(f"  {trouble}")
    if letters and not is_json:
        click.echo(f"  {letters} letters wait to be sent, in {outbox_folder(data)}")
    if rates is not None and rates.note and record is not None and not is_json:
        click.echo(f"  {rates.note}")
    sys.exit({HEALTHY: 0, "down": 3}.get(state, 1))


@dataclass(frozen=True, slots=True)
class RatesStatus:
    """The age of the exchange rates, for programs; and for people, what there is to tell: no
    alarm, since rates that are old are good enough for test merchants, and a Tollgate may have no
    others."""

    document: dict[str, object]
    note: str = ""


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
    note = (
        f"exchange rates of {table.dated} are for test merchants; live ones need newer in {file}"
        if is_old
        else ""
    )
    return RatesStatus(document, note)


def _outside_place(settings: Settings) -> str:
    """The store outside that has the counters, and where; empty when they are Tollgate's own."""
    outside = outside_store(settings)
    return "" if outside is None else outside.place


def _state(record: RunRecord, settings: Settings) -> tuple[str, dict[str, str]]:
    """The state in a word; and of each service what is wrong with it, nothing when it is well."""
    if record.is_stopping:
        return "stopping", {}
    if not record.is_ready:
        return "starting", {}
    door = f"http://127.0.0.1:{record.addresses['HTTP'].rpartition(':')[2]}"
    services = {"rate limit": "/healthcheck"}
    if settings.payments.is_on:
        services["payments"] = "/payments/healthcheck"
    if settings.catalog.is_on:
        services["catalog auth"] = "/catalog-auth/healthcheck"
    try:
        found = {name: _problem(f"{door}{path}") for name, path in services.items()}
    except OSError:
        return "not answering", {}
    return "unhealthy" if any(found.values()) else HEALTHY, found


def _rules(record: RunRecord) -> dict[str, object]:
    """The source of the rules and what became of the last load, as the debug port tells it; empty
    when nobody does."""
    if "debug" not in record.addresses:
        return {}
    url = f"http://{record.addresses['debug']}/rlconfig/source"
    try:
        with call_directly(urllib.request.Request(url), ANSWER_WITHIN_S) as answer:
            told = json.load(answer)
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _trouble_with(rules: Mapping[str, object]) -> Iterator[str]:
    """A line for what keeps newer rules from being in force."""
    if rules.get("error"):
        yield f"the rules were not loaded, the last good ones stay in force: {rules['error']}"
    if rules.get("generation") == 0:
        yield f"no rules are in force yet, from: {rules.get('source')}"
    if rules.get("away"):
        yield f"the rules in force stay: {rules['away']}"


def _problem(url: str) -> str:
    """The first line of what a service says is wrong with it; empty when it is well. OSError when
    nobody answers."""
    try:
        with call_directly(urllib.request.Request(url), ANSWER_WITHIN_S):
            return ""
    except urllib.error.HTTPError as error:
        said = error.read(PROBLEM_BYTES_MAX).decode(errors="replace").strip()
        return said.splitlines()[0] if said else f"HTTP status {error.code}"
