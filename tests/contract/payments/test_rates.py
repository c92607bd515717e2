"""The file of exchange rates: read again when it changes, and its age is told."""

import json
import logging
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.payments.api import REFERENCE, TABLES
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ledger.law.values import Currency, Rate
from tollgate.serve.commands.status import status
from tollgate.serve.node.run_record import RunRecord, write_record
from tollgate.serve.payments.reference.exchange_rates import RateFile, rates_age_s

EUR, USD = Currency("EUR"), Currency("USD")
TABLE = """\
version: 1
base: EUR
provider: The bank of the town
tables:
  - dated: {dated}
    rates: {{USD: "{rate}"}}
"""
# 2026-06-01T00:00:00Z
NOW_MS = 1_780_272_000_000
DAY_MS = 86_400_000


@dataclass
class Rates:
    path: Path
    file: RateFile

    def write(self, text: str) -> None:
        """As an operator does: beside, and then in its place."""
        beside = self.path.with_suffix(".new")
        beside.write_text(text)
        os.replace(beside, self.path)
        self.file.reload()

    @property
    def found(self) -> Rate:
        rate = self.file.rate(USD, EUR, NOW_MS)
        assert rate is not None
        return rate


@pytest.fixture
def rates(tmp_path: Path) -> Rates:
    path = tmp_path / "exchange-rates.yaml"
    path.write_text(TABLE.format(dated="2026-01-01", rate="2"))
    return Rates(path, RateFile(path, REFERENCE.currencies))


def test_a_file_that_changed_is_read_again(rates: Rates) -> None:
    assert (rates.found.numerator, rates.found.denominator) == (1, 2)
    assert (rates.found.dated, rates.found.provider) == ("2026-01-01", "The bank of the town")
    table = rates.file.table(NOW_MS, 7 * DAY_MS)
    assert (table.file, table.dated) == ("exchange-rates.yaml", "2026-01-01")
    assert table.until_ms < NOW_MS
    rates.write(TABLE.format(dated="2026-05-31", rate="4"))
    assert (rates.found.numerator, rates.found.denominator) == (1, 4)
    assert rates.file.table(NOW_MS, 7 * DAY_MS).until_ms == NOW_MS + 6 * DAY_MS


def test_a_bad_file_changes_nothing_but_the_log(
    rates: Rates, caplog: pytest.LogCaptureFixture
) -> None:
    before = rates.found
    for text in ("version: 1", "base: [", TABLE.format(dated="2026-05-31", rate="0")):
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            rates.write(text)
            rates.file.reload()
        assert rates.found is before
        (record,) = caplog.records
        assert "exchange-rates.yaml" in record.message
        assert "stay as they were" in record.message
    rates.path.unlink()
    rates.file.reload()
    assert rates.found is before


def test_a_table_to_come_is_not_looked_into(rates: Rates) -> None:
    rates.write(TABLE.format(dated="2026-06-02", rate="4"))
    assert rates.file.rate(USD, EUR, NOW_MS) is None
    assert rates.file.table(NOW_MS, DAY_MS).until_ms == 0


def told(folder: Path, **settings: str) -> dict[str, Any]:
    environment = {
        "TOLLGATE_DATA": str(folder / "data"),
        "PAYMENTS_CONFIG": str(folder / "payments"),
        **settings,
    }
    result = CliRunner().invoke(status, ["--json"], env=environment)
    answer: dict[str, Any] = json.loads(result.output)
    return answer


def test_status_tells_how_old_the_rates_are(tmp_path: Path) -> None:
    file = tmp_path / "payments" / "exchange-rates.yaml"
    shutil.copytree(TABLES, file.parent)
    found = told(tmp_path)["exchangeRates"]
    assert (found["file"], found["dated"], found["isTooOld"]) == (str(file), "2025-01-01", True)
    assert found["ageDays"] == (int(SystemClock().now_s() * 1000) - 1_735_689_600_000) // DAY_MS
    assert told(tmp_path, PAYMENTS_RATES_AGE_MAX="87600h")["exchangeRates"]["isTooOld"] is False
    file.write_text("version: 1")
    assert "base is missing" in told(tmp_path)["exchangeRates"]["problem"]
    assert "exchangeRates" not in told(tmp_path, PAYMENTS_ENABLED="false")


def test_status_sounds_no_alarm_where_only_test_merchants_may_be(tmp_path: Path) -> None:
    """A fresh Tollgate has the shipped table, and nothing about it is to be mended."""
    supervisor = [sys.executable, "-c", "input()", "tollgate.serve.node.supervisor"]
    with subprocess.Popen(supervisor, stdin=subprocess.PIPE) as process:
        write_record(str(tmp_path), RunRecord(process.pid, SystemClock().now_s()))
        environment = {"TOLLGATE_DATA": str(tmp_path), "PAYMENTS_CONFIG": str(TABLES)}
        output = CliRunner().invoke(status, env=environment).output
        process.communicate(b"\n")
    assert "exchange rates of 2025-01-01 are for test merchants; live ones need newer in" in output
    assert "too old" not in output


def test_the_age_is_that_of_the_table_that_holds(rates: Rates) -> None:
    rates.write(
        TABLE.format(dated="2026-05-30", rate="2") + "  - dated: 2026-06-03\n    rates: {USD: 3}\n"
    )
    assert rates_age_s(rates.file, NOW_MS) == 2 * 86_400
    assert rates_age_s(rates.file, NOW_MS + 3 * DAY_MS) == 86_400
    rates.write(TABLE.format(dated="2026-06-03", rate="2"))
    assert rates_age_s(rates.file, NOW_MS) == NOW_MS / 1_000, "with none it is too old"
