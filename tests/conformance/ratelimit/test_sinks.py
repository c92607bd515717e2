"""Statistics as every transport writes them: the cases of 3H, as data in `statistics/`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.actors.ratelimit.statistics.totals import Totals
from tollgate.serve.ratelimit.sinks.choice import metrics_text, statistics_lines
from tollgate.serve.ratelimit.sinks.json_lines import json_lines
from tollgate.serve.settings import Settings, SettingsError
from tollgate.serve.settings.choices import Transport

Case = dict[str, Any]
FILE = Path(__file__).parent / "statistics/sinks.yaml"
CASES: list[Case] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
IDS = {
    *("H01", "H02", "H04", "H05", "H06", "H07", "H08", "H09", "H10", "H11", "H12", "H14", "H15"),
    "H16",
}
SWITCHES = {
    "statsd": {"USE_STATSD": "true"},
    "agent": {"USE_DOG_STATSD": "true"},
    "stdout": {"USE_STATSD": "false"},
    "metrics": {"USE_PROMETHEUS": "true"},
}


def cases_with(part: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES if part in case]


def settings_of(case: Case, transport: str) -> Settings:
    return Settings.from_environment(SWITCHES[transport] | case.get("environ", {}))


def counted(case: Case) -> Totals:
    """What was counted, flushed but for the last step."""
    totals, front = Totals(), Tallies("front-1")
    steps = case.get("steps", [{}])
    for position, step in enumerate(steps):
        for name, number in step.items():
            front.count(name, number)
        for name, value in case.get("gauges", {}).items():
            front.gauge(name, value)
        if position == len(steps) - 1:
            for method, (calls, seconds) in case.get("calls", {}).items():
                front.observe(method, calls, seconds)
        totals.absorb(front.drain(), 0.0)
        if position < len(steps) - 1:
            totals.flush()
    return totals


def test_every_case_is_there() -> None:
    assert {case["id"].partition("-")[0] for case in CASES} == IDS
    assert len({case["id"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", cases_with("statsd"))
def test_lines_for_statsd(case: Case) -> None:
    lines = statistics_lines(settings_of(case, "statsd"))
    found = [line.decode() for line in lines(counted(case).flush())] if lines else []
    assert sorted(found) == sorted(case["statsd"])


@pytest.mark.parametrize("case", cases_with("agent"))
def test_lines_for_dogstatsd(case: Case) -> None:
    lines = statistics_lines(settings_of(case, "agent"))
    found = [line.decode() for line in lines(counted(case).flush())] if lines else []
    assert sorted(found) == sorted(case["agent"])


@pytest.mark.parametrize("case", cases_with("stdout"))
def test_lines_of_standard_output(case: Case) -> None:
    settings = settings_of(case, "stdout")
    assert settings.statistics.transport is Transport.STDOUT
    assert statistics_lines(settings) is None
    tags = dict(settings.statistics.extra_tags)
    assert list(json_lines(counted(case).flush(), tags)) == case["stdout"]


@pytest.mark.parametrize("case", cases_with("metrics"))
def test_lines_of_the_metrics_page(case: Case) -> None:
    settings = settings_of(case, "metrics")
    assert statistics_lines(settings) is None
    lines = metrics_text(settings).render(counted(case).statistics()).decode().splitlines()
    missing = [line for line in case["metrics"] if line not in lines]
    assert not missing, "\n".join(lines)
    for unwanted in case.get("absent", ()):
        assert not [line for line in lines if line.startswith(unwanted)]


@pytest.mark.parametrize("case", cases_with("errors"))
def test_settings_that_refuse_the_start(case: Case) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment(case["environ"])
    found = caught.value.errors
    assert len(found) == len(case["errors"])
    for line, beginning in zip(found, case["errors"], strict=True):
        assert line.startswith(beginning)
