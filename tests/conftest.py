"""The price of a test is its folder: this is where the two cheapest tiers are held to theirs.

A test under `unit/` or `property/` uses nothing but the code under test. While one runs, files,
sockets, processes, Ray and the clocks fail it, with a message that names this rule:

    files, sockets, processes    by Python's audit events, so that no spelling of a call escapes
    clocks, sleep, Ray           replaced where they live and where our modules keep them

Imports, the test tools themselves and an event loop's own pair of sockets stay free.

A run shows every claim; `--thorough` shows it more often. What merely repeats (a seed, a mutation,
an example, a larger document, the other storage) is left to that option: counts ask `repetitions`,
and parameters bear the mark `repetition`. No claim is made by a repetition alone.
"""

import datetime as dt
import gc
import linecache
import os
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from socket import AF_UNIX
from types import FrameType, ModuleType
from typing import Any, NoReturn

import hypothesis
import pytest
from hypothesis.database import InMemoryExampleDatabase

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
# Cheapest first: the order in which they run.
TIERS = (
    "architecture",
    "unit",
    "property",
    "conformance",
    "contract",
    "simulation",
    "integration",
    "e2e",
)
PURE_TIERS = frozenset({"unit", "property"})

# Python's audit events that a pure test must not raise, by what they use.
_EVENTS = {
    "open": "files",
    **dict.fromkeys(("os.listdir", "os.scandir", "os.mkdir", "os.rmdir"), "files"),
    **dict.fromkeys(("os.remove", "os.rename", "os.link", "os.symlink", "os.truncate"), "files"),
    **dict.fromkeys(("socket.__new__", "socket.bind", "socket.connect"), "sockets"),
    **dict.fromkeys(("socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"), "sockets"),
    **dict.fromkeys(("subprocess.Popen", "os.fork", "os.exec", "os.posix_spawn"), "processes"),
}
_CLOCKS = (
    "time",
    "time_ns",
    "monotonic",
    "monotonic_ns",
    "perf_counter",
    "perf_counter_ns",
    "sleep",
)
_REAL_CLOCKS = tuple(getattr(time, name) for name in _CLOCKS)
_REAL_DATES = (dt.datetime, dt.date)
_REAL_IDS = frozenset(map(id, (*_REAL_CLOCKS, *_REAL_DATES)))
_RAY_CALLS = ("init", "get", "put", "wait", "kill", "get_actor")

_STDLIB = f"{sysconfig.get_path('stdlib')}{os.sep}"
_SITE_PACKAGES = Path(pytest.__file__).parents[1]
_TOOLS = tuple(
    f"{_SITE_PACKAGES / name}{os.sep}" for name in ("_pytest", "pluggy", "hypothesis", "coverage")
)
_OURS = tuple(f"{ROOT / name}{os.sep}" for name in ("src/tollgate", "tests"))

# The pure tier that is being held to its price at this moment, for the audit hook below.
_held_tier: str | None = None

# Of repetitions, a run without `--thorough` makes one in so many.
REPETITIONS_PER_RUN = 10
# Examples of a property, thorough and otherwise. A property that asks for more multiplies these.
EXAMPLES, EXAMPLES_PER_RUN = 100, 40

hypothesis.settings.register_profile("local", database=InMemoryExampleDatabase(), deadline=None)
hypothesis.settings.register_profile("ci", database=None, deadline=None, derandomize=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="all repetitions, not one in ten")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "repetition: of a claim that another parameter shows too")
    config.addinivalue_line("markers", "guest: of the Tollgate that a tier's tests share")
    profile = hypothesis.settings.get_profile("ci" if os.environ.get("CI") else "local")
    count = EXAMPLES if config.getoption("thorough") else EXAMPLES_PER_RUN
    hypothesis.settings.register_profile("tollgate", profile, max_examples=count)
    hypothesis.settings.load_profile("tollgate")


def tier_of(path: Path) -> str:
    """The tier of a test file, which is its folder under `tests/`."""
    folder = path.relative_to(TESTS).parts[0]
    if folder not in TIERS:
        raise pytest.UsageError(
            f"{path} is in no tier: move it to one of tests/{{{', '.join(TIERS)}}}"
        )
    return folder


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Cheap tiers first: they say soonest what is wrong, and Ray is not yet in the process."""
    items.sort(key=lambda item: TIERS.index(tier_of(item.path)))
    if not config.getoption("thorough"):
        repeated = [item for item in items if is_repetition(item)]
        items[:] = [item for item in items if not is_repetition(item)]
        config.hook.pytest_deselected(items=repeated)


def pytest_collection_finish() -> None:
    """What is there by now stays. The garbage collector, which would look through thousands of
    tests for a second whenever it is asked, leaves it alone."""
    gc.collect()
    gc.freeze()


def is_repetition(item: pytest.Item) -> bool:
    """Whether another parameter of the same test shows as much."""
    if item.get_closest_marker("repetition") is None:
        return False
    if not hasattr(item, "callspec") or "repetition" in {mark.name for mark in marks_of(item)}:
        raise pytest.UsageError(f"{item.nodeid}: only parameters are repetitions, never a test")
    return True


def marks_of(item: pytest.Item) -> list[pytest.Mark]:
    """The marks of a test itself, whatever its parameters are."""
    return list(getattr(getattr(item, "function", None), "pytestmark", ()))


@pytest.fixture(scope="session")
def repetitions(pytestconfig: pytest.Config) -> Callable[[int], int]:
    """How many of so many repetitions this run makes."""
    share = 1 if pytestconfig.getoption("thorough") else REPETITIONS_PER_RUN
    return lambda count: -(-count // share)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Seconds by tier, when there were several."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.split("/")[1]] += report.duration
    if len(seconds) > 1:
        parts = ", ".join(f"{tier} {seconds[tier]:.0f}" for tier in TIERS if tier in seconds)
        terminalreporter.write_line(f"seconds by tier: {parts}")


@pytest.fixture(autouse=True)
def _price_of_the_tier(request: pytest.FixtureRequest) -> Iterator[None]:
    tier = tier_of(request.path)
    if tier not in PURE_TIERS:
        yield
        return
    with pure(tier):
        yield


@contextmanager
def pure(tier: str) -> Iterator[None]:
    """Inside, whatever a pure test may not use fails it."""
    global _held_tier  # an audit hook can neither be handed anything nor be removed
    with pytest.MonkeyPatch.context() as patch:
        _replace_clocks(patch, tier)
        _replace_ray(patch, tier)
        _held_tier = tier
        try:
            yield
        finally:
            _held_tier = None


def _forbid(tier: str, what: str, call: str) -> NoReturn:
    # `Failed` is no Exception: code under test cannot swallow it.
    pytest.fail(
        f"tier rule: a {tier} test may not use {what} ({call}). Hand the code its input, its clock "
        f"and its actors, or move the test to a tier that pays for them (tests/conftest.py)."
    )


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _held_tier is None or event not in _EVENTS:
        return
    if event == "socket.__new__" and arguments[1] == AF_UNIX:
        return  # an event loop wakes itself through a pair of these; binding one is still refused
    if not _is_tooling(sys._getframe(1)):
        _forbid(_held_tier, _EVENTS[event], f"{event} {arguments[0]!r}")


sys.addaudithook(_audit)


def _is_tooling(frame: FrameType | None) -> bool:
    """Whether an import, a traceback or a test tool is calling: the first caller past the
    standard library decides."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib") or file == linecache.__file__:
            return True
        if not file.startswith((_STDLIB, "<frozen ")) or "site-packages" in file:
            return file.startswith(_TOOLS)
        frame = frame.f_back
    return True


def _replace_clocks(patch: pytest.MonkeyPatch, tier: str) -> None:
    """Our own code may not ask for the time; logging, event loops and test tools go on as ever."""
    guards = _guards(tier)
    for home, clocks in ((time, _REAL_CLOCKS), (dt, _REAL_DATES)):
        for clock in clocks:
            patch.setattr(home, clock.__name__, guards[id(clock)])
    for module, name, clock_id in _kept_clocks(len(sys.modules), next(reversed(sys.modules))):
        patch.setattr(module, name, guards[clock_id])


@cache
def _guards(tier: str) -> dict[int, Any]:
    """What stands in a clock's place in this tier, by the clock's id."""
    guards = {id(each): _guarded(each, tier, f"time.{each.__name__}()") for each in _REAL_CLOCKS}
    return guards | {id(each): _guarded_dates(each, tier) for each in _REAL_DATES}


@lru_cache(maxsize=1)
def _kept_clocks(count: int, newest: str) -> list[tuple[ModuleType, str, int]]:
    """The names in modules of ours that stand for clocks, with the clocks' ids. Looked for when
    there are other modules than before, in those that are new: to go through all of them for
    every test took longer than the tests."""
    modules = [module for module in list(sys.modules.values()) if _is_ours(module)]
    return [kept for module in modules for kept in _clocks_kept_by(module)]


@cache
def _is_ours(module: ModuleType) -> bool:
    return str(getattr(module, "__file__", None)).startswith(_OURS)


@cache
def _clocks_kept_by(module: ModuleType) -> list[tuple[ModuleType, str, int]]:
    contents = vars(module).items()
    return [(module, name, id(value)) for name, value in contents if id(value) in _REAL_IDS]


def _guarded(clock: Callable[..., Any], tier: str, call: str) -> Callable[..., Any]:
    def guarded(*arguments: Any) -> Any:
        if sys._getframe(1).f_code.co_filename.startswith(_OURS):
            _forbid(tier, "the wall clock", call)
        return clock(*arguments)

    return guarded


def _guarded_dates(kind: type[dt.date], tier: str) -> Any:
    """`date` or `datetime` as it was, but for the methods that read the clock."""

    class SameInstances(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, kind)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, kind)

    def guarded(name: str) -> Any:
        def method(_: type, *arguments: Any, **options: Any) -> Any:
            if sys._getframe(1).f_code.co_filename.startswith(_OURS):
                _forbid(tier, "the wall clock", f"{kind.__name__}.{name}()")
            return getattr(kind, name)(*arguments, **options)

        return classmethod(method)

    methods = {name: guarded(name) for name in ("now", "utcnow", "today") if hasattr(kind, name)}
    return SameInstances(kind.__name__, (kind,), methods)


def _replace_ray(patch: pytest.MonkeyPatch, tier: str) -> None:
    """Only if Ray was imported: starting it later fails at the process it would have to start."""
    ray = sys.modules.get("ray")
    if ray is None:
        return
    for name in _RAY_CALLS:
        patch.setattr(ray, name, _refusing(tier, f"ray.{name}()"))
    _replace_remote(patch, tier, "ray.actor", "ActorMethod", "ActorClass")
    _replace_remote(patch, tier, "ray.remote_function", "RemoteFunction")


def _replace_remote(patch: pytest.MonkeyPatch, tier: str, module: str, *classes: str) -> None:
    home: ModuleType = sys.modules[module]
    for name in classes:
        patch.setattr(getattr(home, name), "_remote", _refusing(tier, f"{name}.remote()"))


def _refusing(tier: str, call: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        _forbid(tier, "Ray", call)

    return refuse


@pytest.fixture(scope="session")
def envoy_binary() -> Path:
    """A real Envoy, where scripts/test has put it."""
    binary = ROOT / ".cache/envoy/envoy/_bin/envoy"
    assert binary.exists(), f"no Envoy at {binary}: run scripts/test once"
    return binary


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """A PostgreSQL server of this run's own."""
    from tests.support.servers.postgresql import postgresql_server  # (most runs need none of it)

    with postgresql_server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Empty tables for the ledger's books, in one storage after the other."""
    from tests.support.ledger.storage import emptied

    kind = request.param
    return emptied(
        f"sqlite:///{tmp_path}/ledger.sqlite"
        if kind == "sqlite"
        else request.getfixturevalue("postgresql_url")
    )
