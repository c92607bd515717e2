"""The tier rules of tests/conftest.py, shown to bite."""

import asyncio
import datetime as dt
import io
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import date
from datetime import datetime as moment
from pathlib import Path
from time import sleep
from time import time as wall_clock
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import ray
from hypothesis import given, settings
from hypothesis import strategies as st

from tollgate.actors.kernel.clock import SystemClock

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tiers(pytestconfig: pytest.Config) -> ModuleType:
    """The module that holds the rules."""
    module = pytestconfig.pluginmanager.get_plugin(str(Path(__file__).parents[1] / "conftest.py"))
    assert isinstance(module, ModuleType)
    return module


class Answer:
    def give(self) -> int:
        return 42


Actor: Any = ray.remote(Answer)
task: Any = ray.remote(lambda: 42)


async def connect() -> None:
    await asyncio.open_connection("127.0.0.1", 9)


def unix_server() -> None:
    socket.socket(socket.AF_UNIX).bind("\0tollgate-tier-rule")


FORBIDDEN: dict[str, tuple[str, Callable[[], object]]] = {
    "open": ("files", lambda: open(__file__)),  # noqa: SIM115
    "io.open": ("files", lambda: io.open(__file__)),  # noqa: SIM115, UP020
    "os.open": ("files", lambda: os.open(__file__, os.O_RDONLY)),
    "Path.read_text": ("files", lambda: Path(__file__).read_text()),
    "Path.read_bytes": ("files", lambda: Path(__file__).read_bytes()),
    "Path.write_text": ("files", lambda: Path(os.devnull).write_text("")),
    "Path.iterdir": ("files", lambda: list(Path(__file__).parent.iterdir())),
    "temporary file": ("files", tempfile.TemporaryFile),
    "socket": ("sockets", socket.socket),
    "connection": ("sockets", lambda: socket.create_connection(("127.0.0.1", 9))),
    "name lookup": ("sockets", lambda: socket.getaddrinfo("localhost", 80)),
    "asyncio connection": ("sockets", lambda: asyncio.run(connect())),
    "unix server": ("sockets", unix_server),
    "process": ("processes", lambda: subprocess.run([sys.executable, "-V"], check=True)),
    "time.time": ("the wall clock", lambda: time.time()),
    "time.time, by name": ("the wall clock", lambda: wall_clock()),
    "time.monotonic": ("the wall clock", lambda: time.monotonic()),
    "time.perf_counter": ("the wall clock", lambda: time.perf_counter()),
    "time.sleep": ("the wall clock", lambda: time.sleep(0)),
    "time.sleep, by name": ("the wall clock", lambda: sleep(0)),
    "datetime.now": ("the wall clock", lambda: moment.now(dt.UTC)),
    "datetime.datetime.now": ("the wall clock", lambda: dt.datetime.now(dt.UTC)),
    "date.today": ("the wall clock", lambda: date.today()),  # noqa: DTZ011
    "our own clock": ("the wall clock", lambda: SystemClock().now_s()),
    "ray.init": ("Ray", lambda: ray.init()),
    "ray.get": ("Ray", lambda: ray.get([])),
    "actor.remote": ("Ray", lambda: Actor.remote()),
    "task.remote": ("Ray", lambda: task.remote()),
}


@pytest.mark.parametrize(("what", "offend"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
@pytest.mark.parametrize("tier", ["unit", "property"])
def test_a_pure_test_fails_when_it_uses(
    tiers: ModuleType, tier: str, what: str, offend: Callable[[], object]
) -> None:
    broken_rule = f"tier rule: a {tier} test may not use {what} "
    with pytest.raises(pytest.fail.Exception, match=broken_rule), tiers.pure(tier):
        offend()


def test_the_code_under_test_cannot_swallow_the_failure() -> None:
    assert not issubclass(pytest.fail.Exception, Exception)


def test_a_thread_is_held_to_the_rule_too(tiers: ModuleType) -> None:
    failures: list[BaseException] = []

    def offend() -> None:
        try:
            Path(__file__).read_text()
        except pytest.fail.Exception as failure:
            failures.append(failure)

    with tiers.pure("unit"):
        thread = threading.Thread(target=offend)
        thread.start()
        thread.join()
    assert len(failures) == 1


def test_imports_event_loops_logging_and_dates_stay_free(
    tiers: ModuleType, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    monkeypatch.delitem(sys.modules, "this", raising=False)
    with tiers.pure("unit"):
        import this  # (a module that nothing else has imported)

        assert this.s
        assert asyncio.run(answer()) == 42
        logging.getLogger("tollgate").warning("logging stamps its records with the time")
        day = date(2026, 2, 28)
        assert isinstance(day, date)
        assert isinstance(moment(2026, 2, 28, tzinfo=dt.UTC), date)
        assert day + dt.timedelta(days=1) == date(2026, 3, 1)
    assert "stamps" in caplog.text


@given(st.data())
def test_hypothesis_stays_free(data: st.DataObject) -> None:
    assert isinstance(data.draw(st.text() | st.dates()), str | date)


def test_afterwards_everything_works_again(tiers: ModuleType) -> None:
    before = (time.time, dt.datetime, moment, ray.get, ray.init)
    with tiers.pure("unit"):
        assert before != (time.time, dt.datetime, moment, ray.get, ray.init)
    assert before == (time.time, dt.datetime, moment, ray.get, ray.init)
    assert Path(__file__).read_text()
    with socket.socket():
        assert moment.now(dt.UTC).year > 2000


def test_the_tier_is_the_folder(tiers: ModuleType) -> None:
    tests = Path(__file__).parents[1]
    assert tiers.tier_of(tests / "unit" / "ratelimit" / "test_windows.py") == "unit"
    with pytest.raises(pytest.UsageError, match="is in no tier"):
        tiers.tier_of(tests / "test_stray.py")


def test_cheap_tiers_run_first(tiers: ModuleType) -> None:
    tests = Path(__file__).parents[1]
    folders = ["e2e", "unit", "integration", "architecture", "unit"]
    items = [
        SimpleNamespace(path=tests / folder / "test_x.py", nr=nr)
        for nr, folder in enumerate(folders)
    ]
    tiers.pytest_collection_modifyitems(SimpleNamespace(getoption=lambda _: True), items)
    assert [item.nr for item in items] == [3, 1, 4, 2, 0]


REPEATED = """
import pytest

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.repetition)])
def test_a(n, repetitions):
    assert repetitions(101) == {made}
"""


def run_apart(folder: Path, text: str, *options: str) -> str:
    """All that pytest prints of a tree with our conftest.py and one unit test."""
    unit = folder / "tests/unit"
    unit.mkdir(parents=True)
    (unit / "test_a.py").write_text(text)
    (folder / "tests/conftest.py").write_bytes((ROOT / "tests/conftest.py").read_bytes())
    command = [sys.executable, "-m", "pytest", "--strict-markers", "tests", *options]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # (loading them takes long)
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_repetitions_are_made_by_thorough_runs(tmp_path: Path) -> None:
    usual = run_apart(tmp_path / "a", REPEATED.format(made=11))
    assert "1 passed, 1 deselected in" in usual
    assert "2 passed in" in run_apart(tmp_path / "b", REPEATED.format(made=101), "--thorough")


def test_a_whole_test_is_no_repetition(tmp_path: Path) -> None:
    text = "import pytest\n\n@pytest.mark.repetition\ndef test_a(): ..."
    assert "test_a: only parameters are repetitions, never a test" in run_apart(tmp_path, text)


def test_property_runs_are_repeatable_in_ci() -> None:
    profile = settings.get_profile("ci")
    assert profile.derandomize
    assert profile.database is None
    assert profile.deadline is None
